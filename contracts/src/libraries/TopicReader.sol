// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITopics} from "../interfaces/ITopics.sol";
import {TopicState} from "../types/TopicState.sol";

/// @notice Reads the storage of `Topics` from another contract.
library TopicReader {
    /// @dev Places of the mappings in `Ledger`, in their order there.
    uint256 internal constant TOPICS = 0;
    uint256 internal constant POLICIES = 1;
    uint256 internal constant ROLES = 2;
    uint256 internal constant LANES = 3;
    uint256 internal constant RECORDS = 4;
    uint256 internal constant PAGES = 5;
    uint256 internal constant PENDING = 6;

    /// @notice Where a mapping keeps what it knows of a topic.
    function slotOf(bytes32 topic, uint256 place) internal pure returns (uint256) {
        return uint256(keccak256(abi.encode(topic, place)));
    }

    function read(ITopics topics, uint256 slot) internal view returns (uint256) {
        return uint256(topics.extsload(bytes32(slot)));
    }

    function stateOf(ITopics topics, bytes32 topic) internal view returns (TopicState state) {
        state = TopicState.wrap(read(topics, slotOf(topic, TOPICS)));
        if (!state.exists()) revert ITopics.UnknownTopic(topic);
    }
}
