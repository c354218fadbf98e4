// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITopics} from "../../src/interfaces/ITopics.sol";
import {Counter, Noop} from "../../src/testing/Zoo.sol";
import {Outcome} from "../../src/types/Outcome.sol";
import {TopicTest} from "./TopicTest.sol";

contract WithdrawTest is TopicTest {
    address private to = makeAddr("to");

    /* REFUSALS */

    function test_withdraw_unknownTopic() public {
        vm.expectRevert(abi.encodeWithSelector(ITopics.UnknownTopic.selector, UNKNOWN));
        topics.withdraw(UNKNOWN, 0, 1, to);
    }

    function test_withdraw_nobody() public {
        vm.expectRevert(abi.encodeWithSelector(ITopics.NotSubscribed.selector, topic, 0));
        topics.withdraw(topic, 0, 1, to);
    }

    function test_withdraw_onlySubscriber() public {
        Noop noop = new Noop();
        join(noop);
        vm.expectRevert(abi.encodeWithSelector(ITopics.NotSubscriber.selector, address(this), noop));
        topics.withdraw(topic, 0, 1, to);
    }

    function testFuzz_withdraw_belowTheFloor(uint128 amount) public {
        vm.assume(amount > DEPOSIT_GWEI - FLOOR);
        Noop noop = new Noop();
        join(noop);
        vm.expectRevert(abi.encodeWithSelector(ITopics.DepositTooLow.selector, DEPOSIT_GWEI, amount + FLOOR));
        _withdraw(noop, 0, amount, to);
    }

    /// @dev So much that it and the floor together are more than a number can be.
    function test_withdraw_hugeAmount() public {
        Noop noop = new Noop();
        join(noop);
        uint256 most = type(uint256).max;
        for (uint256 amount = most - FLOOR; amount < most; amount += FLOOR / 2) {
            uint256 need = amount == most - FLOOR ? most : amount;
            vm.expectRevert(abi.encodeWithSelector(ITopics.DepositTooLow.selector, DEPOSIT_GWEI, need));
            _withdraw(noop, 0, amount, to);
            if (amount > most - FLOOR / 2) break;
        }
    }

    function test_withdraw_toOneThatRefuses() public {
        Counter counter = joinCounters(1)[0];
        vm.expectRevert(abi.encodeWithSelector(ITopics.PaymentFailed.selector, address(topics), 5));
        _withdraw(counter, 0, 5, address(topics));
        assertEq(depositAt(0), DEPOSIT_GWEI);
    }

    /* SUCCESSES */

    function testFuzz_withdraw_leavesAtLeastTheFloor(uint256 amount, uint256 index) public {
        amount = bound(amount, 0, DEPOSIT_GWEI - FLOOR);
        index = bound(index, 0, 8);
        Counter[] memory counters = joinCounters(9);
        vm.expectEmit(address(topics));
        emit ITopics.Withdrawn(topic, index, to, amount);
        _withdraw(counters[index], index, amount, to);
        assertEq(to.balance, amount * 1 gwei);
        for (uint256 i; i < 9; ++i) {
            assertEq(depositAt(i), i == index ? DEPOSIT_GWEI - amount : DEPOSIT_GWEI);
        }
    }

    function test_withdraw_whilePagesArePending() public {
        Counter[] memory counters = joinLongList(10);
        publishWithGas(FULL_GAS);
        uint256 before = depositAt(19);
        _withdraw(counters[9], 19, before - FLOOR, to);
        assertEq(to.balance, (before - FLOOR) * 1 gwei);
        Page memory page;
        do {
            page = deliverWithGas(FULL_GAS, stranger);
        } while (page.remaining != 0);
        assertOutcomeAt(page, 19, Outcome.Unfunded);
    }

    function _withdraw(Counter animal, uint256 index, uint256 amount, address receiver) private {
        animal.execute(address(topics), 0, abi.encodeCall(ITopics.withdraw, (topic, index, amount, receiver)));
    }

    function _withdraw(Noop animal, uint256 index, uint256 amount, address receiver) private {
        animal.execute(address(topics), 0, abi.encodeCall(ITopics.withdraw, (topic, index, amount, receiver)));
    }
}
