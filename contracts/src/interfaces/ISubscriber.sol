// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @notice A contract that receives events inside the transaction that publishes them.
interface ISubscriber {
    /// @notice Called by `Topics` with exactly the gas the subscription reserved; a revert is recorded and stops nobody else.
    /// @dev Check `msg.sender` and `topic` before trusting anything; `Subscriber` does both.
    /// @param topic the topic's id
    /// @param sequence the event's number in its topic, without gaps, from 1
    /// @param index the index of this subscription, as `unsubscribe` and `withdraw` want it
    /// @param key the routing key the publisher gave, or 0
    /// @param payload the event itself
    /// @return acknowledgement by custom this function's selector; that anything comes back spares the topic a look for code
    function onEvent(bytes32 topic, uint256 sequence, uint256 index, bytes32 key, bytes calldata payload)
        external
        returns (bytes4 acknowledgement);
}
