// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITopics} from "../interfaces/ITopics.sol";
import {Policy} from "../types/Policy.sol";

/// @notice The paper's minimal publisher (VII-A): registers, and publishes what its owner sends.
contract SamplePublisher {
    ITopics public immutable topics;
    address public immutable owner = msg.sender;
    bytes32 public immutable topic;

    string private constant NAME = "sample";

    error NotOwner(address have, address need);

    constructor(ITopics topics_) {
        topics = topics_;
        topic = topics_.topicOf(address(this), NAME);
    }

    function register() external {
        topics.create(Policy.wrap(0), NAME);
    }

    function registerWith(Policy policy) external {
        topics.create(policy, NAME);
    }

    function publish(bytes calldata payload) external {
        publishFor(payload, address(0));
    }

    /// @param payee who is credited; 0 leaves the credit with the topic
    function publishFor(bytes calldata payload, address payee) public {
        require(msg.sender == owner, NotOwner(msg.sender, owner));
        topics.publish(topic, 0, 0, payee, payload);
    }

    function collect(address to) external {
        require(msg.sender == owner, NotOwner(msg.sender, owner));
        topics.collectTopic(topic, to);
    }
}
