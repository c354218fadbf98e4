// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Vm} from "forge-std/Vm.sol";

import {ITopics} from "../../src/interfaces/ITopics.sol";
import {Animal, Burner, Counter, GasEcho, Noop, Reenterer} from "../../src/testing/Zoo.sol";
import {Outcome} from "../../src/types/Outcome.sol";
import {TermsLibrary} from "../../src/types/Terms.sol";
import {TopicTest} from "./TopicTest.sol";

/// @notice The flaws found in the paper's own contracts, each by the name its test was given there.
contract TrapsTest is TopicTest {
    /* B1: A LOW DEPOSIT STOPS THE TOPIC */

    function test_publish_survivesMinimumDeposit() public {
        uint256 poor = joinWith(new Burner(), anyTerms(), FLOOR);
        Counter rich = joinCounters(1)[0];
        for (uint256 price = 1 gwei; price <= 100 gwei; price *= 10) {
            setPrice(price);
            assertOutcomeAt(publish(), rich.index(), Outcome.Delivered);
        }
        assertEq(rich.count(), 3);
        assertLt(depositAt(poor), FLOOR);
    }

    /// @dev The deposit ends within 50 gwei of what one delivery can cost at most: one gwei decides whether it is called, and it never pays
    /// more than it has.
    function testFuzz_publish_chargesAtMostTheDeposit(uint256 offset, bool burns, uint256 price) public {
        setPrice(bound(price, 1 gwei, 200 gwei));
        Counter[] memory neighbours = joinCounters(2);
        uint256 charge = _chargeOfFirst();
        uint256 limit = _leastDeposit(burns);
        uint256 deposit = limit + bound(offset, 0, 100) - 50;
        uint256 index = joinWith(burns ? Animal(new Burner()) : new Noop(), anyTerms(), deposit);

        Outcome outcome = outcomeAt(publish(), index);
        if (deposit < limit) assertEq(uint256(outcome), uint256(Outcome.Unfunded));
        else assertEq(uint256(outcome), uint256(burns ? Outcome.Failed : Outcome.Delivered));
        assertLe(depositAt(index), deposit, "more than it had");
        for (uint256 i; i < 2; ++i) {
            assertEq(neighbours[i].count(), 1);
            // A word with one that cannot pay takes a longer way, of some 2,000 gas.
            assertLe(DEPOSIT_GWEI - depositAt(i), charge * 105 / 100, "a neighbour paid for it");
        }
        _assertAllMoneyIsSomebodys(index + 1);
    }

    /* B2: A SUBSCRIBER WITHOUT CODE STOPS THE TOPIC */

    function test_publish_survivesCodelessSubscriber() public {
        vm.prank(stranger);
        uint256 codeless = topics.subscribe{value: DEPOSIT}(topic, anyTerms(), NO_HOLE);
        Counter counter = joinCounters(1)[0];
        Page memory page = publish();
        assertOutcomeAt(page, codeless, Outcome.NoCode);
        assertOutcomeAt(page, counter.index(), Outcome.Delivered);
        assertLt(depositAt(codeless), DEPOSIT_GWEI, "the call to nobody is its own to pay");
    }

    function test_publish_survivesVanishedCode() public {
        Noop noop = new Noop();
        uint256 index = join(noop);
        vm.etch(address(noop), "");
        assertOutcomeAt(publish(), index, Outcome.NoCode);
    }

    /* B3: A TOPIC FILLED FOR GOOD */

    /// @dev 149 subscriptions were enough there to exceed a block.
    function test_topic_cannotBeFilled() public {
        for (uint256 i; i < 300; ++i) {
            joinWith(new Burner(), anyTerms(), FLOOR);
        }
        Counter counter = joinCounters(1)[0];
        uint256 pages = 1;
        Page memory page = publishWithGas(FULL_GAS);
        while (page.remaining != 0) {
            page = deliverWithGas(FULL_GAS, stranger);
            require(++pages < 20, "no end");
        }
        assertEq(counter.count(), 1);
        assertGt(topics.getCredit(payee), 0);
    }

    /// @dev Who cannot pay any more goes by itself.
    function test_topic_emptiesItself() public {
        uint256 index = joinWith(new Burner(), anyTerms(), FLOOR);
        Page memory page = publish();
        for (uint256 i; i < 10 && holderOf(index) != address(0); ++i) {
            page = publish();
        }
        assertOutcomeAt(page, index, Outcome.Removed);
    }

    function test_unsubscribe_refunds() public {
        Noop noop = new Noop();
        leave(noop, join(noop));
        assertEq(address(noop).balance, DEPOSIT);
        assertEq(address(topics).balance, 0);
    }

    /* B4: THE LIMIT IS A MINIMUM */

    function test_callback_gasIsCapped() public {
        GasEcho echo = new GasEcho();
        joinWith(echo, termsOf(60_000), DEPOSIT_GWEI);
        topics.publish{gas: 8_000_000}(topic, KEY, 0, payee, PAYLOAD);
        assertLe(echo.gasAtEntry(), 60_000);
        assertGe(echo.gasAtEntry(), 59_500);
    }

    function test_publish_survivesBurners() public {
        for (uint256 i; i < 20; ++i) {
            join(new Burner());
        }
        Counter counter = joinCounters(1)[0];
        Page memory page = publishWithGas(5_500_000);
        assertEq(page.remaining, 0);
        assertEq(counter.count(), 1);
        for (uint256 i; i < 20; ++i) {
            assertOutcomeAt(page, i, Outcome.Failed);
        }
    }

    /* B5: THE PUBLISHER IS NOT MADE WHOLE */

    /// @dev 33 % of the fee came back there. `Money.t.sol` measures more, and closer.
    function test_reimbursement_coversFee() public {
        join(new Counter());
        uint256 gasBefore = gasleft();
        publish();
        uint256 fee = (gasBefore - gasleft()) * tx.gasprice / 1 gwei;
        assertGt(topics.getCredit(payee), fee);
    }

    function test_reimbursement_zeroGasPrice() public {
        Counter counter = joinCounters(1)[0];
        setPrice(0);
        Page memory page = publish();
        assertEq(page.credited, 0);
        assertEq(depositAt(0), DEPOSIT_GWEI);
        assertEq(counter.count(), 1);
    }

    /// @dev The sender picks the tip; subscribers pay at most the topic's cap of 3 gwei, and at most their own maximum.
    function test_reimbursement_feeCap() public {
        joinWith(new Noop(), anyTerms(), DEPOSIT_GWEI);
        vm.fee(10 gwei);
        uint256 atCap = _creditAt(13 gwei);
        assertApproxEqRel(_creditAt(1_000 gwei), atCap, 0.01e18);
        assertLt(_creditAt(11 gwei), atCap);
        _assertOwnMaximumHolds(atCap);
    }

    function test_reimbursement_payeeReverts() public {
        Burner unreceptive = new Burner();
        join(new Counter());
        vm.etch(address(unreceptive), hex"fe");
        topics.publish(topic, KEY, 0, address(unreceptive), PAYLOAD);
        assertGt(topics.getCredit(address(unreceptive)), 0);
    }

    /* E2: THE EVENT COMES AFTER THE CALLBACKS */

    function test_publish_eventOrderAndReceipts() public {
        bytes32 other = topics.create(DEFAULT_POLICY, "other");
        topics.setRoles(other, address(_joinNesting(other)), 1);
        join(new Burner());
        vm.recordLogs();
        topics.publish(topic, KEY, 0, payee, PAYLOAD);

        Vm.Log[] memory logs = vm.getRecordedLogs();
        assertEq(logs.length, 4);
        _assertLog(logs[0], ITopics.Published.selector, topic);
        _assertLog(logs[1], ITopics.Published.selector, other);
        _assertLog(logs[2], ITopics.Delivered.selector, other);
        _assertLog(logs[3], ITopics.Delivered.selector, topic);
        assertEq(logs[0].data, abi.encode(address(this), PAYLOAD));
        Page memory page = parsePage(logs[3]);
        assertEq(page.outcomes, hex"0102000000000000");
        assertEq(page.credited, topics.getCredit(payee));
    }

    /* E3: HALF A LOCK */

    /// @dev A to B to A: the way back into a topic that is delivering is closed, the way into another is open.
    function test_reentry_crossTopic() public {
        bytes32 other = topics.create(DEFAULT_POLICY, "other");
        allowLargeCallbacks();
        Reenterer there = _joinNesting(other);
        Reenterer back = new Reenterer();
        back.join{value: DEPOSIT}(topics, other, anyTerms(), NO_HOLE);
        back.prepare(address(topics), 0, abi.encodeCall(ITopics.publish, (topic, 0, 0, payee, "")));
        topics.setRoles(other, address(there), 1);
        topics.setRoles(topic, address(back), 1);

        publish();
        assertTrue(there.success());
        assertFalse(back.success());
        assertEq(back.returned(), abi.encodeWithSelector(ITopics.Delivering.selector, topic));
        assertEq(viewOf(topic).sequence, 1);
        assertEq(viewOf(other).sequence, 1);
    }

    /* E4: ANYBODY PUBLISHES */

    function test_publish_onlyAuthorised() public {
        vm.expectRevert(abi.encodeWithSelector(ITopics.NotAllowed.selector, topic, stranger));
        vm.prank(stranger);
        topics.publish(topic, KEY, 0, stranger, PAYLOAD);
    }

    /* STEPS */

    function _chargeOfFirst() private returns (uint256 charge) {
        uint256 snapshot = vm.snapshotState();
        publish();
        charge = DEPOSIT_GWEI - depositAt(0);
        vm.revertToState(snapshot);
    }

    /// @dev The least deposit with which one more subscriber is called, by halving.
    function _leastDeposit(bool burns) private returns (uint256 least) {
        Animal animal = burns ? Animal(new Burner()) : new Noop();
        uint256 most = DEPOSIT_GWEI;
        least = FLOOR;
        while (least < most) {
            uint256 tried = (least + most) / 2;
            uint256 snapshot = vm.snapshotState();
            uint256 index = joinWith(animal, anyTerms(), tried);
            bool called = outcomeAt(publish(), index) != Outcome.Unfunded;
            vm.revertToState(snapshot);
            if (called) most = tried;
            else least = tried + 1;
        }
    }

    function _assertAllMoneyIsSomebodys(uint256 end) private view {
        address[] memory creditors = new address[](1);
        creditors[0] = payee;
        assertBooksBalance(end, creditors);
    }

    function _creditAt(uint256 gasPrice) private returns (uint256 credit) {
        uint256 snapshot = vm.snapshotState();
        vm.txGasPrice(gasPrice);
        publish();
        credit = topics.getCredit(payee);
        vm.revertToState(snapshot);
    }

    /// @dev A subscriber that pays 11 gwei at most is served at 13, for 11.
    function _assertOwnMaximumHolds(uint256 atCap) private {
        Noop noop = new Noop();
        leave(noop, joinWith(noop, anyTerms(), DEPOSIT_GWEI));
        uint256 thrifty = joinWith(noop, TermsLibrary.pack(200_000, 11_000, ANY_SHARE), DEPOSIT_GWEI);
        vm.txGasPrice(13 gwei);
        assertOutcomeAt(publish(), thrifty, Outcome.Delivered);
        assertLt((DEPOSIT_GWEI - depositAt(thrifty)) * 13, atCap * 11);
    }

    /// @dev One that publishes on `other` when it is called.
    function _joinNesting(bytes32 other) private returns (Reenterer nesting) {
        nesting = new Reenterer();
        joinWith(nesting, termsOf(viewOf(topic).policy.callbackGas()), DEPOSIT_GWEI);
        nesting.prepare(address(topics), 0, abi.encodeCall(ITopics.publish, (other, 0, 0, address(0), "")));
    }

    function _assertLog(Vm.Log memory log, bytes32 signature, bytes32 topic_) private pure {
        assertEq(log.topics[0], signature);
        assertEq(log.topics[1], topic_);
        assertEq(uint256(log.topics[2]), 1);
    }
}
