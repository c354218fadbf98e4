// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Terms} from "./Terms.sol";

/// @notice A subscription without its deposit: its subscriber in the highest 160 bits, its terms below.
type Record is uint256;

using RecordLibrary for Record global;

library RecordLibrary {
    function make(address subscriber_, Terms terms_) internal pure returns (Record) {
        return Record.wrap(uint256(uint160(subscriber_)) << 96 | Terms.unwrap(terms_));
    }

    function subscriber(Record self) internal pure returns (address) {
        return address(uint160(Record.unwrap(self) >> 96));
    }

    function terms(Record self) internal pure returns (Terms) {
        return Terms.wrap(uint96(Record.unwrap(self)));
    }

    function callbackGas(Record self) internal pure returns (uint256) {
        return Record.unwrap(self) & 0xffffff;
    }

    /// @dev In wei.
    function maxPrice(Record self) internal pure returns (uint256) {
        unchecked {
            return (Record.unwrap(self) >> 24 & 0xffffffff) * 1e6;
        }
    }

    /// @dev In gwei.
    function maxShare(Record self) internal pure returns (uint256) {
        return Record.unwrap(self) >> 56 & 0xffffffffff;
    }
}
