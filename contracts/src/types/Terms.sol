// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @notice What a subscriber accepts, packed: callbackGas 24 | maxPrice 31 | 0 | maxShare 39 | 0, from the lowest bit. The two zero bits are where a
/// subtraction shows that price or share is more than accepted.
type Terms is uint96;

using TermsLibrary for Terms global;

/// @notice Builds and reads `Terms`.
library TermsLibrary {
    /// @dev Any price, any share.
    uint256 internal constant MAX_PRICE = (1 << 31) - 1;
    uint256 internal constant MAX_SHARE = (1 << 39) - 1;

    /// @param gas_ exact gas of each callback
    /// @param price most it pays for gas, in mwei (1e6 wei)
    /// @param share most it pays per event beyond its own gas (reward, base gas, data fee), in gwei
    function pack(uint256 gas_, uint256 price, uint256 share) internal pure returns (Terms) {
        return Terms.wrap(uint96(gas_ | price << 24 | share << 56));
    }

    function callbackGas(Terms self) internal pure returns (uint256) {
        return Terms.unwrap(self) & 0xffffff;
    }

    function maxPrice(Terms self) internal pure returns (uint256) {
        return Terms.unwrap(self) >> 24 & MAX_PRICE;
    }

    function maxShare(Terms self) internal pure returns (uint256) {
        return Terms.unwrap(self) >> 56;
    }
}
