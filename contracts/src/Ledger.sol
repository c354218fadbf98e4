// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITopics} from "./interfaces/ITopics.sol";
import {Lanes} from "./libraries/Lanes.sol";
import {Pages} from "./libraries/Pages.sol";
import {Reverts} from "./libraries/Reverts.sol";
import {Pricing} from "./Pricing.sol";
import {Policy, PolicyLibrary} from "./types/Policy.sol";
import {Record} from "./types/Record.sol";
import {TopicState} from "./types/TopicState.sol";

/// @notice What `Topics` remembers, and the rules that every entry point shares.
abstract contract Ledger is ITopics, Pricing {
    using Lanes for uint256[1 << 21];
    using Pages for address;
    using Reverts for bytes4;

    struct Pending {
        bytes32 event_; // its name, see `_hashEvent`
        uint256 place; // from the lowest bit: payee of the reward 160 | position 24 | end of the list 24
    }

    /// @dev Set in a credit for good once an account was credited, so that later credits write a slot that is not zero.
    uint256 internal constant OPENED = 1 << 255;

    mapping(bytes32 topic => TopicState) internal _topics;
    mapping(bytes32 topic => Policy) internal _policies;
    mapping(bytes32 topic => mapping(address account => uint256)) internal _roles;
    mapping(bytes32 topic => uint256[1 << 21]) internal _lanes;
    mapping(bytes32 topic => Record[1 << 24]) internal _records;
    mapping(bytes32 topic => address[1 << 15]) internal _pages;
    mapping(bytes32 topic => Pending) internal _pending;
    mapping(address account => uint256) internal _credits;

    function _ownerOf(bytes32 topic) internal pure returns (address) {
        return address(bytes20(topic));
    }

    function _stateOf(bytes32 topic) internal view returns (TopicState state) {
        state = _topics[topic];
        if (!state.exists()) UnknownTopic.selector.revertWith(topic);
    }

    function _policyOf(bytes32 topic, TopicState state) internal view returns (Policy) {
        return state.hasOwnPolicy() ? _policies[topic] : PolicyLibrary.DEFAULT;
    }

    /// @dev The record of a live index; reverts where nobody holds it.
    function _recordOf(bytes32 topic, TopicState state, uint256 index) internal view returns (Record) {
        if (index >= state.end() || _lanes[topic].load(index) == 0) {
            NotSubscribed.selector.revertWith(uint256(topic), index);
        }
        return _readRecord(topic, state.sealedEnd(), index);
    }

    function _readRecord(bytes32 topic, uint256 sealedEnd, uint256 index) internal view returns (Record) {
        if (index >= sealedEnd) return _records[topic][index];
        return _pages[topic][index / Pages.RECORDS].at(index % Pages.RECORDS);
    }

    /// @dev Forgets the subscription at `index`; its deposit is the caller's to hand on.
    function _forget(bytes32 topic, uint256 index, Record record, uint256 residue) internal {
        TopicState state = _topics[topic];
        _topics[topic] = state.withLeft(_reservedGas(record.callbackGas()));
        // An ongoing delivery may still have to give something back to the one in the record.
        if (index >= state.sealedEnd() && !state.isDelivering()) _records[topic][index] = Record.wrap(0);
        _lanes[topic].store(index, 0);
        emit Unsubscribed(topic, record.subscriber(), index, residue);
    }

    /// @dev Owes `amount` gwei to `account`, who may `collect` it.
    function _credit(address account, uint256 amount) internal {
        unchecked {
            _credits[account] = (_credits[account] + amount) | OPENED;
        }
    }

    /// @dev Last of all effects: hands control away. No return data is copied.
    function _pay(address to, uint256 amount) internal {
        bool paid;
        assembly ("memory-safe") {
            paid := call(gas(), to, mul(amount, 1000000000), 0, 0, 0, 0)
        }
        if (!paid) PaymentFailed.selector.revertWith(uint160(to), amount);
    }
}
