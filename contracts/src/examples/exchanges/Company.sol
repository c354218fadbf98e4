// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Member} from "../../exchanges/Member.sol";
import {MessageSubscriber} from "../../exchanges/MessageSubscriber.sol";
import {PubSub} from "../../exchanges/PubSub.sol";
import {IExchanges} from "../../interfaces/IExchanges.sol";

/// @title Democracy and organizations (DPS paper, 4.2): proposals in a company, and its customers
/// @notice A department counts the proposals that reach its queue; one that enough departments support is carried out.
contract Department is MessageSubscriber {
    mapping(bytes32 proposal => uint256) public supporters;
    mapping(bytes32 proposal => mapping(address => bool)) public hasSupported;
    uint256 public immutable quorum;
    bytes32 public carriedOut;

    constructor(IExchanges exchanges_, address owner_, uint256 quorum_) Member(exchanges_, owner_) {
        quorum = quorum_;
    }

    /// @dev Whoever may publish in the company's exchange supports a proposal by publishing it; each counts once.
    function _onMessage(bytes32, uint256, bytes32, address publisher, bytes calldata, bytes calldata payload)
        internal
        override
    {
        bytes32 proposal = keccak256(payload);
        if (hasSupported[proposal][publisher]) return;
        hasSupported[proposal][publisher] = true;
        if (++supporters[proposal] == quorum) carriedOut = proposal;
    }
}

/// @notice A customer publishes requests and receives the newsletter: both roles in one contract.
contract Customer is PubSub {
    uint256 public letters;

    constructor(IExchanges exchanges_, address owner_) PubSub(exchanges_, owner_) {}

    function _onMessage(
        bytes32 queue,
        uint256 number,
        bytes32 exchange,
        address publisher,
        bytes calldata key,
        bytes calldata payload
    ) internal override {
        ++letters;
        super._onMessage(queue, number, exchange, publisher, key, payload);
    }
}
