// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Test} from "forge-std/Test.sol";
import {Vm} from "forge-std/Vm.sol";

import {IExchanges} from "../../src/interfaces/IExchanges.sol";
import {ITopics} from "../../src/interfaces/ITopics.sol";
import {Listener, PackAnimal, Trickster} from "../../src/testing/Pack.sol";
import {Shipped} from "../Shipped.sol";

/// @notice Everybody who does anything in a random test of exchanges, and what they expect.
contract ExchangesWorld is Test {
    bytes private constant PAYLOAD = "payload";
    uint256 private constant QUEUES = 4;

    IExchanges public immutable exchanges = Shipped.exchanges(ITopics(address(0)));
    bytes32 public immutable exchange;
    bytes32[QUEUES] public queues;
    PackAnimal[] public animals;
    /// @dev Of each queue the messages that wait, oldest first.
    mapping(bytes32 => IExchanges.Header[]) private _waiting;
    uint256 public released;
    uint256 public expired;
    /// @dev Publications that did not end their message.
    uint256 public pages;

    constructor() {
        vm.deal(address(this), type(uint96).max);
        exchange = exchanges.createExchange("exchange", true, false, 3);
        for (uint256 i; i < QUEUES; ++i) {
            queues[i] = exchanges.createQueue(vm.toString(i), _termsAt(i));
            exchanges.requestBinding(exchange, queues[i], string.concat("key-", vm.toString(i)));
            exchanges.requestBinding(exchange, queues[i], "all");
        }
        for (uint256 i; i < 8; ++i) {
            animals.push(i % 4 != 1 ? PackAnimal(new Trickster(Trickster.Trick.Burn)) : PackAnimal(new Listener()));
        }
    }

    receive() external payable {}

    /// @dev At once; at once with callbacks of which few fit a page; later, newest first; later, with dead letters.
    function _termsAt(uint256 i) private view returns (IExchanges.QueueTerms memory terms) {
        (terms.openBinding, terms.openSubscribing, terms.openValue) = (true, true, true);
        (terms.lifetime, terms.callbackGas, terms.reward) = (1 hours, i == 1 ? 2_000_000 : 100_000, 7);
        if (i < 2) return terms;
        (terms.condition, terms.delay, terms.lifo) = (IExchanges.Condition.Time, 10 minutes, i == 2);
        if (i == 3) terms.deadLetter = queues[1];
    }

    /* WHAT HAPPENS */

    function publish(uint256 seed, uint96 value) external {
        bytes memory key = seed % 5 == 4 ? bytes("key-*") : bytes(string.concat("key-", vm.toString(seed % 5)));
        if (seed % 7 == 0) key = "all";
        vm.recordLogs();
        exchanges.publish{gas: 8_600_000, value: 3 + uint256(value) % 1 ether}(exchange, key, PAYLOAD);
        if (exchanges.getQueue(queues[1]).pending) ++pages;
        _note();
    }

    function toggle(uint256 seed) external {
        (PackAnimal animal, bytes32 queue) = (animals[seed % animals.length], queues[seed / 7 % QUEUES]);
        if (exchanges.getSubscriberStatus(queue, address(animal)) == IExchanges.Status.None) {
            animal.subscribe(exchanges, queue);
        } else {
            exchanges.removeSubscriber(queue, address(animal));
        }
    }

    function release(uint256 seed) external {
        bytes32 queue = queues[seed % QUEUES];
        IExchanges.QueueView memory seen = exchanges.getQueue(queue);
        if (_waiting[queue].length == 0) return;
        uint256 index = _findNext(queue, seen.next);
        vm.recordLogs();
        try exchanges.release{gas: 8_600_000}(queue, _waiting[queue][index], "", PAYLOAD, address(this)) returns (
            bool done
        ) {
            if (done) ++released;
            if (done) _forget(queue, index);
        } catch (bytes memory reason) {
            bytes4 why = bytes4(reason);
            assertTrue(why == IExchanges.NotReleasable.selector || why == IExchanges.IsExpired.selector);
        }
    }

    function expire(uint256 seed) external {
        bytes32 queue = queues[seed % QUEUES];
        if (exchanges.getQueue(queue).held == 0) return;
        // The half-delivered one is the oldest where it is not the newest first.
        uint256 index = exchanges.getQueue(queue).pending ? 1 : 0;
        IExchanges.Header memory header = _waiting[queue][index];
        vm.recordLogs();
        try exchanges.expire{gas: 8_600_000}(queue, header, "", PAYLOAD, address(this)) {
            _forget(queue, index);
            ++expired;
            _note();
        } catch (bytes memory reason) {
            assertEq(bytes4(reason), IExchanges.NotExpired.selector);
            assertLt(block.timestamp, header.arrived + 1 hours);
        }
    }

    function wait(uint16 seconds_) external {
        skip(seconds_);
    }

    function fund(uint256 seed, uint8 value) external {
        exchanges.fund{value: value}(queues[seed % QUEUES]);
    }

    function collect(uint256 seed) external {
        PackAnimal animal = animals[seed % animals.length];
        if (exchanges.getCredit(address(animal)) == 0) return;
        animal.execute(address(exchanges), 0, abi.encodeCall(IExchanges.collect, (address(this))));
    }

    function tidy(uint256 seed) external {
        bytes32 queue = queues[seed % QUEUES];
        IExchanges.QueueView memory seen = exchanges.getQueue(queue);
        if (seen.held != 0 || seen.pending) return;
        for (uint256 place; place < seen.places; ++place) {
            (,, uint256 left) = exchanges.getSubscriber(queue, place);
            if (left != 0) return exchanges.tidy(queue, place);
        }
    }

    /* WHAT IS EXPECTED */

    /// @dev What is wrong; empty where nothing is.
    function complaint() external view returns (string memory) {
        uint256 sum = exchanges.getExchange(exchange).balance + exchanges.getCredit(address(this));
        for (uint256 i; i < animals.length; ++i) {
            sum += exchanges.getCredit(address(animals[i]));
        }
        for (uint256 i; i < QUEUES; ++i) {
            IExchanges.QueueView memory seen = exchanges.getQueue(queues[i]);
            sum += seen.fund + seen.heldValue;
            if (seen.delivering) return "a queue is locked";
            if (seen.held + (seen.pending ? 1 : 0) != _waiting[queues[i]].length) return "a message is lost or twice";
            if (_waiting[queues[i]].length == 0 && seen.heldValue != 0) return "value is left behind";
            if (seen.subscribers > seen.places) return "a subscriber has no place";
            if (!_doPlacesAgree(queues[i], seen)) return "a place is wrong";
        }
        return sum == address(exchanges).balance ? "" : "the books do not balance";
    }

    function _doPlacesAgree(bytes32 queue, IExchanges.QueueView memory seen) private view returns (bool) {
        uint256 live;
        for (uint256 place; place < seen.places; ++place) {
            (address subscriber,, uint256 left) = exchanges.getSubscriber(queue, place);
            if (subscriber == address(0)) return false;
            if (left == 0) ++live;
        }
        return live == seen.subscribers;
    }

    function _note() private {
        Vm.Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i; i < logs.length; ++i) {
            if (logs[i].topics[0] != IExchanges.Held.selector) continue;
            _waiting[logs[i].topics[1]].push(abi.decode(logs[i].data, (IExchanges.Header)));
        }
    }

    function _findNext(bytes32 queue, bytes32 hash) private view returns (uint256 index) {
        IExchanges.Header[] storage waiting = _waiting[queue];
        for (; index < waiting.length; ++index) {
            if (keccak256(abi.encode(waiting[index], keccak256(""), keccak256(PAYLOAD))) == hash) return index;
        }
        revert("the next message was never seen to wait");
    }

    function _forget(bytes32 queue, uint256 index) private {
        IExchanges.Header[] storage waiting = _waiting[queue];
        for (; index + 1 < waiting.length; ++index) {
            waiting[index] = waiting[index + 1];
        }
        waiting.pop();
    }
}
