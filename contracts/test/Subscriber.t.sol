// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IERC165} from "@openzeppelin/contracts/utils/introspection/IERC165.sol";

import {Subscriber} from "../src/Subscriber.sol";
import {ISubscriber} from "../src/interfaces/ISubscriber.sol";
import {ITopics} from "../src/interfaces/ITopics.sol";
import {Noop} from "../src/testing/Zoo.sol";
import {Outcome} from "../src/types/Outcome.sol";
import {PolicyLibrary} from "../src/types/Policy.sol";
import {ShippedTopics} from "./Shipped.sol";

/// @notice The least that inherits from `Subscriber`.
contract Listener is Subscriber {
    bytes32 private immutable _topic;

    constructor(ITopics topics_, bytes32 topic) Subscriber(topics_, msg.sender) {
        _topic = topic;
    }

    function _accepts(bytes32 topic) internal view override returns (bool) {
        return topic == _topic;
    }

    function _onEvent(bytes32, uint256, uint256, bytes32, bytes calldata) internal virtual override {}
}

/// @notice Keeps a hash of everything it was told.
contract Witness is Listener {
    bytes32 public told;

    constructor(ITopics topics_, bytes32 topic) Listener(topics_, topic) {}

    function _onEvent(bytes32 topic, uint256 sequence, uint256 index, bytes32 key, bytes calldata payload)
        internal
        override
    {
        told = keccak256(abi.encode(topic, sequence, index, key, payload));
    }
}

contract SubscriberTest is ShippedTopics {
    /// @dev Gas that the two checks add to an empty callback, at most.
    uint256 private constant OVERHEAD_GAS_MAX = 150;

    address private stranger = makeAddr("stranger");
    address payable private purse = payable(makeAddr("purse"));
    bytes32 private topic;
    Witness private witness;

    function setUp() public override {
        super.setUp();
        topic = topics.create(DEFAULT_POLICY, "news");
        witness = new Witness(topics, topic);
    }

    /* REFUSALS */

    function test_onEvent_onlyTopics() public {
        vm.expectRevert(abi.encodeWithSelector(Subscriber.NotTopics.selector, stranger, topics));
        vm.prank(stranger);
        witness.onEvent(topic, 1, 0, 0, "forged");
    }

    function test_onEvent_otherTopicRefused() public {
        bytes32 other = topics.create(DEFAULT_POLICY, "rumours");
        vm.expectRevert(abi.encodeWithSelector(Subscriber.NotAccepted.selector, other));
        vm.prank(address(topics));
        witness.onEvent(other, 1, 0, 0, "");
    }

    function test_subscribeTo_otherTopicRefused() public {
        bytes32 other = topics.create(DEFAULT_POLICY, "rumours");
        vm.expectRevert(abi.encodeWithSelector(Subscriber.NotAccepted.selector, other));
        witness.subscribeTo{value: DEPOSIT}(other, anyTerms(), NO_HOLE);
    }

    function test_owner_alone() public {
        bytes memory refusal = abi.encodeWithSelector(Subscriber.NotOwner.selector, stranger, address(this));
        vm.startPrank(stranger);
        vm.expectRevert(refusal);
        witness.subscribeTo(topic, anyTerms(), NO_HOLE);
        vm.expectRevert(refusal);
        witness.unsubscribeFrom(topic, 0, stranger);
        vm.expectRevert(refusal);
        witness.withdrawFrom(topic, 0, 1, stranger);
        vm.expectRevert(refusal);
        witness.collectTo(stranger);
    }

    /* SUCCESSES */

    function test_onEvent_passesEverythingOn(bytes32 key, bytes calldata payload) public {
        witness.subscribeTo{value: DEPOSIT}(topic, anyTerms(), NO_HOLE);
        topics.publish(topic, key, 0, address(0), payload);
        assertEq(witness.told(), keccak256(abi.encode(topic, 1, 0, key, payload)));
    }

    function test_subscribeTo_namesItsIndex() public {
        assertEq(witness.subscribeTo{value: DEPOSIT}(topic, anyTerms(), NO_HOLE), 0);
        assertEq(new Witness(topics, topic).subscribeTo{value: DEPOSIT}(topic, anyTerms(), NO_HOLE), 1);
        (address subscriber,, uint256 deposit) = lens.getSubscription(topic, 0);
        assertEq(subscriber, address(witness));
        assertEq(deposit * 1 gwei, DEPOSIT);
    }

    function test_withdrawFrom_paysThePurse() public {
        witness.subscribeTo{value: DEPOSIT}(topic, anyTerms(), NO_HOLE);
        witness.withdrawFrom(topic, 0, 1_000, purse);
        assertEq(purse.balance, 1_000 gwei);
    }

    function test_unsubscribeFrom_paysThePurse() public {
        witness.subscribeTo{value: DEPOSIT}(topic, anyTerms(), NO_HOLE);
        assertEq(witness.unsubscribeFrom(topic, 0, purse) * 1 gwei, DEPOSIT);
        assertEq(purse.balance, DEPOSIT);
    }

    /// @dev What is left of a subscription that was removed is credited to the subscriber; its owner must be able to get at it.
    function test_collectTo_recoversResidueAfterRemoval() public {
        witness.subscribeTo{value: DEPOSIT}(topic, anyTerms(), NO_HOLE);
        PolicyLibrary.Fields memory fields = PolicyLibrary.defaults();
        fields.depositFloor = PolicyLibrary.DEPOSIT_FLOOR_MAX;
        topics.setPolicy(topic, PolicyLibrary.pack(fields));
        uint256 toKeep = PolicyLibrary.DEPOSIT_FLOOR_MAX;
        witness.withdrawFrom(topic, 0, DEPOSIT / 1 gwei - toKeep, purse);
        topics.publish(topic, 0, 0, address(0), "now below the floor");

        vm.recordLogs();
        topics.publish(topic, 0, 0, address(0), "removed before it");
        assertOutcome(topic, 2, 0, Outcome.Removed);

        uint256 before = purse.balance;
        uint256 residue = witness.collectTo(purse);
        assertGt(residue, 0);
        assertEq(purse.balance - before, residue * 1 gwei);
    }

    /// @dev The fixture reads an event by the list as it was, not as it has become: the empty tail of one list was given back meanwhile.
    function test_assertOutcome_afterTheListBecameShorter() public {
        Noop[] memory noops = new Noop[](17);
        for (uint256 i; i < 17; ++i) {
            noops[i] = new Noop();
            noops[i].join{value: DEPOSIT}(topics, topic, anyTerms(), NO_HOLE);
        }
        for (uint256 i = 1; i < 17; ++i) {
            noops[i].execute(address(topics), 0, abi.encodeCall(ITopics.unsubscribe, (topic, i, purse)));
        }
        vm.recordLogs();
        topics.publish(topic, 0, 0, address(0), "the last word is empty");
        assertLt(lens.getTopic(topic).end, 17);
        assertOutcome(topic, 1, 0, Outcome.Delivered);
    }

    function test_supportsInterface() public view {
        assertTrue(witness.supportsInterface(type(ISubscriber).interfaceId));
        assertTrue(witness.supportsInterface(type(IERC165).interfaceId));
        assertFalse(witness.supportsInterface(0xffffffff));
    }

    function test_onEvent_overheadIsSmall() public {
        Listener listener = new Listener(topics, topic);
        Noop noop = new Noop();
        vm.startPrank(address(topics));
        uint256 plain = _gasOf(noop);
        uint256 checked = _gasOf(listener);
        emit log_named_uint("gas of the checks", checked - plain);
        assertLt(checked, plain + OVERHEAD_GAS_MAX);
    }

    function _gasOf(ISubscriber subscriber) private returns (uint256 used) {
        subscriber.onEvent(topic, 1, 0, 0, ""); // so that its address is warm
        uint256 before = gasleft();
        subscriber.onEvent(topic, 1, 0, 0, "");
        used = before - gasleft();
    }
}
