// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITopics} from "../../src/interfaces/ITopics.sol";
import {Burner, Counter, Noop} from "../../src/testing/Zoo.sol";
import {Outcome} from "../../src/types/Outcome.sol";
import {PolicyLibrary} from "../../src/types/Policy.sol";
import {Gatekeeper} from "./Gatekeeper.sol";
import {TopicTest} from "./TopicTest.sol";

/// @notice Events whose callbacks do not fit one transaction: a list of twenty, of which one in two burns two million.
contract DeliverTest is TopicTest {
    uint256 private constant PAIRS = 10;

    Counter[] private counters;
    address private carrier = makeAddr("carrier");

    function setUp() public override {
        super.setUp();
        counters = joinLongList(PAIRS);
    }

    /* REFUSALS */

    function test_deliver_unknownTopic() public {
        vm.expectRevert(abi.encodeWithSelector(ITopics.UnknownTopic.selector, UNKNOWN));
        topics.deliver(UNKNOWN, KEY, carrier, PAYLOAD);
    }

    function test_deliver_nothingPending() public {
        vm.expectRevert(abi.encodeWithSelector(ITopics.NothingPending.selector, topic));
        topics.deliver(topic, KEY, carrier, PAYLOAD);
        _deliverAll(publishWithGas(FULL_GAS));
        vm.expectRevert(abi.encodeWithSelector(ITopics.NothingPending.selector, topic));
        topics.deliver(topic, KEY, carrier, PAYLOAD);
    }

    function test_deliver_anotherEvent() public {
        publishWithGas(FULL_GAS);
        bytes32 need = pendingOf(topic).event_;
        _refusesEvent("other", PAYLOAD, need);
        _refusesEvent(KEY, "other", need);
        _refusesEvent(KEY, bytes.concat(PAYLOAD, hex"00"), need);
    }

    function test_deliver_notEnoughGas() public {
        publishWithGas(FULL_GAS);
        vm.expectPartialRevert(ITopics.NotEnoughGas.selector);
        topics.deliver{gas: FULL_GAS - 1}(topic, KEY, carrier, PAYLOAD);
    }

    /// @dev What a publisher makes on chain must still fit the calldata of a page, or nobody could ever end the event.
    function test_publish_nothingThatNoPageCanCarry() public {
        bytes memory payload = new bytes(250_000);
        for (uint256 i = 32; i <= payload.length; i += 32) {
            assembly {
                mstore(add(payload, i), not(0))
            }
        }
        (bool accepted,) = address(topics).call{gas: (1 << 24) - 100_000}(
            abi.encodeCall(ITopics.publish, (topic, KEY, 0, payee, payload))
        );
        uint256 gasOfPage = 21_000 + 16 * payload.length + FULL_GAS;
        assertTrue(!accepted || !viewOf(topic).pending || gasOfPage <= 1 << 24, "nobody can carry its pages");
    }

    /* SUCCESSES */

    /// @dev Each exactly once, and the pages join without gap or overlap.
    function test_deliver_everybodyOnce() public {
        Page memory page = publishWithGas(FULL_GAS);
        uint256 position;
        uint256 served;
        for (uint256 pages = 1;; ++pages) {
            assertEq(page.first, position);
            assertEq(page.sequence, 1);
            for (uint256 i; i < page.outcomes.length; ++i) {
                if (page.outcomes[i] != 0) ++served;
            }
            position += page.outcomes.length;
            assertEq(page.remaining, 24 - position);
            if (page.remaining == 0) break;
            assertLt(pages, 10, "no end");
            page = deliverWithGas(FULL_GAS, carrier);
        }
        assertEq(served, 2 * PAIRS);
        _assertCounts(1);
        assertEq(publishWithGas(FULL_GAS).sequence, 2);
    }

    /// @dev In the order of the event, across pages.
    function test_deliver_inOrder() public {
        publishWithGas(FULL_GAS);
        uint256 position = pendingOf(topic).position;
        for (uint256 i; i < PAIRS; ++i) {
            bool served;
            for (uint256 p; p < position; ++p) {
                served = served || indexAt(1, p, 2 * PAIRS) == 2 * i + 1;
            }
            assertEq(counters[i].count(), served ? 1 : 0);
        }
        assertEq(pendingOf(topic).end, 2 * PAIRS);
        assertEq(pendingOf(topic).payee, payee);
        assertEq(pendingOf(topic).sequence, 1);
    }

    function test_deliver_tellsWhatRemains() public {
        Page memory page = publishWithGas(FULL_GAS);
        while (page.remaining != 0) {
            vm.recordLogs();
            uint256 remaining = topics.deliver{gas: FULL_GAS + ENTRY_GAS}(topic, KEY, carrier, PAYLOAD);
            page = lastPage();
            assertEq(remaining, page.remaining);
        }
    }

    function test_deliver_lateJoinersWait() public {
        Page memory page = publishWithGas(FULL_GAS);
        Counter late = new Counter();
        uint256 index = join(late);
        assertEq(index, 2 * PAIRS);
        page = _deliverAll(page);
        assertEq(late.count(), 0);
        _assertCounts(1);
        _deliverAll(publishWithGas(FULL_GAS));
        assertEq(late.count(), 1);
        _assertCounts(2);
    }

    /// @dev So many join between pages that the list gets new words: those who were there are still served once.
    function test_deliver_listGrowsBetweenPages() public {
        Page memory page = publishWithGas(FULL_GAS);
        Counter[] memory late = joinCounters(30);
        _deliverAll(page);
        _assertCounts(1);
        for (uint256 i; i < 30; ++i) {
            assertEq(late[i].count(), 0);
        }
    }

    /// @dev The reward goes where the publication said, the gas of a page to who carried it.
    function test_deliver_paysItsCarrier() public {
        PolicyLibrary.Fields memory fields = PolicyLibrary.defaults();
        (fields.reward, fields.callbackGas) = (1_000_000, 2_000_000);
        topics.setPolicy(topic, PolicyLibrary.pack(fields));
        Page memory page = publishWithGas(FULL_GAS);
        uint256 before = topics.getCredit(payee);
        assertEq(before, page.credited);
        page = deliverWithGas(FULL_GAS, carrier);
        uint256 rewards = topics.getCredit(payee) - before;
        assertEq(rewards, _served(page) * 1_000_000);
        assertEq(topics.getCredit(carrier), page.credited - rewards);
    }

    /// @dev Without a payee the gas of a page goes to the topic, the reward where it went before.
    function test_deliver_withoutPayee() public {
        Page memory page = publishWithGas(FULL_GAS);
        uint256 before = topics.getCredit(payee);
        page = deliverWithGas(FULL_GAS, address(0));
        assertEq(viewOf(topic).credit, page.credited);
        assertEq(topics.getCredit(payee), before);
    }

    /// @dev Also when nobody left can pay, one call ends it.
    function test_deliver_nobodyFundedIsLeft() public {
        Page memory page = publishWithGas(FULL_GAS);
        vm.fee(1_000 gwei);
        vm.txGasPrice(1_000 gwei);
        page = deliverWithGas(FULL_GAS, carrier);
        assertEq(page.remaining, 0);
        for (uint256 i; i < page.outcomes.length; ++i) {
            assertTrue(page.outcomes[i] == bytes1(uint8(Outcome.Unfunded)) || page.outcomes[i] == 0);
        }
    }

    /// @dev Also when nobody is left at all.
    function test_deliver_everybodyLeft() public {
        publishWithGas(FULL_GAS);
        for (uint256 i; i < 2 * PAIRS; ++i) {
            vm.prank(holderOf(i));
            topics.unsubscribe(topic, i, carrier);
        }
        assertEq(deliverWithGas(1_000_000, carrier).remaining, 0);
        assertEq(viewOf(topic).callbackGas, 0);
        assertEq(publishWithGas(1_000_000).remaining, 0);
    }

    /// @dev An owner contract that changes its mind holds up neither a page nor who leaves.
    function test_deliver_ownerIsNotAsked() public {
        Gatekeeper owner = new Gatekeeper(topics);
        topic = owner.topic();
        owner.answerWith(abi.encode(true));
        Noop noop = new Noop();
        join(noop);
        for (uint256 i; i < 100; ++i) {
            join(new Burner());
        }
        Page memory page = publishWithGas(FULL_GAS);
        assertGt(page.remaining, 0);
        owner.burn();
        noop.execute(address(topics), 0, abi.encodeCall(ITopics.withdraw, (topic, 0, 1, carrier)));
        leave(noop, 0);
        vm.prank(stranger);
        topics.deliver{gas: FULL_GAS + ENTRY_GAS}(topic, KEY, carrier, PAYLOAD);
        assertFalse(viewOf(topic).pending && pendingOf(topic).position == page.outcomes.length, "no progress");
    }

    function test_deliver_sealedList() public {
        topics.seal(topic);
        _deliverAll(publishWithGas(FULL_GAS));
        _assertCounts(1);
        assertEq(viewOf(topic).sealedEnd, 16);
    }

    function test_deliver_atNoPrice() public {
        setPrice(0);
        _deliverAll(publishWithGas(FULL_GAS));
        _assertCounts(1);
        assertEq(depositsOf(2 * PAIRS), 2 * PAIRS * DEPOSIT_GWEI);
    }

    /// @dev Five events, each from another start, through pages that begin and end within words.
    function test_deliver_eventAfterEvent() public {
        for (uint256 sequence = 1; sequence <= 5; ++sequence) {
            Page memory page = publishWithGas(FULL_GAS + sequence * 311_111);
            assertEq(page.sequence, sequence);
            _deliverAll(page);
            _assertCounts(sequence);
        }
        address[] memory creditors = new address[](2);
        (creditors[0], creditors[1]) = (payee, carrier);
        assertBooksBalance(2 * PAIRS, creditors);
    }

    /// @dev The largest callbacks there are: every page serves at least one.
    function test_deliver_largestCallbacks() public {
        topic = topics.create(DEFAULT_POLICY, "large");
        PolicyLibrary.Fields memory fields = PolicyLibrary.defaults();
        fields.callbackGas = PolicyLibrary.CALLBACK_GAS_MAX;
        topics.setPolicy(topic, PolicyLibrary.pack(fields));
        for (uint256 i; i < 3; ++i) {
            joinWith(new Burner(), termsOf(PolicyLibrary.CALLBACK_GAS_MAX), DEPOSIT_GWEI);
        }
        Page memory page = publishWithGas(FULL_GAS);
        assertEq(_served(page), 1);
        page = deliverWithGas(FULL_GAS, carrier);
        assertEq(_served(page), 1);
        page = deliverWithGas(FULL_GAS, carrier);
        assertEq(page.remaining, 0);
    }

    /* STEPS */

    function _refusesEvent(bytes32 key, bytes memory payload, bytes32 need) private {
        try topics.deliver(topic, key, carrier, payload) {
            fail();
        } catch (bytes memory reason) {
            assertEq(bytes4(reason), ITopics.WrongEvent.selector);
            (uint256 have, uint256 wanted) = this.parseHaveNeed(reason);
            assertEq(bytes32(wanted), need);
            assertNotEq(bytes32(have), need);
        }
    }

    function _deliverAll(Page memory page) private returns (Page memory) {
        for (uint256 i; page.remaining != 0; ++i) {
            assertLt(i, 20, "no end");
            page = deliverWithGas(FULL_GAS, carrier);
        }
        return page;
    }

    function _served(Page memory page) private pure returns (uint256 number) {
        for (uint256 i; i < page.outcomes.length; ++i) {
            uint8 outcome = uint8(page.outcomes[i]);
            if (outcome == uint8(Outcome.Delivered) || outcome == uint8(Outcome.Failed)) ++number;
        }
    }

    function _assertCounts(uint256 expected) private view {
        for (uint256 i; i < PAIRS; ++i) {
            assertEq(counters[i].count(), expected);
        }
    }
}
