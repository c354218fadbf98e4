// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITopics} from "../interfaces/ITopics.sol";
import {Terms} from "../types/Terms.sol";

/// @notice Subscribes at deployment, as in the paper's Fig. 2a, and then does nothing when called: what a delivery to it costs is the topic's own.
contract BareSubscriber {
    constructor(ITopics topics, bytes32 topic, Terms terms) payable {
        topics.subscribe{value: msg.value}(topic, terms, type(uint256).max);
    }

    fallback() external {
        assembly {
            return(0, 1)
        }
    }
}
