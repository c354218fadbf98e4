// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Member} from "../../src/exchanges/Member.sol";
import {PubSub} from "../../src/exchanges/PubSub.sol";
import {IExchanges} from "../../src/interfaces/IExchanges.sol";
import {Listener, QuietListener, Trickster} from "../../src/testing/Pack.sol";
import {Outcome} from "../../src/types/Outcome.sol";
import {ExchangesTest} from "./ExchangesTest.sol";

/// @notice Subscribers that misbehave, lists too long for a transaction, calls from inside a delivery, and keys with several parts.
contract HostileTest is ExchangesTest {
    bytes32 private queue;

    function setUp() public override {
        super.setUp();
        queue = makeQueue("key");
    }

    function trick(Trickster.Trick what) private returns (Trickster trickster) {
        trickster = new Trickster(what);
        joinWith(queue, trickster);
    }

    /* ISOLATION */

    function test_hostileSubscribers_stopNobody() public {
        trick(Trickster.Trick.Burn);
        trick(Trickster.Trick.RevertBomb);
        trick(Trickster.Trick.ReturnBomb);
        vm.prank(stranger);
        exchanges.subscribe(queue); // without code
        Listener listener = join(queue);
        vm.recordLogs();
        uint256 before = gasleft();
        publish("key");
        assertLt(before - gasleft(), 3 * 200_000 + 250_000, "somebody cost more than its gas");
        bytes memory outcomes = lastOutcomes();
        Outcome[5] memory expected =
            [Outcome.Failed, Outcome.Failed, Outcome.Delivered, Outcome.NoCode, Outcome.Delivered];
        for (uint256 i; i < 5; ++i) {
            assertEq(uint8(outcomes[i]), uint8(expected[i]), vm.toString(i));
        }
        assertEq(listener.count(), 1);
    }

    /// @dev Whatever gas is brought, a callback gets its own or is not made.
    function test_callback_getsExactlyItsGas() public {
        Trickster echo = trick(Trickster.Trick.Call);
        uint256 made;
        for (uint256 gas_ = 250_000; gas_ < 650_000; gas_ += 5_000) {
            uint256 state = vm.snapshotState();
            try exchanges.publish{gas: gas_}(exchange, "key", PAYLOAD) {
                ++made;
                assertGt(echo.gasAtEntry(), 195_000);
                assertLe(echo.gasAtEntry(), 200_000);
            } catch (bytes memory reason) {
                assertTrue(reason.length == 0 || bytes4(reason) == IExchanges.TooLittleGas.selector);
                assertEq(made, 0, "more gas is not worse");
            }
            vm.revertToState(state);
        }
        assertGt(made, 10);
    }

    function test_longPayload_toManyQueues() public {
        for (uint256 i; i < 20; ++i) {
            joinWith(makeQueue(string.concat("many-", vm.toString(i))), new QuietListener());
        }
        uint256 before = gasleft();
        exchanges.publish(exchange, "many-*", new bytes(65_536));
        assertLt(before - gasleft(), 2_500_000, "memory is used again");
    }

    /* PAGES */

    function fill(uint256 count) private returns (Listener[] memory listeners) {
        IExchanges.QueueTerms memory terms = openTerms();
        (terms.callbackGas, terms.lifo, terms.reward) = (2_000_000, true, 5);
        queue = makeQueue("long", terms);
        exchanges.fund{value: 100}(queue);
        listeners = new Listener[](count);
        for (uint256 i; i < count; ++i) {
            if (i % 2 == 0) trick(Trickster.Trick.Burn);
            else listeners[i] = join(queue);
        }
    }

    function test_longList_isServedPageByPage() public {
        Listener[] memory listeners = fill(12);
        vm.expectPartialRevert(IExchanges.TooLittleGas.selector);
        exchanges.publish{gas: 7_000_000}(exchange, "long", PAYLOAD);
        vm.recordLogs();
        exchanges.publish{gas: 8_300_000, value: 100}(exchange, "long", PAYLOAD);
        Waiting memory waiting = lastHeld();
        assertTrue(exchanges.getQueue(queue).pending);
        bytes32 next = keccak256(abi.encode(waiting.header, keccak256(""), keccak256(PAYLOAD)));
        assertEq(exchanges.getQueue(queue).next, next);

        // Who leaves in between is paid, what arrives waits, and the half-delivered message comes before the newest.
        exchanges.removeSubscriber(queue, address(listeners[11]));
        Waiting memory newest = publishHeld("long", 0);
        vm.expectPartialRevert(IExchanges.WrongMessage.selector);
        release(newest);
        uint256 pages = 1;
        for (; !exchanges.release{gas: 8_300_000}(queue, waiting.header, "", PAYLOAD, payee); ++pages) {}
        assertGt(pages, 1);
        assertEq(exchanges.getCredit(payee), 5 * pages, "each page is paid");
        for (uint256 i = 1; i < 12; i += 2) {
            assertEq(listeners[i].count(), i == 11 ? 0 : 1);
            assertEq(exchanges.getCredit(address(listeners[i])), i < 4 ? 9 : 8);
        }
        assertEq(exchanges.getQueue(queue).heldValue, 0);
        assertEq(newest.header.entitled, 11);
    }

    function test_hostileQueue_leavesGasForTheOthers() public {
        fill(12);
        Listener listener = join(makeQueue("longer"));
        IExchanges.QueueTerms memory terms = openTerms();
        terms.callbackGas = 4_000_000;
        bytes32 greedy = makeQueue("greedy", terms);
        Listener last = join(greedy);
        vm.recordLogs();
        exchanges.publish{gas: 9_000_000}(exchange, "*", PAYLOAD);
        assertTrue(exchanges.getQueue(queue).pending);
        assertEq(listener.count(), 1);
        assertEq(last.count(), 0, "there was no gas for this one");
        assertEq(exchanges.getQueue(greedy).held, 1);
        release(lastHeld());
        assertEq(last.count(), 1);
    }

    /* RE-ENTRY */

    function reenter(bytes memory data) private returns (Trickster trickster) {
        trickster = trick(Trickster.Trick.Call);
        trickster.prepare(address(exchanges), data);
        vm.prank(address(trickster));
        exchanges.requestPublishing(exchange);
        exchanges.approvePublisher(exchange, address(trickster));
    }

    function test_reentry_publishIsHeld() public {
        Trickster trickster = reenter(abi.encodeCall(IExchanges.publish, (exchange, "key", PAYLOAD)));
        Listener listener = join(queue);
        vm.recordLogs();
        publish("key");
        assertTrue(trickster.success());
        assertEq(listener.count(), 1);
        release(lastHeld());
        assertEq(listener.number(), 2);
        assertEq(trickster.count(), 2);
    }

    function test_reentry_releaseIsRefused() public {
        IExchanges.Header memory header;
        Trickster trickster = reenter(abi.encodeCall(IExchanges.release, (queue, header, "", PAYLOAD, address(this))));
        publish("key");
        assertFalse(trickster.success());
        assertEq(bytes4(trickster.returned()), IExchanges.QueueBusy.selector);
    }

    function test_reentry_leavingDoesNotSkipTheNext() public {
        Trickster trickster = trick(Trickster.Trick.Call);
        trickster.prepare(address(exchanges), abi.encodeCall(IExchanges.removeSubscriber, (queue, address(trickster))));
        Listener listener = join(queue);
        exchanges.publish{value: 10}(exchange, "key", PAYLOAD);
        exchanges.publish{value: 10}(exchange, "key", PAYLOAD);
        assertEq(trickster.count(), 1);
        assertEq(listener.count(), 2);
        assertEq(exchanges.getCredit(address(trickster)), 5);
        assertEq(exchanges.getCredit(address(listener)), 15);
    }

    function test_reentry_collectPaysOnce() public {
        Trickster trickster = reenter(abi.encodeCall(IExchanges.collect, (payee)));
        exchanges.publish{value: 10}(exchange, "key", PAYLOAD);
        assertTrue(trickster.success());
        assertEq(payee.balance, 10);
        assertEq(exchanges.getCredit(address(trickster)), 0);
        assertEq(address(exchanges).balance, 0);
    }

    /* HIERARCHICAL KEYS */

    /// @dev P publishes `a.b*.c` in the first exchange; pub-subs carry it to the second and third.
    function test_hierarchy_reachesTheLastExchange() public {
        (PubSub one, PubSub two, Listener last) = chain(2_000_000);
        publish("a.b*.c.d");
        assertEq(last.count(), 1);
        assertEq(last.key(), "d");
        assertEq(last.payload(), PAYLOAD);
        assertEq(last.publisher(), address(two));
        vm.expectRevert(abi.encodeWithSelector(Member.NotExchanges.selector, address(this), address(exchanges)));
        one.onMessage(queue, 1, exchange, address(this), "b", PAYLOAD);
    }

    function test_hierarchy_deferredWithoutGasAndForwardedByAnybody() public {
        (PubSub one,, Listener last) = chain(150_000);
        publish("a.blue.c");
        assertEq(last.count(), 0);
        bytes32 next = one.getTargets()[0];
        vm.prank(stranger);
        one.forward(next, "blue.c", PAYLOAD);
        vm.expectPartialRevert(PubSub.NoSuchForward.selector);
        one.forward(next, "blue.c", PAYLOAD);
        assertEq(last.count(), 0);
    }

    /// @dev A pub-sub that feeds its own exchange: each round takes a part off the key.
    function test_hierarchy_loopsEnd() public {
        IExchanges.QueueTerms memory terms = openTerms();
        terms.callbackGas = 4_000_000;
        queue = makeQueue("loop", terms);
        addPubSub(queue, exchange);
        vm.recordLogs();
        publish("loop.loop.loop.loop.loop.loop.loop.loop");
        while (exchanges.getQueue(queue).held != 0) {
            Waiting memory waiting = lastHeld();
            // Of 8 parts, as many are gone as messages were made of it.
            for (uint256 i = waiting.header.sequence; i < 8; ++i) {
                waiting.key = bytes.concat(waiting.key, i + 1 < 8 ? bytes("loop.") : bytes("loop"));
            }
            vm.recordLogs();
            release(waiting);
        }
        assertEq(exchanges.getExchange(exchange).sequence, 8);
    }

    function chain(uint256 callbackGas) private returns (PubSub one, PubSub two, Listener last) {
        bytes32 middle = exchanges.createExchange("middle", false, false, 0);
        bytes32 end = exchanges.createExchange("end", false, false, 0);
        IExchanges.QueueTerms memory terms = openTerms();
        terms.callbackGas = callbackGas;
        one = addPubSub(makeQueue("a", terms), middle);
        exchange = middle;
        terms.callbackGas = callbackGas / 3;
        two = addPubSub(makeQueue("blue", terms), end);
        exchange = end;
        last = join(makeQueue("c"));
        exchange = exchanges.idOf(address(this), "exchange");
    }

    function addPubSub(bytes32 from, bytes32 to) private returns (PubSub pubSub) {
        pubSub = new PubSub(exchanges, address(this));
        pubSub.subscribeTo(from);
        pubSub.requestPublishingIn(to);
        exchanges.approvePublisher(to, address(pubSub));
        bytes32[] memory targets = new bytes32[](1);
        targets[0] = to;
        pubSub.setTargets(targets);
    }
}
