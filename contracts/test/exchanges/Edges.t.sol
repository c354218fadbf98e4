// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IExchanges} from "../../src/interfaces/IExchanges.sol";
import {Listener} from "../../src/testing/Pack.sol";
import {ExchangesTest} from "./ExchangesTest.sol";

/// @notice Who may do what: names, terms, and the three edges with their requests, approvals, rejections and removals.
contract EdgesTest is ExchangesTest {
    function expectNotOwner() private {
        vm.expectRevert(abi.encodeWithSelector(IExchanges.NotTheOwner.selector, stranger, address(this)));
    }

    /* CREATION */

    function test_create_refusals() public {
        vm.expectRevert(abi.encodeWithSelector(IExchanges.WrongName.selector, 0));
        exchanges.createExchange("", false, false, 0);
        vm.expectRevert(abi.encodeWithSelector(IExchanges.NameTaken.selector, exchange));
        exchanges.createExchange("exchange", true, false, 0);
        vm.expectRevert(abi.encodeWithSelector(IExchanges.WrongTerms.selector, uint256(1 << 96)));
        exchanges.createExchange("dear", true, false, 1 << 96);
        makeQueue("queue");
        vm.expectRevert(abi.encodeWithSelector(IExchanges.NameTaken.selector, exchanges.idOf(address(this), "queue")));
        exchanges.createQueue("queue", plainTerms());
    }

    function test_createQueue_badTermsRefused() public {
        IExchanges.QueueTerms[6] memory bad;
        for (uint256 i; i < 6; ++i) {
            bad[i] = plainTerms();
        }
        bad[0].delay = 3651 days;
        bad[1].notBefore = 1 << 64;
        bad[2].lifetime = 0;
        bad[3].callbackGas = 4_000_001;
        bad[4].reward = 1 << 96;
        vm.prank(stranger);
        bad[5].deadLetter = exchanges.createQueue("closed", plainTerms());
        for (uint256 i; i < 6; ++i) {
            vm.expectRevert(abi.encodeWithSelector(IExchanges.WrongTerms.selector, 7 + i));
            exchanges.createQueue("queue", bad[i]);
        }
        bad[0] = plainTerms();
        bad[0].deadLetter = bytes32("nowhere");
        vm.expectRevert(abi.encodeWithSelector(IExchanges.UnknownQueue.selector, bytes32("nowhere")));
        exchanges.createQueue("queue", bad[0]);
    }

    function test_terms_areReadAsGiven() public {
        IExchanges.QueueTerms memory terms = IExchanges.QueueTerms({
            openBinding: true,
            openSubscribing: false,
            openValue: true,
            lifo: true,
            condition: IExchanges.Condition.Above,
            subject: bytes32(uint256(7)),
            threshold: -5,
            delay: 11,
            notBefore: 12,
            lifetime: 13,
            callbackGas: 14,
            reward: 15,
            deadLetter: exchanges.createQueue("dead", plainTerms())
        });
        bytes32 queue = exchanges.createQueue("queue", terms);
        assertEq(abi.encode(exchanges.getQueue(queue).terms), abi.encode(terms));
    }

    /* PUBLISHERS */

    function test_publish_onlyApproved() public {
        Listener listener = join(makeQueue("key"));
        vm.startPrank(stranger);
        vm.expectRevert(abi.encodeWithSelector(IExchanges.NotApproved.selector, exchange, stranger));
        publish("key");
        exchanges.requestPublishing(exchange);
        vm.expectRevert(abi.encodeWithSelector(IExchanges.NotApproved.selector, exchange, stranger));
        publish("key");
        vm.expectRevert(abi.encodeWithSelector(IExchanges.AlreadyThere.selector, exchange));
        exchanges.requestPublishing(exchange);
        expectNotOwner();
        exchanges.approvePublisher(exchange, stranger);
        vm.stopPrank();

        exchanges.approvePublisher(exchange, stranger);
        vm.prank(stranger);
        publish("key");
        assertEq(listener.publisher(), stranger);

        exchanges.removePublisher(exchange, stranger);
        vm.prank(stranger);
        vm.expectRevert(abi.encodeWithSelector(IExchanges.NotApproved.selector, exchange, stranger));
        publish("key");
    }

    function test_publisher_rejectedAndWithdrawn() public {
        vm.expectRevert(abi.encodeWithSelector(IExchanges.NotThere.selector, exchange));
        exchanges.removePublisher(exchange, stranger);
        vm.prank(stranger);
        exchanges.requestPublishing(exchange);
        vm.expectEmit();
        emit IExchanges.PublisherChanged(exchange, stranger, IExchanges.Status.Rejected);
        exchanges.removePublisher(exchange, stranger);
        vm.expectRevert(abi.encodeWithSelector(IExchanges.NotRequested.selector, exchange));
        exchanges.approvePublisher(exchange, stranger);
    }

    function test_openExchange_takesEverybodyAndItsFee() public {
        bytes32 open = exchanges.createExchange("open", true, false, 3 gwei);
        hoax(stranger, 1 ether);
        vm.expectRevert(abi.encodeWithSelector(IExchanges.ValueTooLow.selector, 3 gwei - 1, 3 gwei));
        exchanges.publish{value: 3 gwei - 1}(open, "key", PAYLOAD);
        hoax(stranger, 1 ether);
        exchanges.publish{value: 5 gwei}(open, "key", PAYLOAD);
        assertEq(exchanges.getExchange(open).balance, 3 gwei);
        assertEq(exchanges.getCredit(stranger), 2 gwei, "nothing matched");
        vm.prank(stranger);
        expectNotOwner();
        exchanges.collectExchange(open, stranger);
        exchanges.collectExchange(open, payee);
        assertEq(payee.balance, 3 gwei);
    }

    function test_unknownOnes_areRefused() public {
        bytes32 nowhere = bytes32("nowhere");
        vm.expectRevert(abi.encodeWithSelector(IExchanges.UnknownExchange.selector, nowhere));
        exchanges.publish(nowhere, "key", PAYLOAD);
        vm.expectRevert(abi.encodeWithSelector(IExchanges.UnknownExchange.selector, nowhere));
        exchanges.requestPublishing(nowhere);
        vm.expectRevert(abi.encodeWithSelector(IExchanges.UnknownQueue.selector, nowhere));
        exchanges.requestBinding(exchange, nowhere, "key");
        vm.expectRevert(abi.encodeWithSelector(IExchanges.UnknownQueue.selector, nowhere));
        exchanges.subscribe(nowhere);
        vm.expectRevert(abi.encodeWithSelector(IExchanges.UnknownQueue.selector, nowhere));
        exchanges.fund(nowhere);
        vm.expectRevert(abi.encodeWithSelector(IExchanges.MessageTooLong.selector, 65_537, 65_536));
        exchanges.publish(exchange, "key", new bytes(65_537));
    }

    /* BINDINGS */

    function test_binding_isAskedForByTheExchangeAndApprovedByTheQueue() public {
        vm.prank(stranger);
        bytes32 queue = exchanges.createQueue("closed", plainTerms());
        vm.prank(stranger);
        expectNotOwner();
        exchanges.requestBinding(exchange, queue, "key");
        exchanges.requestBinding(exchange, queue, "key");
        vm.expectRevert(abi.encodeWithSelector(IExchanges.AlreadyThere.selector, queue));
        exchanges.requestBinding(exchange, queue, "key");
        vm.expectRevert(abi.encodeWithSelector(IExchanges.NotTheOwner.selector, address(this), stranger));
        exchanges.approveBinding(exchange, queue, "key");
        assertEq(exchanges.getExchange(exchange).bindings, 0);

        vm.startPrank(stranger);
        exchanges.approveBinding(exchange, queue, "key");
        assertEq(uint256(exchanges.getBindingStatus(exchange, queue, "key")), uint256(IExchanges.Status.Approved));
        vm.expectEmit();
        emit IExchanges.BindingChanged(exchange, queue, IExchanges.Status.Removed, "key");
        exchanges.removeBinding(exchange, queue, "key");
        vm.stopPrank();
        assertEq(exchanges.getExchange(exchange).bindings, 0);
        vm.prank(payee);
        vm.expectRevert(abi.encodeWithSelector(IExchanges.NotTheOwner.selector, payee, address(this)));
        exchanges.removeBinding(exchange, queue, "key");
    }

    /// @dev Several keys per pair and several queues per key, removed in any order.
    function testFuzz_bindings_stayWholeThroughRemovals(uint256 seed) public {
        string[3] memory keys = ["one", "two", "three-three-three-three-three-three"];
        bytes32[3] memory queues;
        Listener[3] memory listeners;
        bool[3][3] memory bound;
        for (uint256 i; i < 3; ++i) {
            queues[i] = exchanges.createQueue(keys[i], openTerms());
            listeners[i] = join(queues[i]);
        }
        uint256 count;
        for (uint256 step; step < 24; ++step) {
            seed = uint256(keccak256(abi.encode(seed)));
            (uint256 q, uint256 k) = (seed % 3, seed / 3 % 3);
            if (bound[q][k]) exchanges.removeBinding(exchange, queues[q], keys[k]);
            else exchanges.requestBinding(exchange, queues[q], keys[k]);
            bound[q][k] = !bound[q][k];
            count = bound[q][k] ? count + 1 : count - 1;
            assertEq(exchanges.getExchange(exchange).bindings, count);
        }
        for (uint256 k; k < 4; ++k) {
            uint64[3] memory before = [listeners[0].count(), listeners[1].count(), listeners[2].count()];
            publish(k == 3 ? bytes("*") : bytes(keys[k]));
            for (uint256 q; q < 3; ++q) {
                bool expected = k == 3 ? bound[q][0] || bound[q][1] || bound[q][2] : bound[q][k];
                assertEq(listeners[q].count() - before[q], expected ? 1 : 0);
            }
        }
    }

    /* SUBSCRIBERS */

    function test_subscriber_isApprovedByTheQueue() public {
        bytes32 queue = makeQueue("key", plainTerms());
        Listener listener = new Listener();
        listener.subscribe(exchanges, queue);
        publish("key");
        assertEq(listener.count(), 0);
        vm.prank(stranger);
        expectNotOwner();
        exchanges.approveSubscriber(queue, address(listener));
        exchanges.approveSubscriber(queue, address(listener));
        publish("key");
        assertEq(listener.count(), 1);
        vm.expectRevert(abi.encodeWithSelector(IExchanges.AlreadyThere.selector, queue));
        listener.subscribe(exchanges, queue);
        vm.prank(stranger);
        expectNotOwner();
        exchanges.removeSubscriber(queue, address(listener));
        vm.prank(address(listener));
        exchanges.removeSubscriber(queue, address(listener));
        publish("key");
        assertEq(listener.count(), 1);
    }

    function test_exchangeAndQueueOfOneName_areApart() public {
        bytes32 queue = exchanges.createQueue("exchange", plainTerms());
        assertEq(queue, exchange);
        vm.prank(stranger);
        exchanges.requestPublishing(exchange);
        exchanges.approvePublisher(exchange, stranger);
        assertEq(uint256(exchanges.getSubscriberStatus(queue, stranger)), uint256(IExchanges.Status.None));
    }
}
