// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Ledger} from "./Ledger.sol";
import {ISubscriber} from "./interfaces/ISubscriber.sol";
import {Calldata} from "./libraries/Calldata.sol";
import {Lanes} from "./libraries/Lanes.sol";
import {Pages} from "./libraries/Pages.sol";
import {Reverts} from "./libraries/Reverts.sol";
import {Record} from "./types/Record.sol";
import {TopicState} from "./types/TopicState.sol";

/// @notice One page of callbacks, in words of eight subscribers. Where all of a word can pay the worst that a callback of this topic can cost,
/// they are debited at once and called one after the other; otherwise each is judged alone. What was debited in excess is given
/// back when all words are done.
/// @dev Written for gas: what holds for the whole page lives in one memory struct, the loop over lanes is assembly. Nothing read from
/// storage before a call is trusted after it.
abstract contract Delivery is Ledger {
    using Pages for address;
    using Reverts for bytes4;

    /* PREPARATION */

    /// @dev All callbacks, or the chain's full cap, or nothing: nobody serves a chosen prefix.
    function _requireGas(Page memory page, TopicState state) internal view {
        unchecked {
            uint256 need = page.gasAtEntry - gasleft() + state.callbackGas() + RESERVE_GAS + HOLE_GAS * page.end;
            uint256 full = _fullGas() * FULL_SIXTEENTHS / 16;
            if (need > full) need = full;
            if (page.gasAtEntry < need) NotEnoughGas.selector.revertWith(page.gasAtEntry, need);
        }
    }

    /// @dev Lays the callback's calldata out in memory and, where the event is `fresh`, logs it from there: the log's data stand where key
    /// and offset belong, which are written afterwards.
    function _layOut(Page memory page, uint256 sequence, bytes32 key, bytes calldata payload, bool fresh) internal {
        bytes4 selector = ISubscriber.onEvent.selector;
        bytes32 published = Published.selector;
        bytes32 topic = page.topic;
        uint256 input;
        uint256 inputSize;
        assembly ("memory-safe") {
            input := mload(0x40)
            let padded := and(add(payload.length, 31), not(31))
            inputSize := add(196, padded)
            let end := add(input, inputSize)
            mstore(sub(end, 32), 0)
            calldatacopy(add(input, 196), payload.offset, payload.length)
            mstore(add(input, 164), payload.length)
            if fresh {
                mstore(add(input, 132), 64)
                mstore(add(input, 100), caller())
                log4(add(input, 100), add(96, padded), published, topic, sequence, key)
            }
            mstore(add(input, 132), 160)
            mstore(add(input, 100), key)
            mstore(add(input, 36), sequence)
            mstore(add(input, 4), topic)
            mstore(input, or(selector, shr(32, topic)))
            mstore(0x40, and(add(end, 31), not(31)))
        }
        (page.input, page.inputSize) = (input, inputSize);
    }

    /// @dev Names an event for its later pages: the hash of the callback's calldata with index 0.
    function _hashEvent(Page memory page) internal pure returns (bytes32 hash) {
        (uint256 input, uint256 size) = (page.input, page.inputSize);
        assembly ("memory-safe") {
            mstore(add(input, 68), 0)
            hash := keccak256(input, size)
        }
    }

    /// @dev Makes room for the `Delivered` log with `positions` outcomes and for what the loops write; what may stay unused comes last.
    function _allocate(Page memory page, uint256 positions) internal view {
        unchecked {
            uint256 free;
            Record[1 << 24] storage records = _records[page.topic];
            uint256[1 << 21] storage lanes = _lanes[page.topic];
            uint256 recordsSlot;
            uint256 lanesSlot;
            assembly ("memory-safe") {
                free := mload(0x40)
                recordsSlot := records.slot
                lanesSlot := lanes.slot
            }
            (page.recordsSlot, page.lanesSlot) = (recordsSlot, lanesSlot);
            page.outcomes = free + 160;
            page.settlements = page.outcomes + positions + 32;
            // Behind a gap: the log of a removal is encoded at the free memory pointer, in two words.
            page.records = page.settlements + 8 * positions + 64 + 64;
            page.recordsPage = type(uint256).max;
            (uint256 outcomes, uint256 end) = (page.outcomes, page.records);
            assembly ("memory-safe") {
                calldatacopy(outcomes, calldatasize(), sub(end, outcomes)) // zeros
                mstore(0x40, sub(end, 64))
            }
        }
    }

    /* CALLBACKS */

    /// @dev Serves positions up to `to`, or until the next callback does not fit; returns where it stopped.
    function _serve(Page memory page, uint256 to) internal returns (uint256 position) {
        unchecked {
            position = page.from;
            uint256 settlement = page.settlements;
            while (position < to) {
                uint256 first = _wordAt(page, position) << 3;
                uint256 slot = page.lanesSlot + (first >> 3);
                uint256 lanes = _load(slot) >> ((position & 7) << 5) << ((position & 7) << 5);
                uint256 next = (position | 7) + 1;
                // Who joined after the event is not served.
                if (page.end - first < 8) lanes &= (1 << ((page.end - first) << 5)) - 1;
                page.reserve = FINISH_RESERVE_GAS + (next - page.from) * RESERVE_GAS_PER_POSITION;
                if (gasleft() < page.reserve) return position;
                if (lanes != 0) {
                    page.indexes = first;
                    page.outcomesAt = page.outcomes + (position & ~uint256(7)) - page.from;
                    page.enough = page.reserve + _reservedGas(page.callbackGas);
                    page.source = first < page.sealedEnd ? _loadRecords(page, first) : page.recordsSlot + first;
                    uint256 lane = _serveWord(page, slot, lanes, settlement);
                    if (lane != 8) return (position & ~uint256(7)) + lane;
                }
                position = next;
                settlement += 64;
            }
        }
    }

    /// @return lane the lane whose callback does not fit, or 8 where all were served
    function _serveWord(Page memory page, uint256 slot, uint256 lanes, uint256 settlement)
        private
        returns (uint256 lane)
    {
        unchecked {
            uint256 live = ~_emptyLanes(lanes) & LANE_ONES;
            uint256 debit = page.share + page.gasDebit;
            bool plain = _isPlain(page, lanes, live, debit);
            if (plain) _store(slot, _load(slot) - live * debit);
            while (true) {
                if (plain) lane = _call(page, live, lane, settlement);
                uint256 ahead = live >> (lane << 5);
                if (ahead == 0) return 8;
                if (ahead & 1 != 0) {
                    if (plain) _giveBack(page, slot, lane, debit);
                    if (!_serveAlone(page, slot, lane, settlement)) break;
                }
                ++lane;
            }
            for (uint256 rest = lane + 1; plain && rest < 8; ++rest) {
                if (live >> (rest << 5) & 1 != 0) _giveBack(page, slot, rest, debit);
            }
        }
    }

    /// @dev Undoes the debit of one that is not called; who left meanwhile gets a credit instead.
    function _giveBack(Page memory page, uint256 slot, uint256 lane, uint256 debit) private {
        unchecked {
            if (_load(slot) >> (lane << 5) & Lanes.MASK != 0) _store(slot, _load(slot) + (debit << (lane << 5)));
            else _credit(_readRecord(page.topic, page.sealedEnd, page.indexes + lane).subscriber(), debit);
        }
    }

    /// @dev Whether there is gas for a callback, and every live lane, which is a deposit + 1, is more than the debit and the floor: one
    /// subtraction, eight guard bits.
    function _isPlain(Page memory page, uint256 lanes, uint256 live, uint256 debit) private view returns (bool) {
        unchecked {
            if (debit < page.floor) debit = page.floor;
            return gasleft() > page.enough && debit < Lanes.DEPOSIT_MAX && lanes & LANE_TOPS == 0
                && ((lanes | LANE_TOPS) - live * (debit + 1)) & LANE_TOPS == LANE_TOPS;
        }
    }

    /// @dev Calls the live lanes, debited before, each with exactly its gas, up to one that does not accept price or share, or for which gas may not
    /// suffice; returns that one, or one behind the last.
    function _call(Page memory page, uint256 live, uint256 lane, uint256 settlement) private returns (uint256) {
        unchecked {
            uint256 refunds;
            uint256 sums; // gas, and gwei from bit 128 on
            uint256 shift = lane << 5;
            assembly ("memory-safe") {
                for {} shr(shift, live) { shift := add(shift, 32) } {
                    if and(shr(shift, live), 1) {
                        let used := gas()
                        if lt(used, mload(add(page, 0x120))) { break }
                        let record := mload(add(page, 0xc0))
                        switch shr(64, record)
                        case 0 { record := mload(add(record, shift)) }
                        default { record := sload(add(record, shr(5, shift))) }
                        // Neither price nor share may be more than the record accepts: one subtraction, two guard bits.
                        if xor(and(sub(or(record, GUARDS), mload(add(page, 0x60))), GUARDS), GUARDS) { break }
                        let input := mload(page)
                        mstore(add(input, 68), add(mload(add(page, 0xe0)), shr(5, shift)))
                        let cost := call(and(record, 0xffffff), shr(96, record), 0, input, mload(add(page, 0x20)), 0, 0)
                        // Whatever was returned proves that there is code.
                        if iszero(mul(cost, returndatasize())) {
                            switch cost
                            case 0 { cost := FAILED }
                            default { if iszero(extcodesize(shr(96, record))) { cost := NO_CODE } }
                        }
                        mstore8(add(mload(add(page, 0x100)), shr(5, shift)), cost)
                        // What it used, in gwei, rounded up; at most what was debited for it.
                        used := add(sub(used, gas()), mload(add(page, 0xa0)))
                        cost := div(add(mul(used, mload(add(page, 0x40))), 999999999), GWEI)
                        let debit := mload(add(page, 0x80))
                        if gt(cost, debit) { cost := debit }
                        sums := add(sums, or(used, shl(128, cost)))
                        refunds := add(refunds, shl(shift, sub(debit, cost)))
                    }
                }
            }
            page.billedGas += uint128(sums);
            page.gasPaid += sums >> 128;
            live &= (1 << shift) - (1 << (lane << 5)); // from `lane` on, up to where the loop ended
            page.billed += live * LANE_ONES >> 224;
            _storeMemory(settlement, _loadMemory(settlement) | live);
            _storeMemory(settlement + 32, _loadMemory(settlement + 32) + refunds);
            return shift >> 5;
        }
    }

    /// @dev One that must be judged alone: served at terms of its own, removed, or passed over.
    /// @return whether there was gas for it; if not, nothing was changed
    function _serveAlone(Page memory page, uint256 slot, uint256 lane, uint256 settlement) private returns (bool) {
        unchecked {
            uint256 gasBefore = gasleft();
            uint256 deposit = _load(slot) >> (lane << 5) & Lanes.MASK;
            if (deposit == 0) return true; // left meanwhile
            --deposit;
            Record record = _readRecord(page.topic, page.sealedEnd, page.indexes + lane);
            (uint256 outcome, uint256 debit) = _judge(page, record, deposit);
            uint256 need = outcome == DELIVERED ? _reservedGas(record.callbackGas()) : REMOVAL_GAS;
            if (gasBefore < page.reserve + need) return false;
            if (outcome == DELIVERED) {
                _store(slot, _load(slot) - (debit << (lane << 5)));
                page.laneGas += gasBefore - gasleft();
                _callAlone(page, record, lane, settlement, debit);
            } else {
                if (outcome == REMOVED) {
                    _forget(page.topic, page.indexes + lane, record, deposit);
                    _credit(record.subscriber(), deposit);
                } else {
                    _chargeLook(page, record, slot, lane, deposit, gasBefore);
                }
                uint256 at = page.outcomesAt + lane;
                assembly ("memory-safe") {
                    mstore8(at, outcome)
                }
            }
            return true;
        }
    }

    /// @dev Who pays a price of its own pays its part of the expected base at once; there is nothing to settle.
    function _callAlone(Page memory page, Record record, uint256 lane, uint256 settlement, uint256 debit) private {
        unchecked {
            uint256 price = page.price;
            page.enough = 0; // looked at before
            _setTerms(page, _priceFor(page, record), record.callbackGas());
            if (page.price != price) {
                page.laneGas += page.base / page.live;
                page.gasDebit = debit - page.reward;
                ++page.apart;
            }
            _call(page, 1 << (lane << 5), lane, settlement);
            if (page.price != price) _storeMemory(settlement, _loadMemory(settlement) & ~(1 << (lane << 5)));
            page.enough = page.reserve + _reservedGas(page.callbackGas);
            page.laneGas = LANE_GAS;
            _setTerms(page, price, page.callbackGas);
        }
    }

    /// @dev Who is not called pays for being looked at, or a list of such would be paid by the others.
    function _chargeLook(
        Page memory page,
        Record record,
        uint256 slot,
        uint256 lane,
        uint256 deposit,
        uint256 gasBefore
    ) private {
        unchecked {
            uint256 used = gasBefore - gasleft() + LANE_GAS;
            uint256 fee = _cost(used, _priceFor(page, record));
            if (fee > deposit) fee = deposit;
            _store(slot, _load(slot) - (fee << (lane << 5)));
            page.billedGas += used;
            page.gasPaid += fee;
        }
    }

    /* SETTLEMENT */

    /// @dev Shares equally what of the transaction's gas was nobody's own, and gives everyone back what was debited in excess.
    function _settle(Page memory page, uint256 to) internal {
        unchecked {
            uint256 sharers = page.billed - page.apart;
            uint256 rest;
            if (sharers != 0) {
                uint256 total = page.outsideGas + page.gasAtEntry - gasleft() + page.finishGas + SETTLE_GAS
                    * ((to - page.from) >> 3);
                if (total < page.floorGas) total = page.floorGas;
                uint256 share = total > page.billedGas ? (total - page.billedGas + sharers - 1) / sharers : 0;
                if (share > page.base) share = page.base;
                uint256 paid = _cost(share, page.price) + (page.dataFee + sharers - 1) / sharers;
                page.gasPaid += sharers * paid;
                rest = page.share - page.reward - paid;
            }
            uint256 at = page.settlements;
            for (uint256 position = page.from & ~uint256(7); position < to; position += 8) {
                uint256 refunds = _loadMemory(at) * rest + _loadMemory(at + 32);
                if (refunds != 0) _settleWord(page, _wordAt(page, position), refunds);
                at += 64;
            }
        }
    }

    function _settleWord(Page memory page, uint256 word, uint256 refunds) private {
        unchecked {
            uint256 slot = page.lanesSlot + word;
            uint256 left = _emptyLanes(_load(slot)) & ~_emptyLanes(refunds);
            // Who left during the delivery gets a credit instead, in a slot that leaving has opened; but no crowd of leavers may use up the gas
            // that the page needs to end: then it goes to the payee.
            for (uint256 shift; left >> shift != 0; shift += 32) {
                if (left >> shift & 1 == 0) continue;
                uint256 refund = refunds & Lanes.MASK << shift;
                refunds -= refund;
                if (gasleft() < page.reserve + LEAVER_GAS) {
                    page.gasPaid += refund >> shift;
                } else {
                    Record record = _readRecord(page.topic, page.sealedEnd, word << 3 | shift >> 5);
                    _credit(record.subscriber(), refund >> shift);
                }
            }
            _store(slot, _load(slot) + refunds);
        }
    }

    /* WORDS */

    /// @dev The word of lanes at a position: the list, taken as a ring, from a start that rotates with the sequence.
    function _wordAt(Page memory page, uint256 position) private pure returns (uint256 word) {
        unchecked {
            word = page.startWord + (position >> 3);
            if (word >= page.words) word -= page.words;
        }
    }

    /// @dev A 1 in every lane that is zero.
    function _emptyLanes(uint256 lanes) private pure returns (uint256) {
        unchecked {
            uint256 low = LANE_ONES * 0x7fffffff;
            return ~((lanes & low) + low | lanes | low) >> 31;
        }
    }

    /// @dev Brings the page of sealed records that holds `index` into memory, if it is not there yet.
    /// @return where the record is
    function _loadRecords(Page memory page, uint256 index) private view returns (uint256) {
        unchecked {
            uint256 number = index / Pages.RECORDS;
            uint256 first = number * Pages.RECORDS;
            if (number != page.recordsPage) {
                uint256 count = page.sealedEnd - first;
                if (count > Pages.RECORDS) count = Pages.RECORDS;
                _pages[page.topic][number].read(count, page.records);
                page.recordsPage = number;
            }
            return page.records + ((index - first) << 5);
        }
    }

    function _loadMemory(uint256 at) private pure returns (uint256 value) {
        assembly ("memory-safe") {
            value := mload(at)
        }
    }

    function _storeMemory(uint256 at, uint256 value) private pure {
        assembly ("memory-safe") {
            mstore(at, value)
        }
    }

    function _load(uint256 slot) private view returns (uint256 value) {
        assembly ("memory-safe") {
            value := sload(slot)
        }
    }

    function _store(uint256 slot, uint256 value) private {
        assembly ("memory-safe") {
            sstore(slot, value)
        }
    }
}
