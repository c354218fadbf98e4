// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Callbacks} from "./Callbacks.sol";
import {ISubscriber} from "./interfaces/ISubscriber.sol";
import {Calldata} from "./libraries/Calldata.sol";
import {Lanes} from "./libraries/Lanes.sol";
import {Reverts} from "./libraries/Reverts.sol";
import {Words} from "./libraries/Words.sol";
import {Policy} from "./types/Policy.sol";
import {TopicState} from "./types/TopicState.sol";

/// @notice One page of an event from beginning to end: it is priced, its callbacks are made (`Callbacks`), bills are settled, what is left is
/// recorded, what happened is logged.
abstract contract Delivery is Callbacks {
    using Reverts for bytes4;
    using Words for uint256;
    using Words for uint256[1 << 24];

    /// @dev The entry point has said in the page which topic and positions, and who is paid. An event that is pending must be the one given.
    function _deliverPage(Book storage book, TopicState state, Policy policy, bytes32 key, bytes calldata payload)
        internal
        returns (uint256 remaining)
    {
        unchecked {
            Page memory page = _page()();
            bool fresh = !state.isPending();
            book.state = state.withDelivering();
            _layOut(state.sequence(), key, payload, fresh);
            if (!fresh) _requirePending(book);
            _prepare(state, policy, key, payload);
            _requireGas(state);

            uint256 all = page.words << 3;
            uint256 to = _least(all, page.from + POSITIONS_MAX);
            _allocate(book, to - page.from);
            to = _serve(to);
            remaining = all - to;
            if (remaining != 0) page.finishGas += fresh ? 2 * FRESH_WRITE_GAS + 4_200 : WRITE_GAS;
            _settle(to);
            uint256 rewards = page.billed * page.reward;
            uint256 topicCredit = _pay(page.payee, page.gasPaid) + _pay(page.rewardPayee, rewards);

            state = book.state.withDelivered(remaining != 0).withMoreCredit(topicCredit);
            if (remaining != 0) _setPending(book, to, fresh);
            else if (page.end == state.end()) state = _withoutTail(book, state);
            book.state = state;
            _emitDelivered(state.sequence(), to, remaining, page.gasPaid + rewards);
        }
    }

    /* PREPARATION */

    /// @dev Lays the callback's calldata out in memory and, where the event is `fresh`, logs it from there: the log's data stand where key
    /// and offset belong, which are written afterwards.
    function _layOut(uint256 sequence, bytes32 key, bytes calldata payload, bool fresh) private {
        Page memory page = _page()();
        bytes4 selector = ISubscriber.onEvent.selector;
        bytes32 published = Published.selector;
        bytes32 topic = page.topic;
        uint256 size;
        assembly ("memory-safe") {
            let padded := and(add(payload.length, 31), not(31))
            size := add(196, padded)
            mstore(add(INPUT, sub(size, 32)), 0)
            calldatacopy(add(INPUT, 196), payload.offset, payload.length)
            mstore(add(INPUT, 164), payload.length)
            if fresh {
                mstore(add(INPUT, 132), 64)
                mstore(add(INPUT, 100), caller())
                log4(add(INPUT, 100), add(96, padded), published, topic, sequence, key)
            }
            mstore(add(INPUT, 132), 160)
            mstore(add(INPUT, 100), key)
            mstore(add(INPUT, 36), sequence)
            mstore(add(INPUT, 4), topic)
            mstore(INPUT, or(selector, shr(32, topic)))
            mstore(0x40, add(add(INPUT, 224), padded))
        }
        page.inputSize = size;
    }

    function _prepare(TopicState state, Policy policy, bytes32 key, bytes calldata payload) private view {
        unchecked {
            Page memory page = _page()();
            uint256 words = (page.end + 7) >> 3;
            page.words = words;
            if (words != 0) page.startWord = state.sequence() % words;
            page.sealedEnd = state.sealedEnd();
            (page.finishGas, page.laneGas) = (FINISH_GAS, LANE_GAS);
            address payee = page.payee;
            if (payee != address(0)) page.finishGas += _credits[payee] == 0 ? FRESH_WRITE_GAS : WRITE_GAS;
            uint256 tokens = Calldata.countTokens(payload);
            if (key != 0) tokens += KEY_TOKENS;
            // Only an estimate of gas hangs on who started the transaction, never a right. A publisher contract copies its payload.
            if (msg.sender != tx.origin) page.outsideGas = policy.publisherGas() + payload.length / 3;
            _price(policy, state, tokens, payload.length, tx.gasprice);
        }
    }

    /// @dev All callbacks, or the chain's full cap, or nothing: nobody serves a chosen prefix.
    function _requireGas(TopicState state) private view {
        unchecked {
            Page memory page = _page()();
            uint256 need = page.gasAtEntry - gasleft() + state.callbackGas() + RESERVE_GAS + HOLE_GAS * page.end;
            need = _least(need, _fullGas() * FULL_SIXTEENTHS / 16);
            if (page.gasAtEntry < need) NotEnoughGas.selector.revertWith(page.gasAtEntry, need);
        }
    }

    /// @dev Makes room for the `Delivered` log with `positions` outcomes and for what the loops write; what may stay unused comes last.
    function _allocate(Book storage book, uint256 positions) private view {
        unchecked {
            Page memory page = _page()();
            uint256[1 << 24] storage lanes = book.lanes;
            uint256[1 << 24] storage records = book.records;
            uint256 outcomes;
            // Behind a gap: the log of a removal is encoded at the free memory pointer, in two words.
            uint256 size = 9 * positions + 32 + 64 + 64;
            uint256 lanesSlot;
            uint256 recordsSlot;
            assembly ("memory-safe") {
                outcomes := add(mload(0x40), 160)
                calldatacopy(outcomes, calldatasize(), size) // zeros
                mstore(0x40, add(outcomes, sub(size, 64)))
                lanesSlot := lanes.slot
                recordsSlot := records.slot
            }
            page.outcomes = outcomes;
            page.settlements = outcomes + positions + 32;
            page.records = outcomes + size;
            page.recordsPage = type(uint256).max;
            (page.lanesSlot, page.recordsSlot) = (lanesSlot, recordsSlot);
        }
    }

    /* SETTLEMENT */

    /// @dev Shares equally what of the transaction's gas was nobody's own, and gives everyone back what was debited in excess.
    function _settle(uint256 to) private {
        unchecked {
            Page memory page = _page()();
            uint256 rest = _share(to);
            uint256 at = page.settlements;
            for (uint256 position = page.from & ~uint256(7); position < to; position += 8) {
                uint256 refunds = at.read() * rest + (at + 32).read();
                if (refunds != 0) _settleWord(_wordAt(position), refunds);
                at += 64;
            }
        }
    }

    /// @return rest what everyone who shares gets back of what was debited for its share
    function _share(uint256 to) private view returns (uint256 rest) {
        unchecked {
            Page memory page = _page()();
            uint256 sharers = page.billed - page.apart;
            if (sharers == 0) return 0;
            uint256 total =
                page.outsideGas + page.gasAtEntry - gasleft() + page.finishGas + SETTLE_GAS * ((to - page.from) >> 3);
            if (total < page.floorGas) total = page.floorGas;
            uint256 share = total > page.billedGas ? _ceilDiv(total - page.billedGas, sharers) : 0;
            uint256 paid = _cost(_least(share, page.base), page.price) + _ceilDiv(page.dataFee, sharers);
            page.gasPaid += sharers * paid;
            rest = page.share - page.reward - paid;
        }
    }

    function _settleWord(uint256 word, uint256 refunds) private {
        unchecked {
            Page memory page = _page()();
            uint256 slot = page.lanesSlot + word;
            uint256 left = _liveLanes(refunds) & ~_liveLanes(slot.load());
            // Who left during the delivery gets a credit instead, in a slot that leaving has opened; but no crowd of leavers may use up the gas
            // that the page needs to end: then it goes to the payee.
            for (uint256 shift; left >> shift != 0; shift += 32) {
                if (left >> shift & 1 == 0) continue;
                uint256 refund = refunds >> shift & Lanes.MASK;
                refunds -= refund << shift;
                if (gasleft() < page.reserve + LEAVER_GAS) page.gasPaid += refund;
                else _credit(_recordAt(word << 3 | shift >> 5).subscriber(), refund);
            }
            slot.store(slot.load() + refunds);
        }
    }

    /// @return topicCredit what is left with the topic, where nobody is named
    function _pay(address payee, uint256 amount) private returns (uint256 topicCredit) {
        if (payee == address(0)) return amount;
        if (amount != 0) _credit(payee, amount);
    }

    /* LATER PAGES */

    /// @dev Names an event for its later pages: the hash of the callback's calldata with index 0.
    function _hashEvent() private pure returns (bytes32 hash) {
        Page memory page = _page()();
        uint256 size = page.inputSize;
        assembly ("memory-safe") {
            mstore(add(INPUT, 68), 0)
            hash := keccak256(INPUT, size)
        }
    }

    function _requirePending(Book storage book) private view {
        bytes32 event_ = _hashEvent();
        bytes32 pending = book.pendingEvent;
        if (event_ != pending) WrongEvent.selector.revertWith(uint256(event_), uint256(pending));
    }

    function _setPending(Book storage book, uint256 position, bool fresh) private {
        Page memory page = _page()();
        if (fresh) book.pendingEvent = _hashEvent();
        book.pendingPlace = page.end << 184 | position << 160 | uint160(page.rewardPayee);
    }

    /* END */

    /// @dev Gives the last word of the list back where it is empty.
    function _withoutTail(Book storage book, TopicState state) private view returns (TopicState) {
        unchecked {
            Page memory page = _page()();
            if (page.end < page.live + 8) return state;
            uint256 tail = (page.end - 1) & ~uint256(7);
            return tail >= page.sealedEnd && book.lanes.at(tail >> 3) == 0 ? state.withEnd(tail) : state;
        }
    }

    function _emitDelivered(uint256 sequence, uint256 to, uint256 remaining, uint256 credited) private {
        Page memory page = _page()();
        bytes32 signature = Delivered.selector;
        (bytes32 topic, uint256 from, uint256 outcomes) = (page.topic, page.from, page.outcomes);
        assembly ("memory-safe") {
            let data := sub(outcomes, 160)
            let count := sub(to, from)
            mstore(data, from)
            mstore(add(data, 32), remaining)
            mstore(add(data, 64), credited)
            mstore(add(data, 96), 128)
            mstore(add(data, 128), count)
            log3(data, add(160, and(add(count, 31), not(31))), signature, topic, sequence)
        }
    }
}
