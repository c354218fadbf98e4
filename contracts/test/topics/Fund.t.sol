// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITopics} from "../../src/interfaces/ITopics.sol";
import {Noop} from "../../src/testing/Zoo.sol";
import {Outcome} from "../../src/types/Outcome.sol";
import {TopicTest} from "./TopicTest.sol";

contract FundTest is TopicTest {
    /* REFUSALS */

    function test_fund_unknownTopic() public {
        vm.expectRevert(abi.encodeWithSelector(ITopics.UnknownTopic.selector, UNKNOWN));
        topics.fund{value: 1 gwei}(UNKNOWN, 0);
    }

    function test_fund_nobody() public {
        joinCounters(2);
        Noop noop = new Noop();
        leave(noop, join(noop));
        for (uint256 index = 2; index < 10; ++index) {
            vm.expectRevert(abi.encodeWithSelector(ITopics.NotSubscribed.selector, topic, index));
            topics.fund{value: 1 gwei}(topic, index);
        }
    }

    function test_fund_partsOfAGwei() public {
        join(new Noop());
        vm.expectRevert(abi.encodeWithSelector(ITopics.NotWholeGwei.selector, 1.5 gwei));
        topics.fund{value: 1.5 gwei}(topic, 0);
    }

    function test_fund_aboveALane() public {
        join(new Noop());
        vm.expectRevert(abi.encodeWithSelector(ITopics.DepositTooHigh.selector, DEPOSIT_MAX + 1, DEPOSIT_MAX));
        topics.fund{value: (DEPOSIT_MAX + 1 - DEPOSIT_GWEI) * 1 gwei}(topic, 0);
        vm.expectRevert(abi.encodeWithSelector(ITopics.DepositTooHigh.selector, DEPOSIT_GWEI + (1 << 32), DEPOSIT_MAX));
        topics.fund{value: (1 << 32) * 1 gwei}(topic, 0);
    }

    /* SUCCESSES */

    function testFuzz_fund_byAnybodyAndToNobodyElse(uint256 amount, uint256 index) public {
        amount = bound(amount, 0, 1 ether / 1 gwei);
        index = bound(index, 0, 9);
        joinCounters(10);
        vm.expectEmit(address(topics));
        emit ITopics.Funded(topic, index, amount);
        vm.prank(stranger);
        topics.fund{value: amount * 1 gwei}(topic, index);
        for (uint256 i; i < 10; ++i) {
            assertEq(depositAt(i), i == index ? DEPOSIT_GWEI + amount : DEPOSIT_GWEI);
        }
    }

    function test_fund_toTheBrim() public {
        join(new Noop());
        topics.fund{value: (DEPOSIT_MAX - DEPOSIT_GWEI) * 1 gwei}(topic, 0);
        assertEq(depositAt(0), DEPOSIT_MAX);
        assertOutcomeAt(publish(), 0, Outcome.Delivered);
    }

    function test_fund_bringsTheUnfundedBack() public {
        uint256 index = joinWith(new Noop(), anyTerms(), 100_000);
        assertOutcomeAt(publish(), index, Outcome.Unfunded);
        topics.fund{value: DEPOSIT}(topic, index);
        assertOutcomeAt(publish(), index, Outcome.Delivered);
    }
}
