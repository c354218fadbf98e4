// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Vm} from "forge-std/Vm.sol";

import {IExchanges} from "../src/interfaces/IExchanges.sol";
import {IGauge} from "../src/interfaces/IGauge.sol";
import {ISignedPublisher} from "../src/interfaces/ISignedPublisher.sol";
import {ITopics} from "../src/interfaces/ITopics.sol";
import {ITopicsLens} from "../src/interfaces/ITopicsLens.sol";
import {DeployedTopics} from "../src/testing/DeployedTopics.sol";
import {Policy} from "../src/types/Policy.sol";

/// @notice The contracts as they are shipped, compiled through IR. Tests know them by their interfaces: what a test imports is compiled
/// as tests are, without IR.
library Shipped {
    Vm private constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));

    function topics() internal returns (ITopics) {
        return ITopics(vm.deployCode("src/Topics.sol:Topics"));
    }

    function topicsLens(ITopics topics_) internal returns (ITopicsLens) {
        return ITopicsLens(vm.deployCode("src/TopicsLens.sol:TopicsLens", abi.encode(topics_)));
    }

    function signedPublisher(
        ITopics topics_,
        address signer,
        string memory name,
        string memory payloadType,
        Policy policy
    ) internal returns (ISignedPublisher) {
        bytes memory arguments = abi.encode(topics_, signer, name, payloadType, policy);
        return ISignedPublisher(vm.deployCode("src/SignedPublisher.sol:SignedPublisher", arguments));
    }

    function exchanges(ITopics topics_) internal returns (IExchanges) {
        return IExchanges(vm.deployCode("src/exchanges/Exchanges.sol:Exchanges", abi.encode(topics_)));
    }

    function gauge(ITopics topics_, address owner, bytes32 topic, uint256 word) internal returns (IGauge) {
        return IGauge(vm.deployCode("src/exchanges/Gauge.sol:Gauge", abi.encode(topics_, owner, topic, word)));
    }
}

/// @notice `TopicsFixture` with the shipped contracts.
abstract contract ShippedTopics is DeployedTopics {
    function deployTopics() internal override returns (ITopics topics_, ITopicsLens lens_) {
        topics_ = Shipped.topics();
        lens_ = Shipped.topicsLens(topics_);
    }
}
