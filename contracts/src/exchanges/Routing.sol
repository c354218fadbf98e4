// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Books} from "./Books.sol";
import {IExchanges} from "../interfaces/IExchanges.sol";
import {Keys, Pattern} from "../libraries/Keys.sol";
import {ExchangeState} from "../types/ExchangeState.sol";
import {QueueState} from "../types/QueueState.sol";

/// @notice Bindings, and which queues a routing key means.
abstract contract Routing is Books {
    using Keys for Pattern;

    uint256 private constant BINDINGS_MAX = 65_536;
    /// @dev Places of an edge's two fields.
    uint256 private constant PLACE = 8;
    uint256 private constant DIRECT_PLACE = 48;
    uint256 private constant PLACE_MASK = 0xffffffffff;

    /* BINDINGS */

    /// @inheritdoc IExchanges
    function requestBinding(bytes32 exchange, bytes32 queue, string calldata key) external {
        Exchange storage book = _openExchange(exchange);
        _requireOwner(exchange);
        QueueState state = _openQueue(queue).state;
        require(Keys.isBindingKey(bytes(key)), WrongKey(Keys.findFlaw(bytes(key))));
        bytes32 edge = _edgeOf(exchange, queue, keccak256(bytes(key)));
        _requireNone(edge, queue);
        if (state.isOpenToBinding() || _isOwner(queue)) {
            _bind(book, exchange, queue, key, edge);
        } else {
            _edges[edge] = uint256(Status.Requested);
            emit BindingChanged(exchange, queue, Status.Requested, key);
        }
    }

    /// @inheritdoc IExchanges
    function approveBinding(bytes32 exchange, bytes32 queue, string calldata key) external {
        _requireOwner(queue);
        bytes32 edge = _edgeOf(exchange, queue, keccak256(bytes(key)));
        _requireRequested(edge, exchange);
        _bind(_exchanges[exchange], exchange, queue, key, edge);
    }

    /// @inheritdoc IExchanges
    function removeBinding(bytes32 exchange, bytes32 queue, string calldata key) external {
        _requireEither(exchange, _ownerOf(queue));
        bytes32 edge = _edgeOf(exchange, queue, keccak256(bytes(key)));
        Status status = _farewell(edge, queue);
        if (status == Status.Removed) _unbind(_exchanges[exchange], exchange, keccak256(bytes(key)), _edges[edge]);
        delete _edges[edge];
        emit BindingChanged(exchange, queue, status, key);
    }

    function _bind(Exchange storage book, bytes32 exchange, bytes32 queue, string calldata key, bytes32 edge) private {
        bytes32[] storage direct = book.direct[keccak256(bytes(key))];
        uint256 place = book.bindings.length;
        require(place < BINDINGS_MAX, TooMany(exchange, BINDINGS_MAX));
        _edges[edge] = uint256(Status.Approved) | place << PLACE | direct.length << DIRECT_PLACE;
        book.bindings.push(Binding(bytes(key), queue));
        direct.push(queue);
        emit BindingChanged(exchange, queue, Status.Approved, key);
    }

    /// @dev The last of each list takes the place that becomes free, so that no list has a hole.
    function _unbind(Exchange storage book, bytes32 exchange, bytes32 keyHash, uint256 fields) private {
        unchecked {
            uint256 place = fields >> PLACE & PLACE_MASK;
            uint256 last = book.bindings.length - 1;
            if (place != last) {
                Binding storage moved = book.bindings[last];
                _move(_edgeOf(exchange, moved.queue, keccak256(moved.key)), PLACE, place);
                book.bindings[place] = moved;
            }
            book.bindings.pop();

            bytes32[] storage direct = book.direct[keyHash];
            place = fields >> DIRECT_PLACE;
            last = direct.length - 1;
            if (place != last) {
                bytes32 queue = direct[last];
                _move(_edgeOf(exchange, queue, keyHash), DIRECT_PLACE, place);
                direct[place] = queue;
            }
            direct.pop();
        }
    }

    function _move(bytes32 edge, uint256 field, uint256 place) private {
        _edges[edge] = _edges[edge] & ~(PLACE_MASK << field) | place << field;
    }

    /* MATCHING */

    /// @dev The queues that the first part of a key means, each once: a queue keeps the stamp of the last message it was chosen for.
    function _choose(Exchange storage book, ExchangeState state, bytes calldata part)
        internal
        returns (bytes32[] memory chosen)
    {
        unchecked {
            Pattern memory pattern = Keys.parse(part, state.hashMayBeNothing());
            if (pattern.isDirect) return book.direct[keccak256(part)];
            uint256 length = book.bindings.length;
            uint256 count;
            chosen = new bytes32[](length);
            for (uint256 i; i < length; ++i) {
                Binding storage binding = _bindingAt(book.bindings, i);
                if (!pattern.isFanout && !_isMeant(pattern, binding.key)) continue;
                bytes32 queue = binding.queue;
                QueueState queueState = _queues[queue].state;
                if (queueState.stamp() == state.stamp()) continue;
                _queues[queue].state = queueState.withStamp(state.stamp());
                chosen[count++] = queue;
            }
            assembly ("memory-safe") {
                mstore(chosen, count)
            }
        }
    }

    /// @dev Without a look at the length, which the loop knows.
    function _bindingAt(Binding[] storage bindings, uint256 place) private pure returns (Binding storage binding) {
        assembly ("memory-safe") {
            mstore(0, bindings.slot)
            binding.slot := add(keccak256(0, 32), shl(1, place))
        }
    }

    /// @dev A short key is one word of storage, and one in memory that is not kept.
    function _isMeant(Pattern memory pattern, bytes storage key) private view returns (bool) {
        unchecked {
            uint256 word;
            assembly ("memory-safe") {
                word := sload(key.slot)
            }
            if (word & 1 == 0) {
                uint256 scratch;
                assembly ("memory-safe") {
                    scratch := mload(0x40)
                    mstore(scratch, word)
                }
                return pattern.means(scratch, (word & 0xff) >> 1);
            }
            bytes memory long = key;
            uint256 at;
            assembly ("memory-safe") {
                at := add(long, 32)
            }
            return pattern.means(at, long.length);
        }
    }

    /// @inheritdoc IExchanges
    function isMatch(bytes calldata key, string calldata binding, bool hashMayBeNothing) external pure returns (bool) {
        (uint256 first, uint256 flaw) = Keys.split(key);
        require(first != 0, WrongKey(flaw));
        require(Keys.isBindingKey(bytes(binding)), WrongKey(Keys.findFlaw(bytes(binding))));
        Pattern memory pattern = Keys.parse(key[:first], hashMayBeNothing);
        bytes memory copy = bytes(binding);
        uint256 at;
        assembly ("memory-safe") {
            at := add(copy, 32)
        }
        return pattern.means(at, copy.length);
    }
}
