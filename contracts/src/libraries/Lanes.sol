// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @notice Eight deposits in one storage word. A lane holds deposit + 1, in gwei; 0 means that nobody holds the index.
/// @dev A word must never be cached across a call: a neighbour may change its lane inside it.
library Lanes {
    uint256 internal constant MASK = 0xffffffff;

    /// @dev Gwei, about 2.1 ether. Half of what a lane can hold, so that a refund always fits on top of a full deposit.
    uint256 internal constant DEPOSIT_MAX = (1 << 31) - 1;

    function laneAt(uint256[1 << 24] storage self, uint256 index) internal view returns (uint256 lane) {
        assembly ("memory-safe") {
            lane := and(shr(and(shl(5, index), 255), sload(add(self.slot, shr(3, index)))), MASK)
        }
    }

    function putLane(uint256[1 << 24] storage self, uint256 index, uint256 lane) internal {
        assembly ("memory-safe") {
            let slot := add(self.slot, shr(3, index))
            let shift := and(shl(5, index), 255)
            sstore(slot, or(and(sload(slot), not(shl(shift, MASK))), shl(shift, lane)))
        }
    }
}
