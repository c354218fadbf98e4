// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @notice Everything an arrival must know of a queue, in one storage word.
/// @dev From the lowest bit: stamp 80 | number 40 | end 16 | live 16 | held 16 | first 32 | callbackGas 24 | condition 3 | flags 7.
type QueueState is uint256;

using QueueStateLibrary for QueueState global;

library QueueStateLibrary {
    uint256 private constant NUMBER = 1 << 80;
    uint256 private constant END = 1 << 120;
    uint256 private constant LIVE = 1 << 136;
    uint256 private constant HELD = 1 << 152;
    uint256 private constant FIRST = 1 << 168;
    uint256 private constant EXISTS = 1 << 227;
    uint256 private constant OPEN_BINDING = 1 << 228;
    uint256 private constant OPEN_SUBSCRIBING = 1 << 229;
    uint256 private constant OPEN_VALUE = 1 << 230;
    uint256 private constant LIFO = 1 << 231;
    uint256 private constant DELIVERING = 1 << 232;
    uint256 private constant PENDING = 1 << 233;

    function make(uint256 callbackGas_, uint256 condition_, bool binding, bool subscribing, bool value, bool lifo)
        internal
        pure
        returns (QueueState)
    {
        uint256 raw = EXISTS | callbackGas_ << 200 | condition_ << 224;
        if (binding) raw |= OPEN_BINDING;
        if (subscribing) raw |= OPEN_SUBSCRIBING;
        if (value) raw |= OPEN_VALUE;
        if (lifo) raw |= LIFO;
        return QueueState.wrap(raw);
    }

    /* READING */

    /// @dev The last message that an exchange chose this queue for.
    function stamp(QueueState self) internal pure returns (uint256) {
        return QueueState.unwrap(self) & NUMBER - 1;
    }

    /// @dev Of the last message that arrived.
    function number(QueueState self) internal pure returns (uint256) {
        return QueueState.unwrap(self) >> 80 & 0xffffffffff;
    }

    /// @dev Places below this one are, or were, subscriptions.
    function end(QueueState self) internal pure returns (uint256) {
        return QueueState.unwrap(self) >> 120 & 0xffff;
    }

    function live(QueueState self) internal pure returns (uint256) {
        return QueueState.unwrap(self) >> 136 & 0xffff;
    }

    function held(QueueState self) internal pure returns (uint256) {
        return QueueState.unwrap(self) >> 152 & 0xffff;
    }

    /// @dev Where the oldest held message stands; those that came later stand behind it.
    function first(QueueState self) internal pure returns (uint256) {
        return QueueState.unwrap(self) >> 168 & 0xffffffff;
    }

    function callbackGas(QueueState self) internal pure returns (uint256) {
        return QueueState.unwrap(self) >> 200 & 0xffffff;
    }

    function condition(QueueState self) internal pure returns (uint256) {
        return QueueState.unwrap(self) >> 224 & 7;
    }

    function exists(QueueState self) internal pure returns (bool) {
        return QueueState.unwrap(self) & EXISTS != 0;
    }

    function isOpenToBinding(QueueState self) internal pure returns (bool) {
        return QueueState.unwrap(self) & OPEN_BINDING != 0;
    }

    function isOpenToSubscribing(QueueState self) internal pure returns (bool) {
        return QueueState.unwrap(self) & OPEN_SUBSCRIBING != 0;
    }

    function isOpenToValue(QueueState self) internal pure returns (bool) {
        return QueueState.unwrap(self) & OPEN_VALUE != 0;
    }

    function isLifo(QueueState self) internal pure returns (bool) {
        return QueueState.unwrap(self) & LIFO != 0;
    }

    function isDelivering(QueueState self) internal pure returns (bool) {
        return QueueState.unwrap(self) & DELIVERING != 0;
    }

    function isPending(QueueState self) internal pure returns (bool) {
        return QueueState.unwrap(self) & PENDING != 0;
    }

    /// @dev No message is held, half delivered or being delivered.
    function isIdle(QueueState self) internal pure returns (bool) {
        return QueueState.unwrap(self) & (DELIVERING | PENDING | 0xffff * HELD) == 0;
    }

    /// @dev Somebody is there, and is not several by being anybody.
    function takesValue(QueueState self) internal pure returns (bool) {
        return self.live() != 0 && (!self.isOpenToSubscribing() || self.isOpenToValue());
    }

    /* CHANGING */

    function withStamp(QueueState self, uint256 stamp_) internal pure returns (QueueState) {
        return QueueState.wrap(QueueState.unwrap(self) & ~(NUMBER - 1) | stamp_);
    }

    function withNextNumber(QueueState self) internal pure returns (QueueState) {
        unchecked {
            return QueueState.wrap(QueueState.unwrap(self) + NUMBER);
        }
    }

    function withDelivering(QueueState self) internal pure returns (QueueState) {
        return QueueState.wrap(QueueState.unwrap(self) | DELIVERING);
    }

    /// @dev The end of a page: `pending` tells whether deliveries are left.
    function withDelivered(QueueState self, bool pending) internal pure returns (QueueState) {
        uint256 cleared = QueueState.unwrap(self) & ~(DELIVERING | PENDING);
        return QueueState.wrap(pending ? cleared | PENDING : cleared);
    }

    function withNewest(QueueState self) internal pure returns (QueueState) {
        unchecked {
            return QueueState.wrap(QueueState.unwrap(self) + HELD);
        }
    }

    function withoutNewest(QueueState self) internal pure returns (QueueState) {
        unchecked {
            return QueueState.wrap(QueueState.unwrap(self) - HELD);
        }
    }

    /// @dev 32 bits count 4 billion messages held in a row; the arithmetic on places is modulo that.
    function withoutOldest(QueueState self) internal pure returns (QueueState) {
        unchecked {
            uint256 raw = QueueState.unwrap(self) - HELD;
            uint256 next = (self.first() + 1) & 0xffffffff;
            return QueueState.wrap(raw & ~(uint256(0xffffffff) * FIRST) | next * FIRST);
        }
    }

    function withJoined(QueueState self) internal pure returns (QueueState) {
        unchecked {
            return QueueState.wrap(QueueState.unwrap(self) + END + LIVE);
        }
    }

    function withLeft(QueueState self) internal pure returns (QueueState) {
        unchecked {
            return QueueState.wrap(QueueState.unwrap(self) - LIVE);
        }
    }

    function withoutLastPlace(QueueState self) internal pure returns (QueueState) {
        unchecked {
            return QueueState.wrap(QueueState.unwrap(self) - END);
        }
    }
}
