// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Membership} from "../../src/examples/Membership.sol";
import {ITopics} from "../../src/interfaces/ITopics.sol";
import {Counter} from "../../src/testing/Zoo.sol";
import {ShippedTopics} from "../Shipped.sol";

contract MembershipTest is ShippedTopics {
    address private editor = makeAddr("editor");
    Membership private club;
    Counter private member;
    bytes32 private topic;

    function setUp() public override {
        super.setUp();
        club = new Membership(topics);
        topic = club.topic();
        member = new Counter();
    }

    /* REFUSALS */

    function test_appoint_onlyChair() public {
        vm.expectRevert(abi.encodeWithSelector(Membership.NotChair.selector, editor, address(this)));
        vm.prank(editor);
        club.appoint(editor, Membership.Standing.Editor);
    }

    function test_subscribe_strangerRefused() public {
        vm.expectRevert(abi.encodeWithSelector(ITopics.NotAllowed.selector, topic, member));
        member.join{value: DEPOSIT}(topics, topic, anyTerms(), NO_HOLE);
    }

    function test_publish_memberRefused() public {
        club.appoint(editor, Membership.Standing.Member);
        vm.expectRevert(abi.encodeWithSelector(ITopics.NotAllowed.selector, topic, editor));
        vm.prank(editor);
        topics.publish(topic, 0, 0, editor, "news");
    }

    function test_publish_dismissedEditorRefused() public {
        club.appoint(editor, Membership.Standing.Editor);
        club.appoint(editor, Membership.Standing.Stranger);
        vm.expectRevert(abi.encodeWithSelector(ITopics.NotAllowed.selector, topic, editor));
        vm.prank(editor);
        topics.publish(topic, 0, 0, editor, "news");
    }

    function test_mayPublish_otherTopicsRefused() public {
        club.appoint(editor, Membership.Standing.Editor);
        assertFalse(club.mayPublish(bytes32(0), editor));
        assertFalse(club.maySubscribe(bytes32(0), editor));
    }

    /* SUCCESSES */

    function test_publish_editorReachesMembers() public {
        club.appoint(editor, Membership.Standing.Editor);
        club.appoint(address(member), Membership.Standing.Member);
        member.join{value: DEPOSIT}(topics, topic, anyTerms(), NO_HOLE);
        vm.prank(editor);
        topics.publish(topic, 0, 0, editor, "news");
        assertEq(member.payloadHash(), keccak256("news"));
    }

    /// @dev The owner is asked when somebody joins, never when somebody wants to leave.
    function test_unsubscribe_needsNoStanding() public {
        club.appoint(address(member), Membership.Standing.Member);
        uint256 index = member.join{value: DEPOSIT}(topics, topic, anyTerms(), NO_HOLE);
        club.appoint(address(member), Membership.Standing.Stranger);
        member.execute(address(topics), 0, abi.encodeCall(ITopics.unsubscribe, (topic, index, address(member))));
        assertEq(address(member).balance, DEPOSIT);
    }
}
