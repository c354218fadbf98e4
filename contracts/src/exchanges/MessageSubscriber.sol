// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Member} from "./Member.sol";
import {IExchanges} from "../interfaces/IExchanges.sol";
import {IMessageSubscriber} from "../interfaces/IMessageSubscriber.sol";

/// @title MessageSubscriber: inherit from it and say what you do with a message
/// @notice Lets only `Exchanges` bring messages. Which queues it listens to its owner decides by subscribing.
abstract contract MessageSubscriber is Member, IMessageSubscriber {
    /// @notice What to do with a message; the parameters are those of `onMessage`.
    /// @dev Runs with the exact gas of the queue's terms. A revert undoes what was done here and nothing else.
    function _onMessage(
        bytes32 queue,
        uint256 number,
        bytes32 exchange,
        address publisher,
        bytes calldata key,
        bytes calldata payload
    ) internal virtual;

    /// @inheritdoc IMessageSubscriber
    function onMessage(
        bytes32 queue,
        uint256 number,
        bytes32 exchange,
        address publisher,
        bytes calldata key,
        bytes calldata payload
    ) external returns (bytes4) {
        require(msg.sender == address(exchanges), NotExchanges(msg.sender, address(exchanges)));
        _onMessage(queue, number, exchange, publisher, key, payload);
        return this.onMessage.selector;
    }

    /// @notice Asks a queue to subscribe this contract. See `IExchanges.subscribe`.
    function subscribeTo(bytes32 queue) external onlyOwner {
        exchanges.subscribe(queue);
    }

    /// @notice Ends a subscription or takes a request back. See `IExchanges.removeSubscriber`.
    function unsubscribeFrom(bytes32 queue) external onlyOwner {
        exchanges.removeSubscriber(queue, address(this));
    }
}
