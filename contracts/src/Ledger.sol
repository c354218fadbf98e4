// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITopics} from "./interfaces/ITopics.sol";
import {Lanes} from "./libraries/Lanes.sol";
import {Pages} from "./libraries/Pages.sol";
import {Reverts} from "./libraries/Reverts.sol";
import {Words} from "./libraries/Words.sol";
import {Pricing} from "./Pricing.sol";
import {Policy, PolicyLibrary} from "./types/Policy.sol";
import {Record} from "./types/Record.sol";
import {TopicState} from "./types/TopicState.sol";

/// @notice What `Topics` remembers, and the rules that every entry point shares.
abstract contract Ledger is ITopics, Pricing {
    using Lanes for uint256[1 << 24];
    using Pages for uint256;
    using Reverts for bytes4;
    using Words for uint256[1 << 24];

    /// @dev All that is known of one topic. `TopicReader` names the places of its fields.
    struct Book {
        TopicState state;
        Policy policy;
        /// The event whose pages are not all delivered: its name, see `_hashEvent`.
        bytes32 pendingEvent;
        /// From the lowest bit: payee of the reward 160 | position 24 | end of the list 24.
        uint256 pendingPlace;
        mapping(address account => uint256) roles;
        uint256[1 << 24] lanes;
        uint256[1 << 24] records;
        /// Contracts that hold sealed records.
        uint256[1 << 24] pages;
    }

    /// @dev Set in a credit for good once an account was credited, so that later credits write a slot that is not zero.
    uint256 internal constant OPENED = 1 << 255;

    mapping(bytes32 topic => Book) internal _books;
    mapping(address account => uint256) internal _credits;

    function _ownerOf(bytes32 topic) internal pure returns (address) {
        return address(bytes20(topic));
    }

    function _open(bytes32 topic) internal view returns (Book storage book, TopicState state) {
        book = _books[topic];
        state = book.state;
        if (!state.exists()) UnknownTopic.selector.revertWith(topic);
    }

    function _policyOf(Book storage book, TopicState state) internal view returns (Policy) {
        return state.hasOwnPolicy() ? book.policy : PolicyLibrary.DEFAULT;
    }

    function _readRecord(Book storage book, uint256 sealedEnd, uint256 index) internal view returns (Record) {
        if (index >= sealedEnd) return Record.wrap(book.records.at(index));
        unchecked {
            book.pages.at(index / Pages.RECORDS).read(index % Pages.RECORDS, 1, 0);
        }
        return Record.wrap(Words.read(0));
    }

    /// @dev Forgets the subscription at `index`; its deposit is the caller's to hand on.
    function _forget(bytes32 topic, uint256 index, Record record, uint256 residue) internal {
        Book storage book = _books[topic];
        TopicState state = book.state;
        book.state = state.withLeft(_reservedGas(record.callbackGas()));
        // An ongoing delivery may still have to give something back to the one in the record.
        if (index >= state.sealedEnd() && !state.isDelivering()) book.records.put(index, 0);
        book.lanes.putLane(index, 0);
        emit Unsubscribed(topic, record.subscriber(), index, residue);
    }

    /// @dev Owes `amount` gwei to `account`, who may `collect` it.
    function _credit(address account, uint256 amount) internal {
        unchecked {
            _credits[account] = (_credits[account] + amount) | OPENED;
        }
    }
}
