// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Books} from "./Books.sol";
import {IExchanges} from "../interfaces/IExchanges.sol";
import {IGauge} from "../interfaces/IGauge.sol";
import {IMessageSubscriber} from "../interfaces/IMessageSubscriber.sol";
import {ITopics} from "../interfaces/ITopics.sol";
import {TopicReader} from "../libraries/TopicReader.sol";
import {Outcome} from "../types/Outcome.sol";
import {QueueState} from "../types/QueueState.sol";

/// @notice What a queue does with a message: deliver it, hold it, release it, give it up.
abstract contract Holding is Books {
    using TopicReader for ITopics;

    /// @dev A page may end early only in a transaction with so much gas: nobody serves a chosen few, and a node's estimate finds the gas
    /// with which all are served.
    uint256 public constant FULL_GAS = 8_000_000;
    /// @dev Per queue.
    uint256 public constant HELD_MAX = 1_024;
    /// @dev For what follows the last callback of a page: its place, its hash, its log.
    uint256 private constant FINISH_GAS = 180_000;
    /// @dev What a callback costs beside its own gas: a cold account and record, the 64th that stays behind is counted apart.
    uint256 private constant CALLBACK_OVERHEAD_GAS = 8_000;
    uint256 private constant CREDIT_GAS = 24_000;
    uint256 private constant GAUGE_GAS = 50_000;
    uint256 private constant VALUE = 1 << 128;

    /// @notice Where a page of deliveries begins and what it may use.
    struct Page {
        uint256 gasAtEntry;
        /// Gas for what others have to do after this page.
        uint256 reserve;
        uint256 place;
        uint256 served;
        uint256 paid;
        bool isFresh;
    }

    /* ARRIVAL */

    /// @dev The header says where the message comes from and what value it brings; the rest is filled in here.
    function _arrive(bytes32 queue, Header memory header, bytes calldata key, bytes calldata payload, Page memory page)
        internal
    {
        Queue storage book = _queues[queue];
        QueueState state = book.state;
        bool isDue = state.condition() == uint256(Condition.AtOnce) && state.isIdle();
        if (isDue && state.live() != 0 && gasleft() < _needOf(state, header.value, page.reserve)) {
            require(page.gasAtEntry >= FULL_GAS, TooLittleGas(page.gasAtEntry, FULL_GAS));
            isDue = false;
        }
        if (!isDue && state.held() >= HELD_MAX) {
            emit Overflowed(queue, header.exchange, header.sequence);
            _giveBack(header);
            return;
        }
        if (!state.takesValue()) _giveBack(header);
        state = state.withNextNumber();
        (header.number, header.entitled, header.arrived) = (state.number(), state.live(), block.timestamp);
        header.mark = state.condition() == uint256(Condition.Event) ? _sequenceOf(book.subject) : 0;
        if (isDue) {
            book.state = state.withDelivering();
            (page.place, page.served, page.paid, page.isFresh) = (0, 0, 0, true);
            _deliver(queue, header, key, payload, page);
            return;
        }
        if (header.value != 0) book.money += header.value * VALUE;
        book.heldAt[_placeOf(state, state.held())] = _hashOf(header, key, payload);
        book.state = state.withNewest();
        emit Held(queue, header.number, header);
    }

    /* DELIVERY */

    /// @dev Serves those entitled, from the page's place on, as far as gas goes. The queue is marked as delivering: meanwhile whoever
    /// leaves keeps its place, whoever joins comes too late for this message, and what arrives is held.
    /// @return done whether all were served
    function _deliver(bytes32 queue, Header memory header, bytes calldata key, bytes calldata payload, Page memory page)
        private
        returns (bool done)
    {
        unchecked {
            Queue storage book = _queues[queue];
            (uint256 first, bytes memory outcomes) = (page.place, _serve(book, queue, header, key, payload, page));
            done = page.served == header.entitled;
            require(done || page.gasAtEntry >= FULL_GAS, TooLittleGas(page.gasAtEntry, FULL_GAS));
            if (!done) {
                if (page.isFresh) {
                    book.pending = _hashOf(header, key, payload);
                    emit Held(queue, header.number, header);
                }
                book.pendingPlace = page.place | page.served << 24;
            }
            if (!page.isFresh) book.money -= page.paid * VALUE;
            else if (!done && header.value != 0) book.money += (header.value - page.paid) * VALUE;
            book.state = book.state.withDelivered(!done);
            uint256 remaining = header.entitled - page.served;
            emit Handed(queue, header.number, header.exchange, header.sequence, first, remaining, outcomes);
        }
    }

    function _serve(
        Queue storage book,
        bytes32 queue,
        Header memory header,
        bytes calldata key,
        bytes calldata payload,
        Page memory page
    ) private returns (bytes memory outcomes) {
        unchecked {
            uint256 first = page.place;
            uint256 callbackGas = book.state.callbackGas();
            uint256 need = _needOf(book.state, header.value, page.reserve);
            outcomes = new bytes(book.state.end() - first);
            bytes memory input = abi.encodeCall(
                IMessageSubscriber.onMessage, (queue, header.number, header.exchange, header.publisher, key, payload)
            );
            while (page.served < header.entitled && gasleft() >= need) {
                uint256 record = book.records[page.place];
                if (_isEntitled(record, header.number)) {
                    address subscriber = address(uint160(record));
                    uint256 share = _shareOf(header.value, header.entitled, page.served++);
                    page.paid += share;
                    if (share != 0) _credit(subscriber, share);
                    Outcome outcome = record >> 200 == 0 ? _call(subscriber, callbackGas, input) : Outcome.Removed;
                    outcomes[page.place - first] = bytes1(uint8(outcome));
                }
                ++page.place;
            }
            uint256 seen = page.place - first;
            assembly ("memory-safe") {
                mstore(outcomes, seen)
            }
        }
    }

    /// @dev The gas with which one more callback can be made.
    function _needOf(QueueState state, uint256 value, uint256 reserve) private pure returns (uint256) {
        unchecked {
            uint256 callbackGas = state.callbackGas();
            uint256 creditGas = value == 0 ? 0 : CREDIT_GAS;
            return reserve + FINISH_GAS + CALLBACK_OVERHEAD_GAS + callbackGas + callbackGas / 63 + creditGas;
        }
    }

    function _isEntitled(uint256 record, uint256 number) private pure returns (bool) {
        uint256 left = record >> 200;
        return (record >> 160 & 0xffffffffff) < number && (left == 0 || number < left);
    }

    /// @dev The first ones get a wei more, so that all shares are the whole.
    function _shareOf(uint256 value, uint256 parts, uint256 place) internal pure returns (uint256) {
        unchecked {
            return value / parts + (place < value % parts ? 1 : 0);
        }
    }

    /// @dev With exactly this gas, and without copying what comes back.
    function _call(address to, uint256 callbackGas, bytes memory input) private returns (Outcome outcome) {
        bool success;
        bool isSilent;
        assembly ("memory-safe") {
            success := call(callbackGas, to, 0, add(input, 32), mload(input), 0, 0)
            isSilent := iszero(returndatasize())
        }
        if (!success) return Outcome.Failed;
        return isSilent && to.code.length == 0 ? Outcome.NoCode : Outcome.Delivered;
    }

    /* RELEASE */

    /// @inheritdoc IExchanges
    function release(bytes32 queue, Header calldata header, bytes calldata key, bytes calldata payload, address payee)
        external
        returns (bool done)
    {
        Page memory page;
        page.gasAtEntry = gasleft();
        Queue storage book = _openQueue(queue);
        QueueState state = book.state;
        require(!state.isDelivering(), QueueBusy(queue));
        bytes32 hash = _hashOf(header, key, payload);
        if (state.isPending()) {
            require(hash == book.pending, WrongMessage(hash, book.pending));
            (page.place, page.served) = (book.pendingPlace & 0xffffff, book.pendingPlace >> 24);
        } else {
            uint256 place = _nextPlace(queue, state);
            require(hash == book.heldAt[place], WrongMessage(hash, book.heldAt[place]));
            uint256 end = header.arrived + _lifetimeOf(book);
            require(block.timestamp < end, IsExpired(end));
            require(isReleasable(queue, header), NotReleasable(queue, Condition(state.condition())));
            delete book.heldAt[place];
            book.pending = hash;
            state = state.isLifo() ? state.withoutNewest() : state.withoutOldest();
        }
        book.state = state.withDelivering();
        done = _deliver(queue, header, key, payload, page);
        _reward(book, payee);
    }

    /// @inheritdoc IExchanges
    function expire(bytes32 queue, Header calldata header, bytes calldata key, bytes calldata payload, address payee)
        external
    {
        Queue storage book = _openQueue(queue);
        QueueState state = book.state;
        require(!state.isDelivering(), QueueBusy(queue));
        require(state.held() != 0, NothingHeld(queue));
        bytes32 hash = _hashOf(header, key, payload);
        require(hash == book.heldAt[state.first()], WrongMessage(hash, book.heldAt[state.first()]));
        uint256 end = header.arrived + _lifetimeOf(book);
        require(block.timestamp >= end || _mayRefuse(book, state), NotExpired(end));

        Header memory given = header;
        delete book.heldAt[state.first()];
        book.state = state.withoutOldest();
        book.money -= given.value * VALUE;
        emit Expired(queue, given.number, book.deadLetter);
        _giveBack(given);
        _reward(book, payee);
        if (book.deadLetter == 0) return;
        Page memory page;
        page.gasAtEntry = gasleft();
        _arrive(book.deadLetter, given, key, payload, page);
    }

    /// @inheritdoc IExchanges
    function isReleasable(bytes32 queue, Header calldata header) public view returns (bool) {
        Queue storage book = _openQueue(queue);
        Condition condition = Condition(book.state.condition());
        if (condition == Condition.AtOnce) return true;
        if (condition == Condition.Time) {
            uint256 delay = book.terms >> 32 & 0xffffffff;
            return block.timestamp >= book.terms >> 64 & type(uint64).max && block.timestamp >= header.arrived + delay;
        }
        if (condition == Condition.Event) return _sequenceOf(book.subject) > header.mark;
        if (condition == Condition.Account) return msg.sender == _accountOf(book);
        (uint256 sequence, int256 value) = _readGauge(_accountOf(book));
        if (sequence == 0) return false;
        return condition == Condition.Above ? value > book.threshold : value < book.threshold;
    }

    /* SMALL THINGS */

    function _hashOf(Header memory header, bytes calldata key, bytes calldata payload) private pure returns (bytes32) {
        return keccak256(abi.encode(header, keccak256(key), keccak256(payload)));
    }

    /// @dev Of the `index`-th held message, the oldest being 0.
    function _placeOf(QueueState state, uint256 index) internal pure returns (uint256) {
        unchecked {
            return (state.first() + index) & 0xffffffff;
        }
    }

    function _nextPlace(bytes32 queue, QueueState state) private pure returns (uint256) {
        unchecked {
            require(state.held() != 0, NothingHeld(queue));
            return state.isLifo() ? _placeOf(state, state.held() - 1) : state.first();
        }
    }

    /// @dev The account that a queue waits for takes messages by releasing them, so it may also refuse them.
    function _mayRefuse(Queue storage book, QueueState state) private view returns (bool) {
        return state.condition() == uint256(Condition.Account) && msg.sender == _accountOf(book);
    }

    function _accountOf(Queue storage book) private view returns (address) {
        return address(uint160(uint256(book.subject)));
    }

    function _lifetimeOf(Queue storage book) private view returns (uint256) {
        return book.terms & 0xffffffff;
    }

    function _reward(Queue storage book, address payee) private {
        unchecked {
            uint256 reward = book.terms >> 128;
            if (reward == 0) return;
            uint256 fund_ = book.money & VALUE - 1;
            if (reward > fund_) reward = fund_;
            book.money -= reward;
            _credit(payee, reward);
        }
    }

    function _sequenceOf(bytes32 topic) internal view returns (uint256) {
        return topics.stateOf(topic).sequence();
    }

    function _readGauge(address gauge) private view returns (uint256 sequence, int256 value) {
        bytes4 selector = IGauge.latest.selector;
        assembly ("memory-safe") {
            mstore(0, selector)
            let success := staticcall(GAUGE_GAS, gauge, 0, 4, 0, 64)
            if and(success, eq(returndatasize(), 64)) {
                sequence := mload(0)
                value := mload(32)
            }
        }
    }
}
