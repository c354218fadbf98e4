// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Vm} from "forge-std/Vm.sol";

import {ITopics} from "../../src/interfaces/ITopics.sol";
import {Burner, Counter, Noop, Reenterer} from "../../src/testing/Zoo.sol";
import {Outcome} from "../../src/types/Outcome.sol";
import {PolicyLibrary} from "../../src/types/Policy.sol";
import {TermsLibrary} from "../../src/types/Terms.sol";
import {Gatekeeper} from "./Gatekeeper.sol";
import {TopicTest} from "./TopicTest.sol";

contract PublishTest is TopicTest {
    uint256[] private order;

    /* REFUSALS */

    function test_publish_unknownTopic() public {
        vm.expectRevert(abi.encodeWithSelector(ITopics.UnknownTopic.selector, UNKNOWN));
        topics.publish(UNKNOWN, KEY, 0, payee, PAYLOAD);
    }

    function test_publish_ownerSaysNo() public {
        Gatekeeper owner = new Gatekeeper(topics);
        bytes32 guarded = owner.topic();
        bytes[] memory answers = owner.refusals();
        for (uint256 i; i < answers.length; ++i) {
            owner.answerWith(answers[i]);
            vm.expectRevert(abi.encodeWithSelector(ITopics.NotAllowed.selector, guarded, stranger));
            vm.prank(stranger);
            topics.publish(guarded, KEY, 0, payee, PAYLOAD);
        }
    }

    /// @dev IV-F: who publishes on an old state fails, and cheaply, however many subscribers there are.
    function test_publish_staleSequence() public {
        joinCounters(20);
        publish();
        vm.cool(address(topics));
        vm.expectRevert(abi.encodeWithSelector(ITopics.StaleSequence.selector, 1, 2));
        topics.publish{gas: 15_000}(topic, KEY, 1, payee, PAYLOAD);
        vm.expectRevert(abi.encodeWithSelector(ITopics.StaleSequence.selector, 3, 2));
        topics.publish(topic, KEY, 3, payee, PAYLOAD);
    }

    function test_publish_whilePagesArePending() public {
        joinLongList(10);
        Page memory page = publishWithGas(FULL_GAS);
        vm.cool(address(topics));
        vm.expectRevert(abi.encodeWithSelector(ITopics.PagesPending.selector, topic, 1, page.outcomes.length));
        topics.publish{gas: 15_000}(topic, KEY, 0, payee, PAYLOAD);
    }

    /// @dev One gas less than is needed is refused, and the refusal tells how much it is.
    function test_publish_notEnoughGas() public {
        Counter[] memory counters = joinCounters(5);
        uint256 least = leastGas();
        (bool accepted,) = address(topics).call{gas: least - 1}(_publishing());
        assertFalse(accepted);
        (accepted,) = address(topics).call{gas: least}(_publishing());
        assertTrue(accepted);
        assertEq(counters[0].count() + counters[4].count(), 2);
    }

    /// @dev Beyond the chain's cap nobody can bring more than that: 13 sixteenths of it must arrive.
    function test_publish_notEvenTheFullCap() public {
        joinLongList(10);
        uint256 least = leastGas();
        assertApproxEqAbs(least, FULL_GAS, ENTRY_GAS);
        (bool accepted,) = address(topics).call{gas: least - 1}(_publishing());
        assertFalse(accepted);
    }

    /* SUCCESSES */

    function test_publish_ownerSaysYes() public {
        Gatekeeper owner = new Gatekeeper(topics);
        bytes32 guarded = owner.topic();
        owner.answerWith(abi.encode(true));
        vm.prank(stranger);
        assertEq(topics.publish(guarded, KEY, 0, payee, PAYLOAD), 1);
    }

    function test_publish_toNobody() public {
        Page memory page = publish();
        assertEq(page.outcomes.length, 0);
        assertEq(page.credited, 0);
        assertEq(viewOf(topic).sequence, 1);
    }

    /// @dev The callback gets topic, sequence, index, key and payload, whatever the payload's length.
    function testFuzz_publish_arrivesAsSent(bytes32 key, bytes calldata payload) public {
        Counter[] memory counters = joinCounters(3);
        topics.publish(topic, "", 0, payee, "an event before it");
        vm.recordLogs();
        topics.publish(topic, key, 0, payee, payload);
        for (uint256 i; i < 3; ++i) {
            assertEq(counters[i].topic(), topic);
            assertEq(counters[i].sequence(), 2);
            assertEq(counters[i].index(), i);
            assertEq(counters[i].key(), key);
            assertEq(counters[i].payloadHash(), keccak256(payload));
        }
        Vm.Log memory log = vm.getRecordedLogs()[0];
        assertEq(log.topics[0], ITopics.Published.selector);
        assertEq(log.topics[3], key);
        assertEq(log.data, abi.encode(address(this), payload));
    }

    function test_publish_tenKilobytes() public {
        Counter counter = joinCounters(1)[0];
        bytes memory payload = new bytes(10_001);
        (payload[0], payload[9_999], payload[10_000]) = (0x01, 0x02, 0x03);
        topics.publish(topic, KEY, 0, payee, payload);
        assertEq(counter.payloadHash(), keccak256(payload));
    }

    function test_publish_countsWithoutGaps() public {
        joinCounters(1);
        for (uint256 sequence = 1; sequence < 6; ++sequence) {
            assertEq(topics.publish(topic, KEY, sequence, payee, PAYLOAD), sequence);
        }
        assertEq(viewOf(topic).sequence, 5);
    }

    /// @dev Index order from a start that moves on by a word of eight with each event.
    function test_publish_orderRotates() public {
        for (uint256 i; i < 20; ++i) {
            Reenterer reenterer = new Reenterer();
            reenterer.prepare(address(this), 0, abi.encodeCall(this.note, (i)));
            join(reenterer);
        }
        uint8[3] memory starts = [8, 16, 0];
        for (uint256 event_; event_ < 3; ++event_) {
            delete order;
            publish();
            for (uint256 i; i < 20; ++i) {
                // The third word holds four: after index 19 comes index 0.
                assertEq(order[i], (starts[event_] + i) % 20);
            }
        }
    }

    function note(uint256 index) external {
        order.push(index);
    }

    /// @dev Everything that can become of a delivery, in one log.
    function test_publish_allOutcomes() public {
        join(new Counter());
        join(new Burner());
        joinWith(new Noop(), anyTerms(), 100_000);
        joinWith(new Noop(), TermsLibrary.pack(200_000, 1_000, ANY_SHARE), DEPOSIT_GWEI);
        vm.prank(stranger);
        topics.subscribe{value: DEPOSIT}(topic, anyTerms(), NO_HOLE);
        _joinPoor(1);
        vm.fee(1 gwei + 1);
        assertEq(publish().outcomes, hex"0102030405060000");
    }

    /// @dev A page removes one, or as many as share its base so far, so that those can pay for it; the others wait, and lose nothing.
    function test_publish_removesAsManyAsItCalls() public {
        joinCounters(3);
        _joinPoor(5);
        assertEq(publish().outcomes, hex"0101010606060303");
        assertEq(publish().outcomes, hex"0101010000000606");
        assertEq(viewOf(topic).live, 3);
    }

    /// @dev Who pays a price of its own shares nothing, so it pays for no removal.
    function test_publish_removesNobodyForThoseApart() public {
        vm.txGasPrice(3 gwei);
        for (uint256 i; i < 3; ++i) {
            joinWith(new Noop(), TermsLibrary.pack(200_000, 2_000, ANY_SHARE), DEPOSIT_GWEI);
        }
        _joinPoor(4);
        assertEq(publish().outcomes, hex"0101010603030300");
    }

    function test_publish_removesOneBeforeItCalls() public {
        _joinPoor(5);
        address last = holderOf(4);
        joinCounters(3);
        for (uint256 i; i < 5; ++i) {
            assertEq(topics.getCredit(last), 0);
            publish();
            assertEq(viewOf(topic).live, 7 - i);
        }
        assertEq(topics.getCredit(last), FLOOR, "its residue is its own");
    }

    /// @dev Who could not pay for being looked at is passed over, and keeps what it has.
    function test_publish_looksAtNobodyTooPoorForIt() public {
        joinCounters(1);
        joinWith(new Noop(), anyTerms(), FLOOR);
        setPrice(100 gwei);
        assertOutcomeAt(publish(), 1, Outcome.Unfunded);
        assertEq(depositAt(1), FLOOR);
    }

    /// @dev Who is only looked at pays for the look, at no more than its own price, and nobody else does.
    function test_publish_lookIsPaidByWhoIsLookedAt() public {
        joinCounters(1);
        uint256 alone = _chargeOfFirst();
        for (uint256 i; i < 50; ++i) {
            joinWith(new Noop(), TermsLibrary.pack(200_000, 1_000, ANY_SHARE), DEPOSIT_GWEI);
        }
        vm.fee(1 gwei + 1);
        uint256 among = _chargeOfFirst();
        assertLt(among, alone * 11 / 10, "the others pay");
        for (uint256 i = 1; i < 51; ++i) {
            assertGt(DEPOSIT_GWEI - depositAt(i), 0);
            assertLt(DEPOSIT_GWEI - depositAt(i), 2 * 10_000, "two looks of 10,000 gas at 1 gwei");
        }
    }

    /// @dev Nobody pays more than its own maximum, and the one who does is served all the same.
    function test_publish_chargesTheOwnMaximum() public {
        vm.fee(10 gwei);
        vm.txGasPrice(13 gwei);
        joinWith(new Noop(), TermsLibrary.pack(200_000, 10_500, ANY_SHARE), DEPOSIT_GWEI);
        joinWith(new Noop(), anyTerms(), DEPOSIT_GWEI);
        Page memory page = publish();
        assertOutcomeAt(page, 0, Outcome.Delivered);
        assertLt(DEPOSIT_GWEI - depositAt(0), DEPOSIT_GWEI - depositAt(1));
        assertEq(2 * DEPOSIT_GWEI - depositsOf(2), page.credited);
    }

    function test_publish_rewardGoesToThePayee() public {
        joinCounters(3);
        uint256 without = _creditOfNext();
        PolicyLibrary.Fields memory fields = PolicyLibrary.defaults();
        fields.reward = 1_000_000;
        topics.setPolicy(topic, PolicyLibrary.pack(fields));
        assertApproxEqAbs(_creditOfNext(), without + 3_000_000, without / 10);
    }

    function test_publish_dataFeeIsSharedByTheServed() public {
        joinCounters(4);
        uint256 without = _creditOfNext();
        PolicyLibrary.Fields memory fields = PolicyLibrary.defaults();
        fields.dataFee = 1_000_000_000;
        topics.setPolicy(topic, PolicyLibrary.pack(fields));
        // A million gwei per byte, of seven bytes.
        assertApproxEqAbs(_creditOfNext(), without + 7_000_000, without / 10);
    }

    /* STEPS */

    function _publishing() private view returns (bytes memory) {
        return abi.encodeCall(ITopics.publish, (topic, KEY, 0, payee, PAYLOAD));
    }

    function _joinPoor(uint256 number) private {
        for (uint256 i; i < number; ++i) {
            joinWith(new Noop(), anyTerms(), FLOOR);
        }
        PolicyLibrary.Fields memory fields = PolicyLibrary.defaults();
        fields.depositFloor = FLOOR + 1;
        topics.setPolicy(topic, PolicyLibrary.pack(fields));
    }

    function _chargeOfFirst() private returns (uint256 charge) {
        charge = depositAt(0);
        publish();
        charge -= depositAt(0);
    }

    function _creditOfNext() private returns (uint256 credit) {
        uint256 snapshot = vm.snapshotState();
        credit = publish().credited;
        vm.revertToState(snapshot);
    }
}
