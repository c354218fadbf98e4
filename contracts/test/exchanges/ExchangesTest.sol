// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Vm} from "forge-std/Vm.sol";

import {IExchanges} from "../../src/interfaces/IExchanges.sol";
import {Listener, PackAnimal, Trickster} from "../../src/testing/Pack.sol";
import {Outcome} from "../../src/types/Outcome.sol";
import {Shipped, ShippedTopics} from "../Shipped.sol";

/// @notice An exchange and what tests of it share. The test itself owns everything unless it says otherwise.
abstract contract ExchangesTest is ShippedTopics {
    /// @dev A message that waits in a queue, as whoever releases it finds it in the logs.
    struct Waiting {
        bytes32 queue;
        IExchanges.Header header;
        bytes key;
        bytes payload;
    }

    bytes internal constant PAYLOAD = "the payload";

    IExchanges internal exchanges;
    bytes32 internal exchange;
    address internal stranger = makeAddr("stranger");
    address internal payee = makeAddr("payee");

    function setUp() public virtual override {
        super.setUp();
        exchanges = Shipped.exchanges(topics);
        exchange = exchanges.createExchange("exchange", false, false, 0);
        vm.deal(address(this), 1_000 ether);
    }

    receive() external payable {}

    /* QUEUES */

    function plainTerms() internal pure returns (IExchanges.QueueTerms memory terms) {
        (terms.lifetime, terms.callbackGas) = (1 days, 200_000);
    }

    function openTerms() internal pure returns (IExchanges.QueueTerms memory terms) {
        terms = plainTerms();
        (terms.openBinding, terms.openSubscribing, terms.openValue) = (true, true, true);
    }

    function waitingTerms(IExchanges.Condition condition) internal pure returns (IExchanges.QueueTerms memory terms) {
        terms = openTerms();
        terms.condition = condition;
    }

    /// @dev Bound to the exchange by a key.
    function makeQueue(string memory key, IExchanges.QueueTerms memory terms) internal returns (bytes32 queue) {
        queue = exchanges.createQueue(key, terms);
        exchanges.requestBinding(exchange, queue, key);
    }

    function makeQueue(string memory key) internal returns (bytes32) {
        return makeQueue(key, openTerms());
    }

    /// @dev A listener in a queue.
    function join(bytes32 queue) internal returns (Listener listener) {
        listener = new Listener();
        joinWith(queue, listener);
    }

    function joinWith(bytes32 queue, PackAnimal animal) internal {
        animal.subscribe(exchanges, queue);
        if (exchanges.getSubscriberStatus(queue, address(animal)) == IExchanges.Status.Requested) {
            exchanges.approveSubscriber(queue, address(animal));
        }
    }

    /* MESSAGES */

    function publish(bytes memory key) internal returns (uint256) {
        return exchanges.publish(exchange, key, PAYLOAD);
    }

    /// @dev Publishes what a queue holds back; says what it takes to release it.
    function publishHeld(bytes memory key, uint256 value) internal returns (Waiting memory waiting) {
        vm.recordLogs();
        exchanges.publish{value: value}(exchange, key, PAYLOAD);
        return lastHeld();
    }

    function lastHeld() internal returns (Waiting memory waiting) {
        Vm.Log[] memory logs = vm.getRecordedLogs();
        waiting.payload = PAYLOAD;
        for (uint256 i; i < logs.length; ++i) {
            if (logs[i].topics[0] != IExchanges.Held.selector) continue;
            waiting.queue = logs[i].topics[1];
            waiting.header = abi.decode(logs[i].data, (IExchanges.Header));
        }
        require(waiting.queue != 0, "nothing was held");
    }

    function release(Waiting memory waiting) internal returns (bool) {
        return exchanges.release(waiting.queue, waiting.header, waiting.key, waiting.payload, payee);
    }

    function expire(Waiting memory waiting) internal {
        exchanges.expire(waiting.queue, waiting.header, waiting.key, waiting.payload, payee);
    }

    /// @dev The outcomes of the last page in the logs recorded since `vm.recordLogs`.
    function lastOutcomes() internal returns (bytes memory outcomes) {
        Vm.Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i; i < logs.length; ++i) {
            if (logs[i].topics[0] != IExchanges.Handed.selector) continue;
            (,,, outcomes) = abi.decode(logs[i].data, (uint256, uint256, uint256, bytes));
        }
    }

    function assertOutcomes(bytes memory outcomes, Outcome[4] memory expected) internal pure {
        assertEq(outcomes.length, 4, "places");
        for (uint256 i; i < 4; ++i) {
            assertEq(uint8(outcomes[i]), uint8(expected[i]), vm.toString(i));
        }
    }
}
