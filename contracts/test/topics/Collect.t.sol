// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITopics} from "../../src/interfaces/ITopics.sol";
import {TopicTest} from "./TopicTest.sol";

contract CollectTest is TopicTest {
    address private to = makeAddr("to");

    function setUp() public override {
        super.setUp();
        joinCounters(2);
    }

    /* REFUSALS */

    function test_collect_nothing() public {
        vm.expectRevert(abi.encodeWithSelector(ITopics.NothingToCollect.selector, stranger));
        vm.prank(stranger);
        topics.collect(to);
    }

    function test_collect_twice() public {
        publish();
        vm.startPrank(payee);
        topics.collect(to);
        vm.expectRevert(abi.encodeWithSelector(ITopics.NothingToCollect.selector, payee));
        topics.collect(to);
    }

    function test_collect_toOneThatRefuses() public {
        publish();
        uint256 owed = topics.getCredit(payee);
        vm.expectRevert(abi.encodeWithSelector(ITopics.PaymentFailed.selector, address(topics), owed));
        vm.prank(payee);
        topics.collect(address(topics));
        assertEq(topics.getCredit(payee), owed);
    }

    function test_collectTopic_unknownTopic() public {
        vm.expectRevert(abi.encodeWithSelector(ITopics.UnknownTopic.selector, UNKNOWN));
        topics.collectTopic(UNKNOWN, to);
    }

    function test_collectTopic_onlyOwner() public {
        topics.publish(topic, KEY, 0, address(0), PAYLOAD);
        vm.expectRevert(abi.encodeWithSelector(ITopics.NotOwner.selector, stranger, address(this)));
        vm.prank(stranger);
        topics.collectTopic(topic, to);
    }

    function test_collectTopic_nothing() public {
        publish();
        vm.expectRevert(abi.encodeWithSelector(ITopics.NothingToCollect.selector, address(this)));
        topics.collectTopic(topic, to);
    }

    function test_collectTopic_toOneThatRefuses() public {
        topics.publish(topic, KEY, 0, address(0), PAYLOAD);
        uint256 owed = viewOf(topic).credit;
        vm.expectRevert(abi.encodeWithSelector(ITopics.PaymentFailed.selector, address(topics), owed));
        topics.collectTopic(topic, address(topics));
        assertEq(viewOf(topic).credit, owed);
    }

    /* SUCCESSES */

    function test_collect_everythingOnce() public {
        publish();
        Page memory second = publish();
        uint256 owed = topics.getCredit(payee);
        assertGt(owed, second.credited);
        vm.expectEmit(address(topics));
        emit ITopics.Collected(payee, to, owed);
        vm.prank(payee);
        assertEq(topics.collect(to), owed);
        assertEq(to.balance, owed * 1 gwei);
        assertEq(topics.getCredit(payee), 0);
        Page memory third = publish();
        assertEq(topics.getCredit(payee), third.credited);
    }

    function test_collectTopic_everythingOnce() public {
        topics.publish(topic, KEY, 0, address(0), PAYLOAD);
        uint256 owed = viewOf(topic).credit;
        assertGt(owed, 0);
        vm.expectEmit(address(topics));
        emit ITopics.Collected(address(this), to, owed);
        assertEq(topics.collectTopic(topic, to), owed);
        assertEq(to.balance, owed * 1 gwei);
        assertEq(viewOf(topic).credit, 0);
        assertEq(viewOf(topic).sequence, 1);
    }

    /// @dev What subscribers paid is exactly what payees can take.
    function test_collect_isWhatWasPaid() public {
        publish();
        topics.publish(topic, KEY, 0, address(0), PAYLOAD);
        uint256 paid = 2 * DEPOSIT_GWEI - depositsOf(2);
        assertEq(paid, topics.getCredit(payee) + viewOf(topic).credit);
    }
}
