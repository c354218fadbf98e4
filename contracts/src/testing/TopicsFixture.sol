// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Topics} from "../Topics.sol";
import {TopicsLens} from "../TopicsLens.sol";
import {ITopics} from "../interfaces/ITopics.sol";
import {ITopicsLens} from "../interfaces/ITopicsLens.sol";
import {DeployedTopics} from "./DeployedTopics.sol";

/// @title TopicsFixture: inherit your Foundry test from it
/// @notice A real `Topics` of your test's own.
abstract contract TopicsFixture is DeployedTopics {
    function deployTopics() internal override returns (ITopics topics_, ITopicsLens lens_) {
        topics_ = new Topics();
        lens_ = new TopicsLens(topics_);
    }
}
