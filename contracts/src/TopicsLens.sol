// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Pricing} from "./Pricing.sol";
import {ITopics} from "./interfaces/ITopics.sol";
import {ITopicsLens} from "./interfaces/ITopicsLens.sol";
import {Pages} from "./libraries/Pages.sol";
import {TopicReader} from "./libraries/TopicReader.sol";
import {Words} from "./libraries/Words.sol";
import {Outcome} from "./types/Outcome.sol";
import {Policy, PolicyLibrary} from "./types/Policy.sol";
import {Record} from "./types/Record.sol";
import {Terms} from "./types/Terms.sol";
import {TopicState} from "./types/TopicState.sol";

/// @title TopicsLens
/// @notice See `ITopicsLens`.
contract TopicsLens is ITopicsLens, Pricing {
    using Pages for uint256;
    using TopicReader for ITopics;
    using TopicReader for bytes32;

    /// @dev What a publish spends before and after its callbacks, and per byte of its payload: its words, log and copy, a fresh credit.
    uint256 private constant PUBLISH_GAS = 36_000;
    uint256 private constant PUBLISH_GAS_PER_BYTE = 9;

    ITopics public immutable topics;

    constructor(ITopics topics_) {
        topics = topics_;
    }

    /// @inheritdoc ITopicsLens
    function getTopic(bytes32 topic) external view returns (TopicView memory) {
        TopicState state = topics.stateOf(topic);
        return TopicView({
            owner: address(bytes20(topic)),
            policy: _policyOf(topic, state),
            sequence: state.sequence(),
            end: state.end(),
            live: state.live(),
            sealedEnd: state.sealedEnd(),
            credit: state.credit(),
            delivering: state.isDelivering(),
            pending: state.isPending(),
            callbackGas: state.callbackGas()
        });
    }

    /// @inheritdoc ITopicsLens
    function getPending(bytes32 topic) external view returns (PendingView memory) {
        TopicState state = topics.stateOf(topic);
        if (!state.isPending()) revert ITopics.NothingPending(topic);
        uint256 packed = topics.read(topic.slotOf(TopicReader.PENDING_PLACE));
        return PendingView({
            event_: bytes32(topics.read(topic.slotOf(TopicReader.PENDING_EVENT))),
            sequence: state.sequence(),
            position: packed >> 160 & 0xffffff,
            end: packed >> 184 & 0xffffff,
            payee: address(uint160(packed))
        });
    }

    /// @inheritdoc ITopicsLens
    function getRoles(bytes32 topic, address account) external view returns (uint256) {
        return topics.read(uint256(keccak256(abi.encode(account, topic.slotOf(TopicReader.ROLES)))));
    }

    /// @inheritdoc ITopicsLens
    function getSubscription(bytes32 topic, uint256 index)
        external
        view
        returns (address subscriber, Terms terms, uint256 deposit)
    {
        TopicState state = topics.stateOf(topic);
        uint256 lane = index < state.end() ? _laneOf(topic, index) : 0;
        if (lane == 0) return (address(0), Terms.wrap(0), 0);
        Record record = _recordOf(topic, state, index);
        return (record.subscriber(), record.terms(), lane - 1);
    }

    /// @inheritdoc ITopicsLens
    function findHole(bytes32 topic) external view returns (uint256 index) {
        TopicState state = topics.stateOf(topic);
        for (index = state.sealedEnd(); index < state.end(); ++index) {
            if (_laneOf(topic, index) == 0) return index;
        }
    }

    /// @inheritdoc ITopicsLens
    function indexAt(uint256 sequence, uint256 position, uint256 end) public pure returns (uint256) {
        if (position >= end + 7 & ~uint256(7)) revert NoSuchPosition(position, end);
        uint256 words = (end + 7) >> 3;
        return (((sequence % words) + (position >> 3)) % words) << 3 | (position & 7);
    }

    /// @inheritdoc ITopicsLens
    function quotePublish(bytes32 topic, uint256 payloadLength, uint256 gasPrice)
        external
        view
        returns (Quote memory quote)
    {
        _openPage();
        Page memory page = _page()();
        TopicState state = topics.stateOf(topic);
        Policy policy = _policyOf(topic, state);
        page.outsideGas = policy.publisherGas();
        page.finishGas = PUBLISH_GAS + PUBLISH_GAS_PER_BYTE * payloadLength;
        page.gasAtEntry = gasleft();
        _price(policy, state, 4 * payloadLength, payloadLength, gasPrice);

        uint256 need = page.base + RESERVE_GAS;
        quote.gasLimit = _least(need + state.callbackGas(), _fullGas());
        quote.outcomes = new bytes(state.end());
        for (uint256 position; position < state.end() + 7 & ~uint256(7); ++position) {
            uint256 index = indexAt(state.sequence() + 1, position, state.end());
            uint256 lane = index < state.end() ? _laneOf(topic, index) : 0;
            if (lane != 0) need = _predict(quote, index, _recordOf(topic, state, index), lane - 1, need);
        }
    }

    /// @dev Writes one outcome into the quote; returns the gas needed so far.
    function _predict(Quote memory quote, uint256 index, Record record, uint256 deposit, uint256 need)
        private
        view
        returns (uint256)
    {
        Page memory page = _page()();
        uint256 debit;
        uint256 outcome = _dismiss(deposit);
        if (outcome == REMOVED) ++page.removed;
        if (outcome == 0) (outcome, debit) = _judge(record, deposit);
        if (outcome == DELIVERED) {
            need += _reservedGas(record.callbackGas());
            if (need > _fullGas()) {
                outcome = uint256(Outcome.Deferred);
            } else {
                page.billed = ++quote.served;
                if (_priceFor(record) != page.price) ++page.apart;
                quote.mostCredited += debit;
            }
        }
        quote.outcomes[index] = bytes1(uint8(outcome));
        return need;
    }

    /* STORAGE OF TOPICS */

    function _policyOf(bytes32 topic, TopicState state) private view returns (Policy) {
        return state.hasOwnPolicy() ? Policy.wrap(topics.read(topic.slotOf(TopicReader.POLICY))) : PolicyLibrary.DEFAULT;
    }

    function _laneOf(bytes32 topic, uint256 index) private view returns (uint256) {
        return topics.read(topic.slotOf(TopicReader.LANES) + (index >> 3)) >> ((index & 7) << 5) & 0xffffffff;
    }

    function _recordOf(bytes32 topic, TopicState state, uint256 index) private view returns (Record) {
        if (index >= state.sealedEnd()) return Record.wrap(topics.read(topic.slotOf(TopicReader.RECORDS) + index));
        topics.read(topic.slotOf(TopicReader.PAGES) + index / Pages.RECORDS).read(index % Pages.RECORDS, 1, 0);
        return Record.wrap(Words.read(0));
    }
}
