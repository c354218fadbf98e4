// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITopicOwner} from "../interfaces/ITopicOwner.sol";
import {ITopics} from "../interfaces/ITopics.sol";
import {Access, Policy, PolicyLibrary} from "../types/Policy.sol";

/// @title Membership: a club whose topic is for members
/// @notice `Topics` asks this contract each time somebody wants to publish or to subscribe; it keeps no list of its own.
contract Membership is ITopicOwner {
    enum Standing {
        Stranger,
        Member,
        Editor
    }

    ITopics public immutable topics;
    bytes32 public immutable topic;
    address public immutable chair;
    mapping(address account => Standing) public standingOf;

    error NotChair(address have, address need);

    constructor(ITopics topics_) {
        (topics, chair) = (topics_, msg.sender);
        topic = topics_.create(_policy(), "club-news");
    }

    /// @notice Members hear the club's news, editors write them too.
    function appoint(address account, Standing standing) external {
        require(msg.sender == chair, NotChair(msg.sender, chair));
        standingOf[account] = standing;
    }

    /// @inheritdoc ITopicOwner
    function mayPublish(bytes32 topic_, address account) external view returns (bool) {
        return topic_ == topic && standingOf[account] == Standing.Editor;
    }

    /// @inheritdoc ITopicOwner
    function maySubscribe(bytes32 topic_, address account) external view returns (bool) {
        return topic_ == topic && standingOf[account] != Standing.Stranger;
    }

    function _policy() private pure returns (Policy) {
        PolicyLibrary.Fields memory fields = PolicyLibrary.defaults();
        (fields.publishing, fields.subscribing) = (Access.Asked, Access.Asked);
        return PolicyLibrary.pack(fields);
    }
}
