// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITopics} from "../../src/interfaces/ITopics.sol";
import {Access, PolicyLibrary} from "../../src/types/Policy.sol";
import {TopicTest} from "./TopicTest.sol";

contract SetRolesTest is TopicTest {
    uint256 private constant PUBLISHER = 1;
    uint256 private constant SUBSCRIBER = 2;

    function setUp() public override {
        super.setUp();
        PolicyLibrary.Fields memory fields = PolicyLibrary.defaults();
        fields.subscribing = Access.Listed;
        topics.setPolicy(topic, PolicyLibrary.pack(fields));
    }

    /* REFUSALS */

    function test_setRoles_unknownTopic() public {
        vm.expectRevert(abi.encodeWithSelector(ITopics.UnknownTopic.selector, UNKNOWN));
        topics.setRoles(UNKNOWN, stranger, PUBLISHER);
    }

    function test_setRoles_onlyOwner() public {
        vm.expectRevert(abi.encodeWithSelector(ITopics.NotOwner.selector, stranger, address(this)));
        vm.prank(stranger);
        topics.setRoles(topic, stranger, PUBLISHER);
    }

    function test_setRoles_publisherIsNoSubscriber() public {
        topics.setRoles(topic, stranger, PUBLISHER);
        vm.expectRevert(abi.encodeWithSelector(ITopics.NotAllowed.selector, topic, stranger));
        vm.prank(stranger);
        topics.subscribe{value: DEPOSIT}(topic, anyTerms(), NO_HOLE);
    }

    function test_setRoles_subscriberIsNoPublisher() public {
        topics.setRoles(topic, stranger, SUBSCRIBER);
        vm.expectRevert(abi.encodeWithSelector(ITopics.NotAllowed.selector, topic, stranger));
        vm.prank(stranger);
        topics.publish(topic, KEY, 0, payee, PAYLOAD);
    }

    function test_setRoles_takenBack() public {
        topics.setRoles(topic, stranger, PUBLISHER);
        topics.setRoles(topic, stranger, 0);
        vm.expectRevert(abi.encodeWithSelector(ITopics.NotAllowed.selector, topic, stranger));
        vm.prank(stranger);
        topics.publish(topic, KEY, 0, payee, PAYLOAD);
    }

    function test_setRoles_holdInOneTopicOnly() public {
        bytes32 other = topics.create(DEFAULT_POLICY, "other");
        topics.setRoles(other, stranger, PUBLISHER);
        vm.expectRevert(abi.encodeWithSelector(ITopics.NotAllowed.selector, topic, stranger));
        vm.prank(stranger);
        topics.publish(topic, KEY, 0, payee, PAYLOAD);
    }

    /* SUCCESSES */

    function test_setRoles_both() public {
        vm.expectEmit(address(topics));
        emit ITopics.RolesChanged(topic, stranger, PUBLISHER | SUBSCRIBER);
        topics.setRoles(topic, stranger, PUBLISHER | SUBSCRIBER);
        assertEq(rolesOf(topic, stranger), PUBLISHER | SUBSCRIBER);
        vm.startPrank(stranger);
        assertEq(topics.subscribe{value: DEPOSIT}(topic, anyTerms(), NO_HOLE), 0);
        assertEq(topics.publish(topic, KEY, 0, payee, PAYLOAD), 1);
    }

    /// @dev Who is no longer listed keeps what it has, and may go.
    function test_setRoles_unlistedSubscriberMayLeave() public {
        topics.setRoles(topic, stranger, SUBSCRIBER);
        vm.startPrank(stranger);
        topics.subscribe{value: DEPOSIT}(topic, anyTerms(), NO_HOLE);
        vm.stopPrank();
        topics.setRoles(topic, stranger, 0);
        vm.prank(stranger);
        topics.unsubscribe(topic, 0, stranger);
        assertEq(stranger.balance, 10 ether);
    }
}
