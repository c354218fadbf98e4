// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Vm} from "forge-std/Vm.sol";

import {ITopics} from "../../src/interfaces/ITopics.sol";
import {Policy, PolicyLibrary} from "../../src/types/Policy.sol";
import {Shipped} from "../Shipped.sol";
import {TopicTest} from "./TopicTest.sol";

contract CreateTopicTest is TopicTest {
    /* REFUSALS */

    function test_createTopic_nameLength() public {
        vm.expectRevert(abi.encodeWithSelector(ITopics.BadName.selector, 0));
        topics.create(DEFAULT_POLICY, "");
        vm.expectRevert(abi.encodeWithSelector(ITopics.BadName.selector, 129));
        topics.create(DEFAULT_POLICY, string(new bytes(129)));
    }

    function test_createTopic_existing() public {
        vm.expectRevert(abi.encodeWithSelector(ITopics.TopicExists.selector, topic));
        topics.create(DEFAULT_POLICY, "topic");
    }

    function test_createTopic_eachFieldHasItsBound() public {
        Policy[] memory bad = badPolicies();
        for (uint256 i; i < bad.length; ++i) {
            vm.expectRevert(abi.encodeWithSelector(ITopics.BadPolicy.selector, bad[i]));
            topics.create(bad[i], "name");
        }
    }

    /* SUCCESSES */

    /// @dev Owner first, then the last twelve bytes of the name's hash: anybody can compute it.
    function testFuzz_createTopic_idIsKnownBefore(address owner, string calldata name) public {
        vm.assume(bytes(name).length > 0 && bytes(name).length <= 128);
        bytes32 id = topics.topicOf(owner, name);
        assertEq(address(bytes20(id)), owner);
        assertEq(uint96(uint256(id)), uint96(uint256(keccak256(bytes(name)))));
        vm.assume(id != topic);
        vm.prank(owner);
        assertEq(topics.create(DEFAULT_POLICY, name), id);
        assertEq(viewOf(id).owner, owner);
    }

    function test_createTopic_longestName() public {
        bytes32 id = topics.create(DEFAULT_POLICY, string(new bytes(128)));
        assertEq(viewOf(id).owner, address(this));
    }

    function test_createTopic_sameNameOfAnotherOwner() public {
        vm.prank(stranger);
        assertNotEq(topics.create(DEFAULT_POLICY, "topic"), topic);
    }

    function test_createTopic_beginsEmptyWithTheDefaults() public view {
        assertEq(viewOf(topic).sequence, 0);
        assertEq(viewOf(topic).end, 0);
        assertEq(viewOf(topic).callbackGas, 0);
        assertEq(Policy.unwrap(viewOf(topic).policy), Policy.unwrap(PolicyLibrary.pack(PolicyLibrary.defaults())));
    }

    function test_createTopic_ownPolicy() public {
        Policy policy = boundaryPolicy();
        bytes32 id = topics.create(policy, "name");
        assertEq(Policy.unwrap(viewOf(id).policy), Policy.unwrap(policy));
    }

    /// @dev V-B.2: from the contract's address alone its logs lead to every topic and every event.
    function test_createTopic_isFoundByLogs() public {
        vm.recordLogs();
        ITopics fresh = Shipped.topics();
        bytes32 id = fresh.create(DEFAULT_POLICY, "flights");
        fresh.publish(id, KEY, 0, payee, PAYLOAD);
        Vm.Log[] memory logs = vm.getRecordedLogs();
        assertEq(logs[0].topics[0], ITopics.TopicsDeployed.selector);
        assertEq(logs[1].topics[0], ITopics.TopicCreated.selector);
        assertEq(logs[1].topics[1], id);
        assertEq(logs[1].data, abi.encode(DEFAULT_POLICY, "flights"));
        assertEq(logs[2].topics[0], ITopics.Published.selector);
        assertEq(logs[2].topics[1], id);
        for (uint256 i; i < logs.length; ++i) {
            assertEq(logs[i].emitter, address(fresh));
        }
    }
}
