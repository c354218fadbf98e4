// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @notice A contract that receives the messages of queues.
interface IMessageSubscriber {
    /// @notice Called by `Exchanges` with exactly the gas that the queue's terms say; a revert is recorded and stops nobody else.
    /// @dev Check `msg.sender` and `queue` before trusting anything; `MessageSubscriber` does both.
    /// @param queue the queue's id
    /// @param number the message's number in its queue, from 1
    /// @param exchange where it was published; who may publish there is that exchange's affair
    /// @param publisher who published it
    /// @param key what is left of a hierarchical routing key: `b.c` of `a.b.c`; empty where nothing is left
    /// @param payload the message itself
    /// @return acknowledgement by custom this function's selector; that anything comes back spares a look for code
    function onMessage(
        bytes32 queue,
        uint256 number,
        bytes32 exchange,
        address publisher,
        bytes calldata key,
        bytes calldata payload
    ) external returns (bytes4 acknowledgement);
}
