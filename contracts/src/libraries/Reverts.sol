// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @notice Reverts with a custom error of one, two or three words, in half the code that `revert` takes.
/// @dev The words overwrite the memory from 0 on, which nobody reads any more.
library Reverts {
    using Reverts for bytes4;

    function revertWith(bytes4 selector, uint256 have) internal pure {
        assembly ("memory-safe") {
            mstore(0, shr(224, selector))
            mstore(32, have)
            revert(28, 36)
        }
    }

    function revertWith(bytes4 selector, uint256 have, uint256 need) internal pure {
        assembly ("memory-safe") {
            mstore(0, shr(224, selector))
            mstore(32, have)
            mstore(64, need)
            revert(28, 68)
        }
    }

    function revertWith(bytes4 selector, uint256 what, uint256 have, uint256 need) internal pure {
        assembly ("memory-safe") {
            mstore(0, shr(224, selector))
            mstore(32, what)
            mstore(64, have)
            mstore(96, need)
            revert(28, 100)
        }
    }

    function revertWith(bytes4 selector, bytes32 what) internal pure {
        selector.revertWith(uint256(what));
    }

    function revertWith(bytes4 selector, address have, address need) internal pure {
        selector.revertWith(uint256(uint160(have)), uint256(uint160(need)));
    }

    function revertWith(bytes4 selector, bytes32 what, address account) internal pure {
        selector.revertWith(uint256(what), uint256(uint160(account)));
    }
}
