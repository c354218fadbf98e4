// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Member} from "../../exchanges/Member.sol";
import {MessagePublisher} from "../../exchanges/MessagePublisher.sol";
import {MessageSubscriber} from "../../exchanges/MessageSubscriber.sol";
import {IExchanges} from "../../interfaces/IExchanges.sol";

/// @title Healthcare (DPS paper, 4.4): a wearable tells a doctor and relatives, and nobody else can read it
/// @notice What a chain carries is public, so the payload is a ciphertext made off the chain for its readers; only its size and time show.
contract Wearable is MessagePublisher {
    bytes32 public immutable exchange;

    constructor(IExchanges exchanges_, address owner_, bytes32 exchange_) MessagePublisher(exchanges_, owner_) {
        exchange = exchange_;
    }

    /// @param readers whom it is for: `doctor`, `relatives`, or `*`
    function tell(string calldata readers, bytes calldata ciphertext) external onlyOwner {
        exchanges.publish(exchange, bytes(readers), ciphertext);
    }
}

/// @notice Keeps the hash of the last ciphertext, by which what a service decrypts is known to be what was sent.
contract CareTaker is MessageSubscriber {
    bytes32 public lastCiphertext;

    constructor(IExchanges exchanges_, address owner_) Member(exchanges_, owner_) {}

    function _onMessage(bytes32, uint256, bytes32, address, bytes calldata, bytes calldata payload) internal override {
        lastCiphertext = keccak256(payload);
    }
}
