// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @notice Subscription records kept in the code of a contract that does nothing: reading 760 of them costs about as much as four SLOADs.
library Pages {
    /// @dev Whole words of eight lanes, and a STOP byte before them, within the 24,576 bytes of a contract (EIP-170).
    uint256 internal constant RECORDS = 760;

    error PageNotCreated();

    /// @notice Memory for `count` records, with the room before them that `create` needs.
    function allocate(uint256 count) internal pure returns (uint256 memory_) {
        assembly ("memory-safe") {
            memory_ := add(mload(0x40), 32)
            mstore(0x40, add(memory_, shl(5, count)))
        }
    }

    /// @notice Puts the `count` records at `memory_` into code.
    /// @dev The 32 bytes before `memory_` are overwritten.
    function create(uint256 memory_, uint256 count) internal returns (uint256 page) {
        assembly ("memory-safe") {
            let size := add(shl(5, count), 1)
            // PUSH2 size DUP1 PUSH1 10 RETURNDATASIZE CODECOPY RETURNDATASIZE RETURN STOP
            mstore(sub(memory_, 32), or(0x61000080600a3d393df300, shl(64, size)))
            page := create(0, sub(memory_, 11), add(size, 10))
        }
        if (page == 0) revert PageNotCreated();
    }

    /// @notice Copies `count` records from the one at `offset` on to `memory_`.
    function read(uint256 page, uint256 offset, uint256 count, uint256 memory_) internal view {
        assembly ("memory-safe") {
            extcodecopy(page, memory_, add(shl(5, offset), 1), shl(5, count))
        }
    }
}
