// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {HybridSubscriber} from "../../src/examples/HybridSubscriber.sol";
import {Outcome} from "../../src/types/Outcome.sol";
import {Terms, TermsLibrary} from "../../src/types/Terms.sol";
import {ShippedTopics} from "../Shipped.sol";

contract HybridSubscriberTest is ShippedTopics {
    /// @dev "invoking a callback that just sets a boolean flag costs about 6500 gas" (V-A.2)
    uint256 private constant CALLBACK_GAS = 6_500;

    address private operator = makeAddr("operator");
    address private stolen = makeAddr("stolen");
    address private honest = makeAddr("honest");
    HybridSubscriber private door;
    bytes32 private topic;

    function setUp() public override {
        super.setUp();
        topic = topics.create(DEFAULT_POLICY, "stolen-keys");
        door = new HybridSubscriber(topics, topic, operator);
        Terms terms = TermsLibrary.pack(CALLBACK_GAS, 1_000_000, TermsLibrary.MAX_SHARE);
        door.subscribeTo{value: DEPOSIT}(topic, terms, NO_HOLE);
    }

    /* REFUSALS */

    function test_complete_onlyOperator() public {
        vm.expectRevert(abi.encodeWithSelector(HybridSubscriber.NotOperator.selector, stolen, operator));
        vm.prank(stolen);
        door.complete(0, new address[](0));
    }

    function test_complete_unheardEventRefused() public {
        _announce();
        vm.expectRevert(abi.encodeWithSelector(HybridSubscriber.NotHeard.selector, 2, 1));
        _complete(2);
    }

    /* BOTH HALVES */

    /// @dev "Even more effective is a hybrid approach where a minimal Sub_C performs critical updates to the Sub_C's state, such as revoking
    /// access or setting flags. Following this, the Sub_O can send a transaction to complete any remaining tasks related to the event."
    /// (V-A.2)
    function test_hybrid_closesAtOnceAndOpensWhenCompleted() public {
        assertTrue(door.mayEnter(stolen));

        vm.recordLogs();
        _announce();
        assertOutcome(topic, 1, 0, Outcome.Delivered);
        assertFalse(door.mayEnter(stolen));
        assertFalse(door.mayEnter(honest), "closed for everybody until somebody had time to look");

        _complete(1);
        assertFalse(door.mayEnter(stolen));
        assertTrue(door.mayEnter(honest));
    }

    function test_hybrid_staysClosedUntilTheLastEventIsCompleted() public {
        _announce();
        _announce();
        _complete(1);
        assertFalse(door.isOpen());
        _complete(2);
        assertTrue(door.isOpen());
    }

    function _announce() private {
        vm.cool(address(door)); // as in a transaction of its own
        topics.publish(topic, 0, 0, address(0), abi.encode(stolen));
    }

    function _complete(uint256 sequence) private {
        address[] memory keys = new address[](1);
        keys[0] = stolen;
        vm.prank(operator);
        door.complete(sequence, keys);
    }
}
