// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITopics} from "../../src/interfaces/ITopics.sol";
import {TopicTest} from "./TopicTest.sol";

contract SetPayloadTypeTest is TopicTest {
    /* REFUSALS */

    function test_setPayloadType_unknownTopic() public {
        vm.expectRevert(abi.encodeWithSelector(ITopics.UnknownTopic.selector, UNKNOWN));
        topics.setPayloadType(UNKNOWN, "uint256");
    }

    function test_setPayloadType_onlyOwner() public {
        vm.expectRevert(abi.encodeWithSelector(ITopics.NotOwner.selector, stranger, address(this)));
        vm.prank(stranger);
        topics.setPayloadType(topic, "uint256");
    }

    function test_setPayloadType_tooLong() public {
        vm.expectRevert(abi.encodeWithSelector(ITopics.BadName.selector, 1_025));
        topics.setPayloadType(topic, string(new bytes(1_025)));
    }

    /* SUCCESSES */

    function test_setPayloadType_isLogged() public {
        vm.expectEmit(address(topics));
        emit ITopics.PayloadTypeChanged(topic, "(string flight, uint64 delay)");
        topics.setPayloadType(topic, "(string flight, uint64 delay)");
        topics.setPayloadType(topic, string(new bytes(1_024)));
    }
}
