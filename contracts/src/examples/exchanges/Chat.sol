// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {PubSub} from "../../exchanges/PubSub.sol";
import {IExchanges} from "../../interfaces/IExchanges.sol";

/// @title Messaging (DPS paper, 4.6): many to many in a chat, one to many by a newsletter
/// @notice A member of a room says things to all its members, or by a key to one of them, and counts what it hears from others.
contract ChatMember is PubSub {
    bytes32 public immutable room;
    uint256 public heard;
    bytes32 public lastHeard;

    constructor(IExchanges exchanges_, address owner_, bytes32 room_) PubSub(exchanges_, owner_) {
        room = room_;
    }

    /// @param to a member's key, or `*` for all
    function say(string calldata to, string calldata text) external onlyOwner {
        exchanges.publish(room, bytes(to), bytes(text));
    }

    function _onMessage(bytes32, uint256, bytes32, address publisher, bytes calldata, bytes calldata payload)
        internal
        override
    {
        if (publisher == address(this)) return;
        ++heard;
        lastHeard = keccak256(payload);
    }
}
