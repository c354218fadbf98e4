// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ISubscriber} from "../src/interfaces/ISubscriber.sol";
import {ITopics} from "../src/interfaces/ITopics.sol";
import {
    Animal,
    Burner,
    Counter,
    FlagSetter,
    GasEcho,
    Noop,
    Reenterer,
    RevertBomb,
    ReturnBomb,
    Selfdestructor,
    Store64,
    Unsubscriber,
    WrongReturn
} from "../src/testing/Zoo.sol";
import {ShippedTopics} from "./Shipped.sol";

/// @notice Each animal bites as it says; a tame one would make every test that uses it worthless.
contract ZooTest is ShippedTopics {
    uint256 private constant GAS = 200_000;
    bytes32 private constant TOPIC = "a topic";

    function test_burner_burnsEverything() public {
        uint256 before = gasleft();
        (bool success, uint256 returned) = _poke(new Burner());
        assertFalse(success);
        assertEq(returned, 0);
        assertGt(before - gasleft(), GAS);
    }

    function test_bombs_are280Kilobytes() public {
        (bool success, uint256 returned) = _poke(new RevertBomb());
        assertFalse(success);
        assertEq(returned, 280_000);
        (success, returned) = _poke(new ReturnBomb());
        assertTrue(success);
        assertEq(returned, 280_000);
        (success, returned) = _poke(new WrongReturn());
        assertTrue(success);
        assertEq(returned, 1);
    }

    function test_reenterer_remembersItsCall() public {
        Counter counter = new Counter();
        Reenterer reenterer = new Reenterer();
        reenterer.prepare{value: 1 wei}(address(counter), 1 wei, "");
        assertTrue(_wasDelivered(reenterer));
        assertTrue(reenterer.success());
        assertEq(address(counter).balance, 1 wei);

        reenterer.prepare(address(topics), 0, abi.encodeCall(ITopics.collect, (address(this))));
        assertTrue(_wasDelivered(reenterer));
        assertFalse(reenterer.success());
        assertEq(reenterer.returned(), abi.encodeWithSelector(ITopics.NothingToCollect.selector, reenterer));
        assertEq(reenterer.count(), 2);
    }

    function test_unsubscriber_leaves() public {
        bytes32 topic = topics.create(DEFAULT_POLICY, "t");
        Unsubscriber unsubscriber = new Unsubscriber();
        unsubscriber.join{value: DEPOSIT}(topics, topic, anyTerms(), NO_HOLE);
        topics.publish(topic, 0, 0, address(0), "");
        (address subscriber,,) = lens.getSubscription(topic, 0);
        assertEq(subscriber, address(0));
        assertGt(address(unsubscriber).balance, 0);
    }

    function test_selfdestructor_givesItsEtherAway() public {
        Selfdestructor selfdestructor = new Selfdestructor();
        vm.deal(address(selfdestructor), 1 ether);
        uint256 before = address(this).balance;
        assertTrue(_wasDelivered(selfdestructor));
        assertEq(address(this).balance, before + 1 ether);
    }

    function test_gasEcho_tellsItsGas() public {
        GasEcho echo = new GasEcho();
        assertTrue(_wasDelivered(echo));
        assertLe(echo.gasAtEntry(), GAS);
        assertGe(echo.gasAtEntry(), GAS - 500);
    }

    function test_store64_checksItsCaller() public {
        Store64 store = new Store64(topics);
        assertFalse(_wasDelivered(store));
        vm.prank(address(topics));
        store.onEvent(TOPIC, 1, 0, 0, "payload");
        assertEq(store.payload(), "payload");
    }

    function test_plainOnes() public {
        Counter counter = new Counter();
        FlagSetter flag = new FlagSetter();
        assertTrue(_wasDelivered(new Noop()));
        assertTrue(_wasDelivered(counter));
        assertTrue(_wasDelivered(flag));
        assertEq(counter.count(), 1);
        assertEq(counter.sequence(), 7);
        assertEq(counter.index(), 3);
        assertEq(counter.topic(), TOPIC);
        assertEq(counter.key(), "key");
        assertEq(counter.payloadHash(), keccak256("payload"));
        assertTrue(flag.raised());
    }

    function test_execute_handsTheRevertOn() public {
        Noop noop = new Noop();
        vm.expectRevert(abi.encodeWithSelector(ITopics.NothingToCollect.selector, noop));
        noop.execute(address(topics), 0, abi.encodeCall(ITopics.collect, (address(this))));
    }

    receive() external payable {}

    function _wasDelivered(Animal animal) private returns (bool success) {
        (success,) = _poke(animal);
    }

    function _poke(Animal animal) private returns (bool success, uint256 returned) {
        bytes memory data = abi.encodeCall(ISubscriber.onEvent, (TOPIC, 7, 3, "key", "payload"));
        assembly ("memory-safe") {
            success := call(GAS, animal, 0, add(data, 32), mload(data), 0, 0)
            returned := returndatasize()
        }
    }
}
