// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Subscriber} from "../Subscriber.sol";
import {IGauge} from "../interfaces/IGauge.sol";
import {ITopics} from "../interfaces/ITopics.sol";

/// @title Gauge: remembers one field of a topic's latest event
/// @notice Subscribe it to its topic, and queues can wait for the field to be above or below a value. `Topics` keeps no payload, so somebody must.
contract Gauge is Subscriber, IGauge {
    bytes32 public immutable topic;
    /// @notice Which word of the payload the field is.
    uint256 public immutable word;

    uint48 private _sequence;
    int208 private _value;

    error NoSuchField(uint256 have, uint256 need);

    constructor(ITopics topics_, address owner_, bytes32 topic_, uint256 word_) Subscriber(topics_, owner_) {
        (topic, word) = (topic_, word_);
    }

    /// @inheritdoc IGauge
    function latest() external view returns (uint256 sequence, int256 value) {
        return (_sequence, _value);
    }

    function _accepts(bytes32 topic_) internal view override returns (bool) {
        return topic_ == topic;
    }

    /// @dev An event without the field, or with one beyond 208 bits, is refused and the last value stays.
    function _onEvent(bytes32, uint256 sequence, uint256, bytes32, bytes calldata payload) internal override {
        uint256 need = (word + 1) * 32;
        require(payload.length >= need, NoSuchField(payload.length, need));
        int256 value = abi.decode(payload[need - 32:need], (int256));
        require(value == int208(value), NoSuchField(payload.length, need));
        (_sequence, _value) = (uint48(sequence), int208(value));
    }
}
