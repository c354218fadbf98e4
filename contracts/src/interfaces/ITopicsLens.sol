// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Policy} from "../types/Policy.sol";
import {Terms} from "../types/Terms.sol";

/// @title What can be read of `Topics`, and predicted
/// @notice Stateless: it reads the slots of `Topics` and decides by the same rules (`Pricing`), so that the contract that every publish runs through
/// need not carry them. Called off chain it costs nothing.
interface ITopicsLens {
    struct TopicView {
        address owner;
        Policy policy;
        /// Number of the last event; the next one gets `sequence + 1`.
        uint256 sequence;
        /// Indexes below this one are, or were, subscriptions.
        uint256 end;
        /// Subscriptions there are.
        uint256 live;
        uint256 sealedEnd;
        /// Gwei owed to the owner by publications that named no payee.
        uint256 credit;
        bool delivering;
        bool pending;
        /// Gas that a publish must bring for all callbacks, beyond its own work.
        uint256 callbackGas;
    }

    struct PendingView {
        /// Hash of the callback's calldata, with index 0, of the event that is being delivered.
        bytes32 event_;
        uint256 sequence;
        uint256 position;
        uint256 end;
        address payee;
    }

    struct Quote {
        /// Gas limit with which a publish is accepted.
        uint256 gasLimit;
        /// Subscribers that would be called.
        uint256 served;
        /// Gwei that all of them could pay at most.
        uint256 mostCredited;
        /// One `Outcome` byte per index; `Delivered` for every call that would be made, as whether it reverts is its own affair;
        /// `Deferred` for those not sure to fit one transaction.
        bytes outcomes;
    }

    /// @notice An event of a list that ends at `end` has no such position.
    error NoSuchPosition(uint256 position, uint256 end);

    function getTopic(bytes32 topic) external view returns (TopicView memory);

    function getPending(bytes32 topic) external view returns (PendingView memory);

    /// @return roles bit 0 may publish, bit 1 may subscribe; the owner always may
    function getRoles(bytes32 topic, address account) external view returns (uint256 roles);

    /// @return subscriber 0 where nobody holds the index
    function getSubscription(bytes32 topic, uint256 index)
        external
        view
        returns (address subscriber, Terms terms, uint256 deposit);

    /// @notice The lowest free index a subscription may reuse, or the end of the list where there is none.
    function findHole(bytes32 topic) external view returns (uint256 index);

    /// @notice The index that is served at `position` of event `sequence`, of a list that ends at `end`. Positions fill words of eight, so that the
    /// last ones may stand for indexes that nobody holds.
    function indexAt(uint256 sequence, uint256 position, uint256 end) external pure returns (uint256 index);

    /// @notice Predicts the next publish at a gas price (in wei, with this block's base fee).
    function quotePublish(bytes32 topic, uint256 payloadLength, uint256 gasPrice) external view returns (Quote memory);
}
