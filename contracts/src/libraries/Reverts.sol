// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @notice Reverts with a custom error of one, two or three words, in one place of the code instead of at every use.
library Reverts {
    using Reverts for bytes4;

    function revertWith(bytes4 selector, bytes32 what) internal pure {
        _revertWith(selector, uint256(what), 0, 0, 36);
    }

    function revertWith(bytes4 selector, uint256 have) internal pure {
        _revertWith(selector, have, 0, 0, 36);
    }

    function revertWith(bytes4 selector, uint256 have, uint256 need) internal pure {
        _revertWith(selector, have, need, 0, 68);
    }

    function revertWith(bytes4 selector, address have, address need) internal pure {
        _revertWith(selector, uint256(uint160(have)), uint256(uint160(need)), 0, 68);
    }

    function revertWith(bytes4 selector, bytes32 what, address account) internal pure {
        _revertWith(selector, uint256(what), uint256(uint160(account)), 0, 68);
    }

    function revertWith(bytes4 selector, uint256 what, uint256 have, uint256 need) internal pure {
        _revertWith(selector, what, have, need, 100);
    }

    function _revertWith(bytes4 selector, uint256 a, uint256 b, uint256 c, uint256 size) private pure {
        assembly ("memory-safe") {
            let at := mload(0x40)
            mstore(at, selector)
            mstore(add(at, 4), a)
            mstore(add(at, 36), b)
            mstore(add(at, 68), c)
            revert(at, size)
        }
    }
}
