// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Ledger} from "./Ledger.sol";
import {Lanes} from "./libraries/Lanes.sol";
import {Pages} from "./libraries/Pages.sol";
import {Words} from "./libraries/Words.sol";
import {Record} from "./types/Record.sol";

/// @notice The callbacks of one page, in words of eight subscribers. Where all of a word can pay the worst that a callback of this topic can
/// cost, they are debited at once and called one after the other; otherwise each is judged alone. What was debited in excess is given back
/// when all words are done (`Delivery`).
/// @dev Nothing read from storage before a call is trusted after it. Lanes are numbered from the lowest bits of their word; `shift` is 32 times
/// that number. A `settlement` is two words of memory for each word of lanes: see `Page.settlements`.
abstract contract Callbacks is Ledger {
    using Pages for uint256;
    using Words for uint256;
    using Words for uint256[1 << 24];

    /// @dev Serves positions up to `to`, or until the next callback does not fit; returns where it stopped.
    function _serve(uint256 to) internal returns (uint256 position) {
        unchecked {
            Page memory page = _page()();
            position = page.from;
            uint256 settlement = page.settlements;
            while (position < to) {
                uint256 word = _wordAt(position);
                uint256 slot = page.lanesSlot + word;
                uint256 done = (position & 7) << 5;
                uint256 lanes = slot.load() >> done << done;
                uint256 next = (position | 7) + 1;
                // Who joined after the event is not served.
                uint256 ahead = page.end - (word << 3);
                if (ahead < 8) lanes &= (1 << (ahead << 5)) - 1;
                page.reserve = FINISH_RESERVE_GAS + (next - page.from) * RESERVE_GAS_PER_POSITION;
                if (gasleft() < page.reserve) return position;
                if (lanes != 0) {
                    _turnTo(word << 3, next);
                    uint256 lane = _serveWord(slot, lanes, settlement);
                    if (lane != 8) return next - 8 + lane;
                }
                position = next;
                settlement += 64;
            }
        }
    }

    /// @dev Lets the page say of the word that begins with index `first` where its records and outcomes are.
    function _turnTo(uint256 first, uint256 next) private view {
        unchecked {
            Page memory page = _page()();
            page.indexes = first;
            page.outcomesAt = page.outcomes + next - 8 - page.from;
            page.enough = page.reserve + _reservedGas(page.callbackGas);
            page.source = first < page.sealedEnd ? _loadRecords(first) : page.recordsSlot + first;
        }
    }

    /// @return lane the lane whose callback does not fit, or 8 where all were served
    function _serveWord(uint256 slot, uint256 lanes, uint256 settlement) private returns (uint256 lane) {
        unchecked {
            Page memory page = _page()();
            uint256 live = _liveLanes(lanes);
            uint256 debit = page.share + page.gasDebit;
            bool plain = _isPlain(lanes, live, debit);
            if (plain) slot.store(slot.load() - live * debit);
            while (true) {
                if (plain) lane = _call(live, lane, settlement);
                uint256 ahead = live >> (lane << 5);
                if (ahead == 0) return 8;
                if (ahead & 1 != 0) {
                    if (plain) _giveBack(slot, lane, debit);
                    if (!_serveAlone(slot, lane, settlement)) break;
                }
                ++lane;
            }
            for (uint256 rest = lane + 1; plain && rest < 8; ++rest) {
                if (live >> (rest << 5) & 1 != 0) _giveBack(slot, rest, debit);
            }
        }
    }

    /// @dev Undoes the debit of one that is not called; who left meanwhile gets a credit instead.
    function _giveBack(uint256 slot, uint256 lane, uint256 debit) private {
        unchecked {
            uint256 lanes = slot.load();
            if (lanes >> (lane << 5) & Lanes.MASK != 0) slot.store(lanes + (debit << (lane << 5)));
            else _credit(_recordAt(_page()().indexes + lane).subscriber(), debit);
        }
    }

    /// @dev Whether there is gas for a callback, and every live lane, which is a deposit + 1, is more than the debit and the floor: one
    /// subtraction, eight guard bits.
    function _isPlain(uint256 lanes, uint256 live, uint256 debit) private view returns (bool) {
        unchecked {
            Page memory page = _page()();
            if (debit < page.floor) debit = page.floor;
            return gasleft() > page.enough && debit < Lanes.DEPOSIT_MAX && lanes & LANE_TOPS == 0
                && ((lanes | LANE_TOPS) - live * (debit + 1)) & LANE_TOPS == LANE_TOPS;
        }
    }

    /// @dev Calls the live lanes, debited before, each with exactly its gas, up to one that does not accept price or share, or for which gas may not
    /// suffice; returns that one, or one behind the last.
    function _call(uint256 live, uint256 lane, uint256 settlement) private returns (uint256) {
        unchecked {
            Page memory page = _page()();
            uint256 refunds;
            uint256 sums; // gas, and gwei from bit 128 on
            uint256 shift = lane << 5;
            for (; live >> shift != 0; shift += 32) {
                if (live >> shift & 1 == 0) continue;
                uint256 used = gasleft();
                if (used < page.enough) break;
                uint256 source = page.source;
                uint256 record = source >> 64 == 0 ? (source + shift).read() : (source + (shift >> 5)).load();
                // Neither price nor share may be more than the record accepts: one subtraction, two guard bits.
                if (((record | GUARDS) - page.limits) & GUARDS != GUARDS) break;
                (INPUT + 68).write(page.indexes + (shift >> 5));
                (page.outcomesAt + (shift >> 5)).writeByte(_callOne(record, page.inputSize));
                used = used - gasleft() + page.laneGas;
                uint256 paid = _least(_cost(used, page.price), page.gasDebit);
                sums += used | paid << 128;
                refunds += page.gasDebit - paid << shift;
            }
            page.billedGas += uint128(sums);
            page.gasPaid += sums >> 128;
            live &= (1 << shift) - (1 << (lane << 5)); // from `lane` on, up to where the loop ended
            page.billed += live * LANE_ONES >> 224;
            settlement.write(settlement.read() | live);
            (settlement + 32).write((settlement + 32).read() + refunds);
            return shift >> 5;
        }
    }

    function _callOne(uint256 record, uint256 inputSize) private returns (uint256 outcome) {
        assembly ("memory-safe") {
            outcome := call(and(record, 0xffffff), shr(96, record), 0, INPUT, inputSize, 0, 0)
            // Whatever was returned proves that there is code.
            if iszero(mul(outcome, returndatasize())) {
                switch outcome
                case 0 { outcome := FAILED }
                default { if iszero(extcodesize(shr(96, record))) { outcome := NO_CODE } }
            }
        }
    }

    /* ALONE */

    /// @dev One that must be judged alone: served at terms of its own, removed, or passed over.
    /// @return whether there was gas for it; if not, nothing was changed
    function _serveAlone(uint256 slot, uint256 lane, uint256 settlement) private returns (bool) {
        unchecked {
            Page memory page = _page()();
            uint256 gasBefore = gasleft();
            uint256 deposit = slot.load() >> (lane << 5) & Lanes.MASK;
            if (deposit == 0) return true; // left meanwhile
            --deposit;
            if (gasBefore < page.reserve + DELIVERY_GAS) return false;
            uint256 outcome = _dismiss(deposit);
            if (outcome == 0) {
                Record record = _recordAt(page.indexes + lane);
                uint256 debit;
                (outcome, debit) = _judge(record, deposit);
                if (outcome == DELIVERED) {
                    if (gasBefore < page.reserve + _reservedGas(record.callbackGas())) return false;
                    slot.store(slot.load() - (debit << (lane << 5)));
                    page.laneGas += gasBefore - gasleft();
                    _callAlone(record, lane, settlement, debit);
                    return true;
                }
                _chargeLook(record, slot, lane, deposit, gasBefore);
            } else if (outcome == REMOVED) {
                // A page that brought its gas must reach its end: removing can wait.
                if (gasBefore < page.reserve + REMOVAL_GAS) outcome = UNFUNDED;
                else _remove(page.indexes + lane, deposit);
            }
            (page.outcomesAt + lane).writeByte(outcome);
            return true;
        }
    }

    function _remove(uint256 index, uint256 residue) private {
        Page memory page = _page()();
        Record record = _recordAt(index);
        _forget(page.topic, index, record, residue);
        _credit(record.subscriber(), residue);
        unchecked {
            ++page.removed;
        }
    }

    /// @dev Who pays a price of its own pays its part of the expected base at once; there is nothing to settle.
    function _callAlone(Record record, uint256 lane, uint256 settlement, uint256 debit) private {
        unchecked {
            Page memory page = _page()();
            uint256 price = page.price;
            page.enough = 0; // looked at before
            _setTerms(_priceFor(record), record.callbackGas());
            if (page.price != price) {
                page.laneGas += _ceilDiv(page.base - REMOVAL_SHARE_GAS, page.live);
                page.gasDebit = debit - page.reward;
                ++page.apart;
            }
            _call(1 << (lane << 5), lane, settlement);
            if (page.price != price) settlement.write(settlement.read() & ~(1 << (lane << 5)));
            page.enough = page.reserve + _reservedGas(page.callbackGas);
            page.laneGas = LANE_GAS;
            _setTerms(price, page.callbackGas);
        }
    }

    /// @dev Who is not called pays for being looked at, or a list of such would be paid by the others.
    function _chargeLook(Record record, uint256 slot, uint256 lane, uint256 deposit, uint256 gasBefore) private {
        unchecked {
            Page memory page = _page()();
            uint256 used = gasBefore - gasleft() + LANE_GAS;
            uint256 fee = _least(_cost(used, _priceFor(record)), deposit);
            slot.store(slot.load() - (fee << (lane << 5)));
            page.billedGas += used;
            page.gasPaid += fee;
        }
    }

    /* WHERE THINGS ARE */

    /// @dev The word of lanes at a position: the list, taken as a ring, from a start that rotates with the sequence.
    function _wordAt(uint256 position) internal pure returns (uint256 word) {
        unchecked {
            Page memory page = _page()();
            word = page.startWord + (position >> 3);
            if (word >= page.words) word -= page.words;
        }
    }

    function _recordAt(uint256 index) internal view returns (Record) {
        Page memory page = _page()();
        return _readRecord(_books[page.topic], page.sealedEnd, index);
    }

    /// @dev A 1 in every lane that is not zero.
    function _liveLanes(uint256 lanes) internal pure returns (uint256) {
        unchecked {
            uint256 low = LANE_ONES * 0x7fffffff;
            return ((lanes & low) + low | lanes) >> 31 & LANE_ONES;
        }
    }

    /// @dev Brings the page of sealed records that holds `index` into memory, if it is not there yet.
    /// @return where the record is
    function _loadRecords(uint256 index) private view returns (uint256) {
        unchecked {
            Page memory page = _page()();
            uint256 number = index / Pages.RECORDS;
            uint256 first = number * Pages.RECORDS;
            if (number != page.recordsPage) {
                uint256 count = _least(page.sealedEnd - first, Pages.RECORDS);
                _books[page.topic].pages.at(number).read(0, count, page.records);
                page.recordsPage = number;
            }
            return page.records + ((index - first) << 5);
        }
    }
}
