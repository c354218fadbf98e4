// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @notice Storage and memory by the word. Bounds are the caller's: an index below 2^24, a place it has allocated.
library Words {
    function at(uint256[1 << 24] storage self, uint256 index) internal view returns (uint256 word) {
        assembly ("memory-safe") {
            word := sload(add(self.slot, index))
        }
    }

    function put(uint256[1 << 24] storage self, uint256 index, uint256 word) internal {
        assembly ("memory-safe") {
            sstore(add(self.slot, index), word)
        }
    }

    function load(uint256 slot) internal view returns (uint256 word) {
        assembly ("memory-safe") {
            word := sload(slot)
        }
    }

    function store(uint256 slot, uint256 word) internal {
        assembly ("memory-safe") {
            sstore(slot, word)
        }
    }

    function read(uint256 place) internal pure returns (uint256 word) {
        assembly ("memory-safe") {
            word := mload(place)
        }
    }

    function write(uint256 place, uint256 word) internal pure {
        assembly ("memory-safe") {
            mstore(place, word)
        }
    }

    function writeByte(uint256 place, uint256 value) internal pure {
        assembly ("memory-safe") {
            mstore8(place, value)
        }
    }
}
