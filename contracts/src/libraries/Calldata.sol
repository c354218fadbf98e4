// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @notice What calldata costs a transaction.
library Calldata {
    uint256 private constant LOW_BITS = 0x7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f;
    uint256 private constant ONES = 0x0101010101010101010101010101010101010101010101010101010101010101;

    /// @dev Bytes up to which zeros are not looked for: that would cost as much as it could tell.
    uint256 private constant SHORT = 128;

    /// @notice Tokens in the sense of EIP-7623: one for a zero byte, four for another.
    function countTokens(bytes calldata data) internal pure returns (uint256 tokens) {
        unchecked {
            if (data.length <= SHORT) return 4 * data.length;
        }
        assembly ("memory-safe") {
            let last := add(data.offset, data.length)
            for { let at := data.offset } lt(at, last) { at := add(at, 32) } {
                let word := calldataload(at)
                let rest := sub(last, at)
                if lt(rest, 32) { word := shl(shl(3, sub(32, rest)), shr(shl(3, sub(32, rest)), word)) }
                // The highest bit of every byte that is not zero, moved down, then summed by one multiplication.
                let marks := and(shr(7, or(add(and(word, LOW_BITS), LOW_BITS), word)), ONES)
                tokens := add(tokens, shr(248, mul(marks, ONES)))
            }
            tokens := add(mul(tokens, 3), data.length)
        }
    }

    /// @dev In memory behind what is allocated, which is free again afterwards.
    function hash(bytes calldata data) internal pure returns (bytes32 hash_) {
        assembly ("memory-safe") {
            let free := mload(0x40)
            calldatacopy(free, data.offset, data.length)
            hash_ := keccak256(free, data.length)
        }
    }

    /// @notice Whether the chain charges EIP-7623's calldata floor.
    /// @dev It came in one fork with the BLS12 precompiles: without gas the one at 0x0b fails, where an empty account would succeed.
    function hasFloor() internal view returns (bool yes) {
        assembly ("memory-safe") {
            yes := iszero(staticcall(0, 0x0b, 0, 0, 0, 0))
        }
    }
}
