// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Subscriber} from "../../src/Subscriber.sol";
import {IExchanges} from "../../src/interfaces/IExchanges.sol";
import {IGauge} from "../../src/interfaces/IGauge.sol";
import {Listener} from "../../src/testing/Pack.sol";
import {Shipped} from "../Shipped.sol";
import {ExchangesTest} from "./ExchangesTest.sol";

/// @notice Messages that wait: for what, in which order, and what becomes of them and of their value.
contract HoldingTest is ExchangesTest {
    bytes32 private queue;
    Listener private first;
    Listener private second;

    function open(IExchanges.QueueTerms memory terms) private {
        queue = makeQueue("key", terms);
        first = join(queue);
        second = join(queue);
    }

    function expectNotReleasable(Waiting memory waiting, IExchanges.Condition condition) private {
        vm.expectRevert(abi.encodeWithSelector(IExchanges.NotReleasable.selector, waiting.queue, condition));
        release(waiting);
    }

    /* CONDITIONS */

    function test_time_delayAndDate() public {
        IExchanges.QueueTerms memory terms = waitingTerms(IExchanges.Condition.Time);
        (terms.delay, terms.notBefore) = (100, block.timestamp + 50);
        open(terms);
        Waiting memory waiting = publishHeld("key", 0);
        skip(99);
        expectNotReleasable(waiting, IExchanges.Condition.Time);
        skip(1);
        assertTrue(release(waiting));
        assertEq(first.count() + second.count(), 2);
    }

    function test_event_afterArrivalOnly() public {
        bytes32 topic = topics.create(DEFAULT_POLICY, "weather");
        IExchanges.QueueTerms memory terms = waitingTerms(IExchanges.Condition.Event);
        terms.subject = topic;
        open(terms);
        topics.publish(topic, 0, 0, address(0), "before");
        Waiting memory waiting = publishHeld("key", 0);
        assertEq(waiting.header.mark, 1);
        expectNotReleasable(waiting, IExchanges.Condition.Event);
        topics.publish(topic, 0, 0, address(0), "after");
        assertTrue(release(waiting));
        terms.subject = bytes32("no topic");
        vm.expectRevert();
        exchanges.createQueue("other", terms);
    }

    function test_gauge_aboveAndBelow() public {
        bytes32 topic = topics.create(DEFAULT_POLICY, "weather");
        IGauge gauge = Shipped.gauge(topics, address(this), topic, 1);
        Subscriber(address(gauge)).subscribeTo{value: DEPOSIT}(topic, anyTerms(), NO_HOLE);
        IExchanges.QueueTerms memory terms = waitingTerms(IExchanges.Condition.Above);
        (terms.subject, terms.threshold) = (bytes32(uint256(uint160(address(gauge)))), -5);
        open(terms);
        terms.condition = IExchanges.Condition.Below;
        makeQueue("below", terms);
        Waiting memory above = publishHeld("key", 0);
        Waiting memory below = publishHeld("below", 0);
        expectNotReleasable(above, IExchanges.Condition.Above);
        expectNotReleasable(below, IExchanges.Condition.Below);
        topics.publish(topic, 0, 0, address(0), abi.encode("ignored", int256(-5)));
        topics.publish(topic, 0, 0, address(0), abi.encode(uint256(1), int256(-5)));
        expectNotReleasable(above, IExchanges.Condition.Above);
        expectNotReleasable(below, IExchanges.Condition.Below);
        topics.publish(topic, 0, 0, address(0), abi.encode(uint256(1), int256(-4)));
        expectNotReleasable(below, IExchanges.Condition.Below);
        assertTrue(release(above));
        topics.publish(topic, 0, 0, address(0), abi.encode(uint256(1), int256(-6)));
        assertTrue(release(below));
        topics.publish(topic, 0, 0, address(0), "short");
        (uint256 sequence, int256 value) = gauge.latest();
        assertEq(sequence, 4);
        assertEq(value, -6);
    }

    /// @dev The named account takes messages by releasing them and may refuse them.
    function test_account_releasesOrRefuses() public {
        IExchanges.QueueTerms memory terms = waitingTerms(IExchanges.Condition.Account);
        terms.subject = bytes32(uint256(uint160(stranger)));
        open(terms);
        Waiting memory one = publishHeld("key", 0);
        Waiting memory two = publishHeld("key", 7 wei);
        expectNotReleasable(one, IExchanges.Condition.Account);
        vm.prank(stranger);
        assertTrue(release(one));
        vm.expectRevert(abi.encodeWithSelector(IExchanges.NotExpired.selector, block.timestamp + 1 days));
        expire(two);
        vm.prank(stranger);
        expire(two);
        assertEq(exchanges.getCredit(address(this)), 7 wei);
    }

    /* ORDER */

    function test_fifo_oldestFirst() public {
        open(waitingTerms(IExchanges.Condition.Time));
        Waiting[3] memory waiting = [publishHeld("key", 0), publishHeld("key", 0), publishHeld("key", 0)];
        vm.expectRevert();
        release(waiting[1]);
        for (uint256 i; i < 3; ++i) {
            release(waiting[i]);
            assertEq(first.number(), i + 1);
        }
        vm.expectRevert(abi.encodeWithSelector(IExchanges.NothingHeld.selector, queue));
        release(waiting[0]);
    }

    function test_lifo_newestFirst() public {
        IExchanges.QueueTerms memory terms = waitingTerms(IExchanges.Condition.Time);
        terms.lifo = true;
        open(terms);
        Waiting[3] memory waiting = [publishHeld("key", 0), publishHeld("key", 0), publishHeld("key", 0)];
        release(waiting[2]);
        Waiting memory newest = publishHeld("key", 0);
        vm.expectRevert();
        release(waiting[1]);
        release(newest);
        assertEq(first.number(), 4);
        release(waiting[1]);
        assertEq(first.number(), 2);
        skip(1 days);
        expire(waiting[0]);
        assertEq(exchanges.getQueue(queue).held, 0);
    }

    function test_held_isBounded() public {
        IExchanges.QueueTerms memory terms = waitingTerms(IExchanges.Condition.Time);
        open(terms);
        for (uint256 i; i < 1_024; ++i) {
            publish("key");
        }
        vm.expectEmit();
        emit IExchanges.Overflowed(queue, exchange, 1_025);
        exchanges.publish{value: 9}(exchange, "key", PAYLOAD);
        assertEq(exchanges.getCredit(address(this)), 9);
        assertEq(exchanges.getQueue(queue).held, 1_024);
    }

    function test_release_wrongContentRefused() public {
        open(waitingTerms(IExchanges.Condition.Time));
        Waiting memory waiting = publishHeld("key", 8);
        waiting.payload = "another";
        vm.expectRevert();
        release(waiting);
        waiting.payload = PAYLOAD;
        waiting.header.value = 9;
        vm.expectRevert();
        release(waiting);
        waiting.header.value = 8;
        release(waiting);
    }

    /* EXPIRY */

    function test_expiry_givesValueBackAndMovesToDeadLetters() public {
        bytes32 dead = exchanges.createQueue("dead", openTerms());
        Listener undertaker = join(dead);
        IExchanges.QueueTerms memory terms = waitingTerms(IExchanges.Condition.Time);
        (terms.deadLetter, terms.reward) = (dead, 5);
        open(terms);
        exchanges.fund{value: 8}(queue);
        Waiting memory waiting = publishHeld("key", 1 ether);
        vm.expectRevert(abi.encodeWithSelector(IExchanges.NotExpired.selector, block.timestamp + 1 days));
        expire(waiting);
        skip(1 days);
        vm.expectRevert(abi.encodeWithSelector(IExchanges.IsExpired.selector, block.timestamp));
        release(waiting);
        expire(waiting);
        assertEq(exchanges.getCredit(address(this)), 1 ether);
        assertEq(exchanges.getCredit(payee), 5);
        assertEq(exchanges.getQueue(queue).fund, 3);
        assertEq(exchanges.getQueue(queue).heldValue, 0);
        assertEq(undertaker.payload(), PAYLOAD);
        assertEq(first.count(), 0);
    }

    /* MONEY */

    function test_value_isSplitToTheLastWei() public {
        bytes32 other = makeQueue("kez");
        Listener third = join(other);
        open(openTerms());
        exchanges.publish{value: 101}(exchange, "ke*", PAYLOAD);
        assertEq(exchanges.getCredit(address(third)), 51);
        assertEq(exchanges.getCredit(address(first)), 25);
        assertEq(exchanges.getCredit(address(second)), 25);
        third.execute(address(exchanges), 0, abi.encodeCall(IExchanges.collect, (payee)));
        assertEq(payee.balance, 51);
        vm.expectRevert();
        third.execute(address(exchanges), 0, abi.encodeCall(IExchanges.collect, (payee)));
    }

    /// @dev Anybody can be several subscribers of an open queue; it gets value only if its owner wants that.
    function test_value_openQueueNeedsOptIn() public {
        IExchanges.QueueTerms memory terms = openTerms();
        terms.openValue = false;
        Listener listener = join(makeQueue("kez", terms));
        exchanges.publish{value: 10}(exchange, "kez", PAYLOAD);
        assertEq(listener.count(), 1);
        assertEq(exchanges.getCredit(address(this)), 10);
        open(openTerms());
        exchanges.publish{value: 10}(exchange, "*", PAYLOAD);
        assertEq(exchanges.getCredit(address(first)) + exchanges.getCredit(address(second)), 10);
    }

    function test_value_withoutMatchOrSubscriber_returns() public {
        vm.expectEmit();
        emit IExchanges.Returned(address(this), exchange, 1, 3);
        exchanges.publish{value: 3}(exchange, "nobody", PAYLOAD);
        makeQueue("empty");
        exchanges.publish{value: 4}(exchange, "empty", PAYLOAD);
        assertEq(exchanges.getCredit(address(this)), 7);
    }

    /// @dev A held message is those's who were there: who left is paid, who came is not.
    function test_value_belongsToThoseAtArrival() public {
        open(waitingTerms(IExchanges.Condition.Time));
        Waiting memory waiting = publishHeld("key", 11);
        assertEq(exchanges.getQueue(queue).heldValue, 11);
        exchanges.removeSubscriber(queue, address(first));
        Listener late = join(queue);
        joinWith(queue, first);
        release(waiting);
        assertEq(exchanges.getCredit(address(first)), 6);
        assertEq(exchanges.getCredit(address(second)), 5);
        assertEq(exchanges.getCredit(address(late)), 0);
        assertEq(first.count() + late.count(), 0);
        assertEq(second.count(), 1);
        assertEq(exchanges.getQueue(queue).places, 4);
        vm.expectRevert(abi.encodeWithSelector(IExchanges.NotThere.selector, queue));
        exchanges.tidy(queue, 1);
        exchanges.tidy(queue, 0);
        assertEq(exchanges.getQueue(queue).places, 3);
        publish("key");
        publishHeld("key", 0);
        assertEq(exchanges.getQueue(queue).subscribers, 3);
    }

    function test_reward_isPaidAsFarAsTheFundGoes() public {
        IExchanges.QueueTerms memory terms = waitingTerms(IExchanges.Condition.Time);
        terms.reward = 10;
        open(terms);
        exchanges.fund{value: 15}(queue);
        release(publishHeld("key", 0));
        release(publishHeld("key", 0));
        release(publishHeld("key", 0));
        assertEq(exchanges.getCredit(payee), 15);
        exchanges.fund{value: 4}(queue);
        vm.prank(stranger);
        vm.expectRevert(abi.encodeWithSelector(IExchanges.NotTheOwner.selector, stranger, address(this)));
        exchanges.collectQueue(queue, stranger);
        exchanges.collectQueue(queue, payee);
        assertEq(payee.balance, 4);
    }

    function test_payeeReverts_onlyItsOwnCollectFails() public {
        open(openTerms());
        exchanges.publish{value: 2}(exchange, "key", PAYLOAD);
        vm.expectRevert(abi.encodeWithSelector(IExchanges.TransferFailed.selector, address(topics), 1));
        first.execute(address(exchanges), 0, abi.encodeCall(IExchanges.collect, (address(topics))));
        assertEq(exchanges.getCredit(address(first)), 1);
    }
}
