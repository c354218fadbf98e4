// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITopics} from "../../src/interfaces/ITopics.sol";
import {Counter, Noop} from "../../src/testing/Zoo.sol";
import {Outcome} from "../../src/types/Outcome.sol";
import {TopicTest} from "./TopicTest.sol";

contract UnsubscribeTest is TopicTest {
    address private to = makeAddr("to");

    /* REFUSALS */

    function test_unsubscribe_unknownTopic() public {
        vm.expectRevert(abi.encodeWithSelector(ITopics.UnknownTopic.selector, UNKNOWN));
        topics.unsubscribe(UNKNOWN, 0, to);
    }

    function test_unsubscribe_onlySubscriber() public {
        Noop noop = new Noop();
        join(noop);
        vm.expectRevert(abi.encodeWithSelector(ITopics.NotSubscriber.selector, address(this), noop));
        topics.unsubscribe(topic, 0, to);
    }

    function test_unsubscribe_twice() public {
        Noop noop = new Noop();
        join(noop);
        join(new Noop());
        leave(noop, 0);
        vm.expectRevert(abi.encodeWithSelector(ITopics.NotSubscribed.selector, topic, 0));
        leave(noop, 0);
    }

    function test_unsubscribe_beyondTheEnd() public {
        vm.expectRevert(abi.encodeWithSelector(ITopics.NotSubscribed.selector, topic, 1 << 40));
        topics.unsubscribe(topic, 1 << 40, to);
    }

    function test_unsubscribe_toOneThatRefuses() public {
        Noop noop = new Noop();
        join(noop);
        vm.expectRevert(abi.encodeWithSelector(ITopics.PaymentFailed.selector, address(topics), DEPOSIT_GWEI));
        noop.execute(address(topics), 0, leaving(0, address(topics)));
        assertEq(depositAt(0), DEPOSIT_GWEI);
    }

    /* SUCCESSES */

    function test_unsubscribe_paysEverythingOut() public {
        Counter[] memory counters = joinCounters(9);
        vm.expectEmit(address(topics));
        emit ITopics.Unsubscribed(topic, address(counters[4]), 4, DEPOSIT_GWEI);
        bytes memory residue = counters[4].execute(address(topics), 0, leaving(4, to));
        assertEq(abi.decode(residue, (uint256)), DEPOSIT_GWEI);
        assertEq(to.balance, DEPOSIT);
        assertEq(holderOf(4), address(0));
        for (uint256 i; i < 9; ++i) {
            assertEq(depositAt(i), i == 4 ? 0 : DEPOSIT_GWEI);
        }
        assertOutcomeAt(publish(), 4, Outcome.None);
    }

    function test_unsubscribe_afterEvents() public {
        Counter counter = joinCounters(1)[0];
        publish();
        uint256 rest = depositAt(0);
        counter.execute(address(topics), 0, leaving(0, to));
        assertEq(to.balance, rest * 1 gwei);
        assertEq(viewOf(topic).callbackGas, 0);
    }

    /// @dev Who leaves between pages is not called, and pays nothing.
    function test_unsubscribe_whilePagesArePending() public {
        Counter[] memory counters = joinLongList(10);
        Page memory page = publishWithGas(FULL_GAS);
        counters[9].execute(address(topics), 0, leaving(19, to));
        assertEq(to.balance, DEPOSIT);
        while (page.remaining != 0) page = deliverWithGas(FULL_GAS, stranger);
        assertEq(counters[9].count(), 0);
        assertOutcomeAt(page, 19, Outcome.None);
    }

    /// @dev Words at the end that nobody lives in any more are given back, one by each event.
    function test_unsubscribe_shortensTheList() public {
        Counter[] memory counters = joinCounters(20);
        for (uint256 i = 6; i < 20; ++i) {
            leave(counters[i], i);
        }
        publish();
        publish();
        publish();
        assertEq(viewOf(topic).end, 8);
        assertEq(counters[0].count(), 3);
        assertEq(join(new Noop()), 8);
    }
}
