// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITopics} from "../interfaces/ITopics.sol";
import {TopicState} from "../types/TopicState.sol";

/// @notice Reads the storage of `Topics` from another contract.
library TopicReader {
    /// @dev Places in a `Book` of `Ledger`, in their order there.
    uint256 internal constant STATE = 0;
    uint256 internal constant POLICY = 1;
    uint256 internal constant PENDING_EVENT = 2;
    uint256 internal constant PENDING_PLACE = 3;
    uint256 internal constant ROLES = 4;
    uint256 internal constant LANES = 5;
    uint256 internal constant RECORDS = LANES + (1 << 24);
    uint256 internal constant PAGES = RECORDS + (1 << 24);

    /// @dev The place of the mapping of books.
    uint256 private constant BOOKS = 0;

    /// @notice Where `Topics` keeps what stands at a place of a topic's book.
    function slotOf(bytes32 topic, uint256 place) internal pure returns (uint256) {
        return uint256(keccak256(abi.encode(topic, BOOKS))) + place;
    }

    function read(ITopics topics, uint256 slot) internal view returns (uint256) {
        return uint256(topics.extsload(bytes32(slot)));
    }

    function stateOf(ITopics topics, bytes32 topic) internal view returns (TopicState state) {
        state = TopicState.wrap(read(topics, slotOf(topic, STATE)));
        if (!state.exists()) revert ITopics.UnknownTopic(topic);
    }
}
