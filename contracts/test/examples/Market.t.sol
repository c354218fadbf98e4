// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Market} from "../../src/examples/Market.sol";
import {MarketBidder} from "../../src/examples/MarketBidder.sol";
import {MonitorAndReact} from "../../src/examples/MonitorAndReact.sol";
import {Subscriber} from "../../src/Subscriber.sol";
import {Outcome} from "../../src/types/Outcome.sol";
import {ShippedTopics} from "../Shipped.sol";

contract MarketTest is ShippedTopics {
    address private stranger = makeAddr("stranger");
    address private watcher = makeAddr("watcher");
    Market private market;
    MarketBidder private bidder;
    MonitorAndReact private baseline;
    bytes32 private topic;

    function setUp() public override {
        super.setUp();
        market = new Market(topics, DEFAULT_POLICY);
        topic = market.topic();
        bidder = new MarketBidder{value: 5 ether}(market, 3 ether);
        baseline = new MonitorAndReact{value: 5 ether}(market, watcher, 3 ether);
    }

    /* REFUSALS */

    function test_offer_onlySeller() public {
        vm.expectRevert(abi.encodeWithSelector(Market.NotSeller.selector, stranger, address(this)));
        vm.prank(stranger);
        market.offer(1);
    }

    function test_buy_refusals() public {
        vm.expectRevert(Market.NoPrice.selector);
        market.buy();
        market.offer(2 ether);
        vm.expectRevert(abi.encodeWithSelector(Market.WrongPayment.selector, 1 ether, 2 ether));
        market.buy{value: 1 ether}();
        market.buy{value: 2 ether}();
        vm.expectRevert(abi.encodeWithSelector(Market.Sold.selector, address(this)));
        market.buy{value: 2 ether}();
        vm.expectRevert(abi.encodeWithSelector(Market.Sold.selector, address(this)));
        market.offer(1 ether);
    }

    function test_react_refusals() public {
        vm.expectRevert(abi.encodeWithSelector(MonitorAndReact.NotWatcher.selector, stranger, watcher));
        vm.prank(stranger);
        baseline.react(1 ether);
        vm.expectRevert(abi.encodeWithSelector(MonitorAndReact.PriceTooHigh.selector, 4 ether, 3 ether));
        vm.prank(watcher);
        baseline.react(4 ether);
    }

    function test_close_onlyOwner() public {
        vm.expectRevert(abi.encodeWithSelector(Subscriber.NotOwner.selector, stranger, address(this)));
        vm.prank(stranger);
        bidder.close(stranger);
    }

    /* REACTIONS */

    function test_bidder_leavesTooHighAPriceAlone() public {
        bidder.subscribeTo{value: DEPOSIT}(topic, anyTerms(), NO_HOLE);
        market.offer(3 ether + 1);
        assertEq(market.buyer(), address(0));
        assertEq(address(bidder).balance, 5 ether);
    }

    /// @dev "an on-chain client can react immediately (within the same block) and make time-sensitive bids much faster than M&R clients (at
    /// least 1 block away)" (I)
    function test_bidder_buysInThePricesOwnTransaction() public {
        bidder.subscribeTo{value: DEPOSIT}(topic, anyTerms(), NO_HOLE);
        market.offer(3 ether);
        assertEq(market.buyer(), address(bidder));
        assertEq(address(market).balance, 3 ether);

        vm.expectRevert(abi.encodeWithSelector(Market.Sold.selector, bidder));
        vm.prank(watcher);
        baseline.react(3 ether);
    }

    /// @dev "in the M&R approach, the Sub_O has to react to the event by making another transaction to Sub_C" (VII-D)
    function test_monitorAndReact_needsASecondTransaction() public {
        market.offer(3 ether);
        assertEq(market.buyer(), address(0), "one transaction does not do it");
        vm.roll(block.number + 1);
        vm.prank(watcher);
        baseline.react(3 ether);
        assertEq(market.buyer(), address(baseline));
    }

    /// @dev Two want the only lot: the second callback fails, alone, and keeps its money.
    function test_bidder_secondFailsAlone() public {
        MarketBidder second = new MarketBidder{value: 5 ether}(market, 3 ether);
        bidder.subscribeTo{value: DEPOSIT}(topic, anyTerms(), NO_HOLE);
        uint256 index = second.subscribeTo{value: DEPOSIT}(topic, anyTerms(), NO_HOLE);
        vm.recordLogs();
        market.offer(2 ether);
        assertOutcome(topic, 1, index, Outcome.Failed);
        assertEq(market.buyer(), address(bidder));
        assertEq(address(second).balance, 5 ether);

        second.close(stranger);
        assertEq(stranger.balance, 5 ether);
    }

    function test_settle_paysTheSeller() public {
        market.offer(2 ether);
        market.buy{value: 2 ether}();
        uint256 before = address(this).balance;
        market.settle();
        assertEq(address(this).balance - before, 2 ether);
    }

    receive() external payable {}
}
