// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITopicOwner} from "../../src/interfaces/ITopicOwner.sol";
import {ITopics} from "../../src/interfaces/ITopics.sol";
import {Access, PolicyLibrary} from "../../src/types/Policy.sol";

/// @notice Owns a topic whose policy asks it, and answers as it is told, rightly or wrongly.
contract Gatekeeper is ITopicOwner {
    bytes32 public immutable topic;
    bytes private _answer;
    bool private _burns;

    constructor(ITopics topics) {
        PolicyLibrary.Fields memory fields = PolicyLibrary.defaults();
        (fields.publishing, fields.subscribing) = (Access.Asked, Access.Asked);
        topic = topics.create(PolicyLibrary.pack(fields), "guarded");
    }

    /// @notice Answers that are not "exactly 32 bytes that equal 1".
    function refusals() external pure returns (bytes[] memory answers) {
        answers = new bytes[](6);
        answers[0] = "";
        answers[1] = abi.encode(0);
        answers[2] = abi.encode(2);
        answers[3] = abi.encode(1, 1);
        answers[4] = hex"01";
        answers[5] = abi.encode(type(uint256).max);
    }

    function answerWith(bytes calldata answer) external {
        _answer = answer;
    }

    function burn() external {
        _burns = true;
    }

    function mayPublish(bytes32, address) external view returns (bool) {
        _reply();
    }

    function maySubscribe(bytes32, address) external view returns (bool) {
        _reply();
    }

    function _reply() private view {
        if (_burns) {
            assembly {
                invalid()
            }
        }
        bytes memory answer = _answer;
        assembly {
            return(add(answer, 32), mload(answer))
        }
    }
}
