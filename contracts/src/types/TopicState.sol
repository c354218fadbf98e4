// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @notice Everything a publish must know of a topic, in one storage word.
/// @dev From the lowest bit: sequence 48 | end 24 | live 24 | sealedEnd 24 | callbackGas 48 | credit 56 | flags 4 | callbackGasMax 24.
type TopicState is uint256;

using TopicStateLibrary for TopicState global;

library TopicStateLibrary {
    uint256 private constant LIVE = 1 << 72;
    uint256 private constant CREATED = 1 << 224;
    uint256 private constant OWN_POLICY = 1 << 225;
    uint256 private constant DELIVERING = 1 << 226;
    uint256 private constant PENDING = 1 << 227;
    uint256 private constant INDEX_MASK = 0xffffff;

    function created() internal pure returns (TopicState) {
        return TopicState.wrap(CREATED);
    }

    function sequence(TopicState self) internal pure returns (uint256) {
        return TopicState.unwrap(self) & 0xffffffffffff;
    }

    function end(TopicState self) internal pure returns (uint256) {
        return TopicState.unwrap(self) >> 48 & INDEX_MASK;
    }

    function live(TopicState self) internal pure returns (uint256) {
        return TopicState.unwrap(self) >> 72 & INDEX_MASK;
    }

    function sealedEnd(TopicState self) internal pure returns (uint256) {
        return TopicState.unwrap(self) >> 96 & INDEX_MASK;
    }

    function callbackGas(TopicState self) internal pure returns (uint256) {
        return TopicState.unwrap(self) >> 120 & 0xffffffffffff;
    }

    function credit(TopicState self) internal pure returns (uint256) {
        return TopicState.unwrap(self) >> 168 & 0xffffffffffffff;
    }

    function exists(TopicState self) internal pure returns (bool) {
        return TopicState.unwrap(self) & CREATED != 0;
    }

    function hasOwnPolicy(TopicState self) internal pure returns (bool) {
        return TopicState.unwrap(self) & OWN_POLICY != 0;
    }

    function isDelivering(TopicState self) internal pure returns (bool) {
        return TopicState.unwrap(self) & DELIVERING != 0;
    }

    function isPending(TopicState self) internal pure returns (bool) {
        return TopicState.unwrap(self) & PENDING != 0;
    }

    /// @dev Neither inside a delivery nor between two pages of one: indexes may be reused and sealed.
    function isSettled(TopicState self) internal pure returns (bool) {
        return TopicState.unwrap(self) & (DELIVERING | PENDING) == 0;
    }

    function withNextSequence(TopicState self) internal pure returns (TopicState) {
        unchecked {
            return TopicState.wrap(TopicState.unwrap(self) + 1);
        }
    }

    function withOwnPolicy(TopicState self) internal pure returns (TopicState) {
        return TopicState.wrap(TopicState.unwrap(self) | OWN_POLICY);
    }

    function withDelivering(TopicState self) internal pure returns (TopicState) {
        return TopicState.wrap(TopicState.unwrap(self) | DELIVERING);
    }

    /// @dev The end of a delivery: `pending` tells whether pages are left.
    function withDelivered(TopicState self, bool pending) internal pure returns (TopicState) {
        uint256 cleared = TopicState.unwrap(self) & ~(DELIVERING | PENDING);
        return TopicState.wrap(pending ? cleared | PENDING : cleared);
    }

    function withEnd(TopicState self, uint256 end_) internal pure returns (TopicState) {
        return TopicState.wrap(TopicState.unwrap(self) & ~(INDEX_MASK << 48) | end_ << 48);
    }

    function withNextEnd(TopicState self) internal pure returns (TopicState) {
        unchecked {
            return TopicState.wrap(TopicState.unwrap(self) + (1 << 48));
        }
    }

    function withSealedEnd(TopicState self, uint256 end_) internal pure returns (TopicState) {
        return TopicState.wrap(TopicState.unwrap(self) & ~(INDEX_MASK << 96) | end_ << 96);
    }

    function withoutCredit(TopicState self) internal pure returns (TopicState) {
        return TopicState.wrap(TopicState.unwrap(self) & ~(uint256(0xffffffffffffff) << 168));
    }

    /// @dev 56 bits hold 72 million ether.
    function withMoreCredit(TopicState self, uint256 amount) internal pure returns (TopicState) {
        unchecked {
            return TopicState.wrap(TopicState.unwrap(self) + (amount << 168));
        }
    }

    /// @dev The most that any subscription has ever reserved for its callback.
    function callbackGasMax(TopicState self) internal pure returns (uint256) {
        return TopicState.unwrap(self) >> 228 & 0xffffff;
    }

    /// @dev One more subscription, with a callback of `callbackGas_`, for which `reserved` must be brought.
    function withJoined(TopicState self, uint256 callbackGas_, uint256 reserved) internal pure returns (TopicState) {
        unchecked {
            uint256 raw = TopicState.unwrap(self) + LIVE + (reserved << 120);
            uint256 most = self.callbackGasMax();
            if (callbackGas_ > most) raw += (callbackGas_ - most) << 228;
            return TopicState.wrap(raw);
        }
    }

    /// @dev One subscription less; `gas_` as when it joined.
    function withLeft(TopicState self, uint256 gas_) internal pure returns (TopicState) {
        unchecked {
            return TopicState.wrap(TopicState.unwrap(self) - LIVE - (gas_ << 120));
        }
    }
}
