// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITopics} from "../../src/interfaces/ITopics.sol";
import {Counter, Noop} from "../../src/testing/Zoo.sol";
import {Outcome} from "../../src/types/Outcome.sol";
import {PolicyLibrary} from "../../src/types/Policy.sol";
import {Terms} from "../../src/types/Terms.sol";
import {TopicTest} from "./TopicTest.sol";

contract SealTest is TopicTest {
    /// @dev Records in one page of code.
    uint256 private constant RECORDS = 760;

    /* REFUSALS */

    function test_seal_unknownTopic() public {
        vm.expectRevert(abi.encodeWithSelector(ITopics.UnknownTopic.selector, UNKNOWN));
        topics.seal(UNKNOWN);
    }

    function test_seal_lessThanAWord() public {
        joinCounters(7);
        vm.expectRevert(abi.encodeWithSelector(ITopics.NothingToSeal.selector, topic));
        topics.seal(topic);
    }

    function test_seal_twice() public {
        joinCounters(8);
        topics.seal(topic);
        vm.expectRevert(abi.encodeWithSelector(ITopics.NothingToSeal.selector, topic));
        topics.seal(topic);
    }

    function test_seal_whilePagesArePending() public {
        joinLongList(10);
        Page memory page = publishWithGas(FULL_GAS);
        vm.expectRevert(abi.encodeWithSelector(ITopics.PagesPending.selector, topic, 1, page.outcomes.length));
        topics.seal(topic);
    }

    /* SUCCESSES */

    /// @dev By anybody, whole words only; who is who stays the same.
    function test_seal_keepsEverybody() public {
        Counter[] memory counters = joinCounters(11);
        vm.expectEmit(true, false, false, false, address(topics));
        emit ITopics.Sealed(topic, 0, 8, address(0));
        vm.prank(stranger);
        assertEq(topics.seal(topic), 8);
        assertEq(viewOf(topic).sealedEnd, 8);
        for (uint256 i; i < 11; ++i) {
            assertEq(holderOf(i), address(counters[i]));
            assertEq(Terms.unwrap(termsAt(i)), Terms.unwrap(anyTerms()));
            assertEq(depositAt(i), DEPOSIT_GWEI);
        }
    }

    function test_seal_everybodyIsServedAsBefore() public {
        Counter[] memory counters = joinCounters(19);
        topics.seal(topic);
        publish();
        joinCounters(5);
        topics.seal(topic);
        Page memory page = publish();
        assertEq(viewOf(topic).sealedEnd, 24);
        for (uint256 i; i < 19; ++i) {
            assertEq(counters[i].count(), 2);
            assertEq(counters[i].index(), i);
        }
        for (uint256 i; i < 24; ++i) {
            assertOutcomeAt(page, i, Outcome.Delivered);
        }
    }

    /// @dev Of 1,600 indexes two pages of code are full and a third one has begun; the last word is open.
    function test_seal_severalPages() public {
        Counter counter = new Counter();
        for (uint256 i; i < 1_604; ++i) {
            join(counter);
        }
        assertEq(topics.seal(topic), RECORDS);
        assertEq(topics.seal(topic), 2 * RECORDS);
        assertEq(topics.seal(topic), 1_600);
        publish();
        assertEq(counter.count(), 1_604);
    }

    /// @dev A page of code that is not full is filled up, then the next one begins.
    function test_seal_fillsAPageUp() public {
        Counter counter = new Counter();
        for (uint256 i; i < 776; ++i) {
            join(counter);
            if (i == 400) assertEq(topics.seal(topic), 400);
        }
        assertEq(topics.seal(topic), RECORDS);
        assertEq(topics.seal(topic), 776);
        publish();
        assertEq(counter.count(), 776);
    }

    function test_seal_leaversStayAway() public {
        Counter[] memory counters = joinCounters(8);
        leave(counters[2], 2);
        topics.seal(topic);
        leave(counters[5], 5);
        assertEq(holderOf(2), address(0));
        assertEq(holderOf(5), address(0));
        Page memory page = publish();
        assertOutcomeAt(page, 2, Outcome.None);
        assertOutcomeAt(page, 5, Outcome.None);
        assertEq(counters[2].count() + counters[5].count(), 0);
        assertEq(counters[7].count(), 1);
    }

    /// @dev "A sealed record's tombstone differs from balance 0."
    function test_seal_emptyDepositIsNoTombstone() public {
        PolicyLibrary.Fields memory fields = PolicyLibrary.defaults();
        fields.depositFloor = 0;
        topics.setPolicy(topic, PolicyLibrary.pack(fields));
        Counter pauper = new Counter();
        joinWith(pauper, anyTerms(), 0);
        joinCounters(7);
        topics.seal(topic);
        assertEq(holderOf(0), address(pauper));
        setPrice(0);
        publish();
        assertEq(pauper.count(), 1);
        leave(pauper, 0);
        publish();
        assertEq(pauper.count(), 1);
    }

    /// @dev One that is removed during an event must not harm the sealed records that are served after it.
    function test_seal_removalLeavesTheOthersAlone() public {
        Counter[] memory counters = joinCounters(12);
        Noop poor = new Noop();
        joinWith(poor, anyTerms(), 4_000_000);
        joinCounters(3);
        topics.seal(topic);
        PolicyLibrary.Fields memory fields = PolicyLibrary.defaults();
        fields.depositFloor = 5_000_000;
        topics.setPolicy(topic, PolicyLibrary.pack(fields));
        Page memory page = publish();
        assertOutcomeAt(page, 12, Outcome.Removed);
        for (uint256 i; i < 12; ++i) {
            assertOutcomeAt(page, i, Outcome.Delivered);
            assertEq(counters[i].count(), 1);
        }
        address[] memory creditors = new address[](2);
        (creditors[0], creditors[1]) = (payee, address(poor));
        assertBooksBalance(16, creditors);
    }

    /// @dev A hole among sealed records cannot be filled: the newcomer is appended.
    function test_seal_holesAreNotReused() public {
        Counter[] memory counters = joinCounters(8);
        topics.seal(topic);
        leave(counters[3], 3);
        assertEq(holeOf(topic), 8);
        assertEq(new Noop().join{value: DEPOSIT}(topics, topic, anyTerms(), 3), 8);
    }

    function test_seal_moneyStaysWithinReach() public {
        Counter[] memory counters = joinCounters(8);
        topics.seal(topic);
        topics.fund{value: 5 gwei}(topic, 3);
        assertEq(depositAt(3), DEPOSIT_GWEI + 5);
        counters[3].execute(address(topics), 0, abi.encodeCall(ITopics.withdraw, (topic, 3, 7, stranger)));
        assertEq(depositAt(3), DEPOSIT_GWEI - 2);
        leave(counters[3], 3);
        assertEq(address(counters[3]).balance, (DEPOSIT_GWEI - 2) * 1 gwei);
    }

    /// @dev What it is for: a sealed record is not read from storage.
    function test_seal_makesEventsCheaper() public {
        Noop noop = new Noop();
        for (uint256 i; i < 64; ++i) {
            join(noop);
        }
        uint256 snapshot = vm.snapshotState();
        uint256 open = _coldGasOfPublish();
        vm.revertToState(snapshot);
        topics.seal(topic);
        assertLt(_coldGasOfPublish() + 64 * 1_500, open);
    }

    function _coldGasOfPublish() private returns (uint256) {
        vm.cool(address(topics));
        topics.publish(topic, KEY, 0, payee, PAYLOAD);
        return vm.lastCallGas().gasTotalUsed;
    }
}
