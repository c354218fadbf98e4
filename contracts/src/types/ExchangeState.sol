// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @notice Everything a publish must know of an exchange, in one storage word.
/// @dev From the lowest bit: sequence 48 | serial 32 | fee 96 | flags 3.
type ExchangeState is uint256;

using ExchangeStateLibrary for ExchangeState global;

library ExchangeStateLibrary {
    uint256 internal constant FEE_MAX = type(uint96).max;
    uint256 private constant EXISTS = 1 << 176;
    uint256 private constant OPEN = 1 << 177;
    uint256 private constant HASH_MAY_BE_NOTHING = 1 << 178;

    function make(uint256 serial, uint256 fee_, bool open, bool hashMayBeNothing_)
        internal
        pure
        returns (ExchangeState)
    {
        uint256 raw = EXISTS | serial << 48 | fee_ << 80;
        if (open) raw |= OPEN;
        if (hashMayBeNothing_) raw |= HASH_MAY_BE_NOTHING;
        return ExchangeState.wrap(raw);
    }

    function exists(ExchangeState self) internal pure returns (bool) {
        return ExchangeState.unwrap(self) & EXISTS != 0;
    }

    function isOpen(ExchangeState self) internal pure returns (bool) {
        return ExchangeState.unwrap(self) & OPEN != 0;
    }

    function hashMayBeNothing(ExchangeState self) internal pure returns (bool) {
        return ExchangeState.unwrap(self) & HASH_MAY_BE_NOTHING != 0;
    }

    function sequence(ExchangeState self) internal pure returns (uint256) {
        return ExchangeState.unwrap(self) & 0xffffffffffff;
    }

    function fee(ExchangeState self) internal pure returns (uint256) {
        return ExchangeState.unwrap(self) >> 80 & FEE_MAX;
    }

    /// @dev Names the last message among those of all exchanges.
    function stamp(ExchangeState self) internal pure returns (uint256) {
        return ExchangeState.unwrap(self) & (1 << 80) - 1;
    }

    function withNextSequence(ExchangeState self) internal pure returns (ExchangeState) {
        unchecked {
            return ExchangeState.wrap(ExchangeState.unwrap(self) + 1);
        }
    }
}
