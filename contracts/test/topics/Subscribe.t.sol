// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITopics} from "../../src/interfaces/ITopics.sol";
import {Counter, Noop} from "../../src/testing/Zoo.sol";
import {Outcome} from "../../src/types/Outcome.sol";
import {Access, PolicyLibrary} from "../../src/types/Policy.sol";
import {Terms, TermsLibrary} from "../../src/types/Terms.sol";
import {Gatekeeper} from "./Gatekeeper.sol";
import {TopicTest} from "./TopicTest.sol";

contract SubscribeTest is TopicTest {
    PolicyLibrary.Fields private fields = PolicyLibrary.defaults();

    /* REFUSALS */

    function test_subscribe_unknownTopic() public {
        vm.expectRevert(abi.encodeWithSelector(ITopics.UnknownTopic.selector, UNKNOWN));
        topics.subscribe{value: DEPOSIT}(UNKNOWN, anyTerms(), NO_HOLE);
    }

    function test_subscribe_partsOfAGwei() public {
        vm.expectRevert(abi.encodeWithSelector(ITopics.NotWholeGwei.selector, DEPOSIT + 1));
        topics.subscribe{value: DEPOSIT + 1}(topic, anyTerms(), NO_HOLE);
    }

    function test_subscribe_depositBelowTheFloor() public {
        vm.expectRevert(abi.encodeWithSelector(ITopics.DepositTooLow.selector, FLOOR - 1, FLOOR));
        topics.subscribe{value: (FLOOR - 1) * 1 gwei}(topic, anyTerms(), NO_HOLE);
    }

    function test_subscribe_depositAboveALane() public {
        vm.expectRevert(abi.encodeWithSelector(ITopics.DepositTooHigh.selector, DEPOSIT_MAX + 1, DEPOSIT_MAX));
        topics.subscribe{value: (DEPOSIT_MAX + 1) * 1 gwei}(topic, anyTerms(), NO_HOLE);
    }

    function test_subscribe_gasOutOfBounds() public {
        _refuses(termsOf(0));
        _refuses(termsOf(200_001));
    }

    /// @dev It would never be served.
    function test_subscribe_priceBelowTheBaseFee() public {
        vm.fee(20 gwei);
        _refuses(TermsLibrary.pack(200_000, 19_999, ANY_SHARE));
    }

    /// @dev The highest bits of price and share are not the subscriber's.
    function test_subscribe_termsBeyondTheirBounds() public {
        _refuses(TermsLibrary.pack(200_000, PRICE_MAX + 1, ANY_SHARE));
        _refuses(TermsLibrary.pack(200_000, PRICE_MAX, ANY_SHARE + 1));
    }

    function test_subscribe_shareBelowTheReward() public {
        fields.reward = 5_000;
        topics.setPolicy(topic, PolicyLibrary.pack(fields));
        _refuses(TermsLibrary.pack(200_000, 1_000_000, 4_999));
    }

    function test_subscribe_unlisted() public {
        _setAccess(Access.Listed);
        vm.expectRevert(abi.encodeWithSelector(ITopics.NotAllowed.selector, topic, stranger));
        vm.prank(stranger);
        topics.subscribe{value: DEPOSIT}(topic, anyTerms(), NO_HOLE);
    }

    /// @dev Only exactly 32 bytes that are 1 admit; an owner that burns, reverts or has no code refuses.
    function test_subscribe_ownerSaysNo() public {
        Gatekeeper owner = new Gatekeeper(topics);
        bytes[] memory answers = owner.refusals();
        for (uint256 i; i < answers.length; ++i) {
            owner.answerWith(answers[i]);
            _isRefusedBy(owner);
        }
        owner.burn();
        _isRefusedBy(owner);
        vm.etch(address(owner), "");
        _isRefusedBy(owner);
    }

    /* SUCCESSES */

    function test_subscribe_ownerSaysYes() public {
        Gatekeeper owner = new Gatekeeper(topics);
        bytes32 guarded = owner.topic();
        owner.answerWith(abi.encode(true));
        vm.prank(stranger);
        assertEq(topics.subscribe{value: DEPOSIT}(guarded, anyTerms(), NO_HOLE), 0);
    }

    function test_subscribe_isShown() public {
        Counter counter = new Counter();
        join(new Noop());
        vm.expectEmit(address(topics));
        emit ITopics.Subscribed(topic, address(counter), 1, anyTerms(), DEPOSIT_GWEI);
        assertEq(join(counter), 1);
        assertEq(holderOf(1), address(counter));
        assertEq(Terms.unwrap(termsAt(1)), Terms.unwrap(anyTerms()));
        assertEq(depositAt(1), DEPOSIT_GWEI);
        assertEq(viewOf(topic).end, 2);
        assertEq(address(topics).balance, 2 * DEPOSIT);
    }

    function test_subscribe_atTheBounds() public {
        vm.fee(20 gwei);
        assertEq(joinWith(new Noop(), TermsLibrary.pack(200_000, 20_000, 0), FLOOR), 0);
        assertEq(joinWith(new Noop(), anyTerms(), DEPOSIT_MAX), 1);
        assertEq(depositAt(0), FLOOR);
        assertEq(depositAt(1), DEPOSIT_MAX);
    }

    /// @dev What each reserves is what a publish must bring more, and leaving gives it back.
    function test_subscribe_reservesItsGas() public {
        Noop noop = new Noop();
        joinWith(noop, termsOf(100_000), DEPOSIT_GWEI);
        uint256 one = viewOf(topic).callbackGas;
        assertGe(one, 101_587, "its gas and a 63rd of it");
        joinWith(noop, termsOf(100_000), DEPOSIT_GWEI);
        assertEq(viewOf(topic).callbackGas, 2 * one);
        leave(noop, 0);
        assertEq(viewOf(topic).callbackGas, one);
    }

    function test_subscribe_twiceIsTwoSubscriptions() public {
        Counter counter = new Counter();
        join(counter);
        join(counter);
        publish();
        assertEq(counter.count(), 2);
    }

    function test_subscribe_reusesAHole() public {
        Counter[] memory counters = joinCounters(3);
        assertEq(holeOf(topic), 3);
        leave(counters[1], 1);
        assertEq(holeOf(topic), 1);
        Counter late = new Counter();
        assertEq(late.join{value: DEPOSIT}(topics, topic, termsOf(90_000), 1), 1);
        assertEq(holderOf(1), address(late));
        assertEq(Terms.unwrap(termsAt(1)), Terms.unwrap(termsOf(90_000)));
        assertEq(viewOf(topic).end, 3);
        assertOutcomeAt(publish(), 1, Outcome.Delivered);
        assertEq(late.count(), 1);
        assertEq(counters[1].count(), 0);
    }

    function test_subscribe_takenIndexAppends() public {
        joinCounters(3);
        assertEq(new Noop().join{value: DEPOSIT}(topics, topic, anyTerms(), 1), 3);
        assertEq(new Noop().join{value: DEPOSIT}(topics, topic, anyTerms(), 4), 4);
    }

    /// @dev While pages are pending nothing fills a hole: the newcomer would get an event older than itself.
    function test_subscribe_whilePagesArePendingAppends() public {
        Counter[] memory counters = joinLongList(10);
        publishWithGas(FULL_GAS);
        leave(counters[9], 19);
        assertEq(new Noop().join{value: DEPOSIT}(topics, topic, anyTerms(), 19), 20);
    }

    /* STEPS */

    function _refuses(Terms terms) private {
        vm.expectRevert(abi.encodeWithSelector(ITopics.BadTerms.selector, terms, viewOf(topic).policy, block.basefee));
        topics.subscribe{value: DEPOSIT}(topic, terms, NO_HOLE);
    }

    function _setAccess(Access access) private {
        fields.subscribing = access;
        topics.setPolicy(topic, PolicyLibrary.pack(fields));
    }

    function _isRefusedBy(Gatekeeper owner) private {
        bytes32 guarded = topics.topicOf(address(owner), "guarded");
        vm.expectRevert(abi.encodeWithSelector(ITopics.NotAllowed.selector, guarded, stranger));
        vm.prank(stranger);
        topics.subscribe{value: DEPOSIT}(guarded, anyTerms(), NO_HOLE);
    }
}
