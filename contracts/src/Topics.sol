// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Delivery} from "./Delivery.sol";
import {ITopicOwner} from "./interfaces/ITopicOwner.sol";
import {ITopics} from "./interfaces/ITopics.sol";
import {Calldata} from "./libraries/Calldata.sol";
import {Lanes} from "./libraries/Lanes.sol";
import {Pages} from "./libraries/Pages.sol";
import {Reverts} from "./libraries/Reverts.sol";
import {Words} from "./libraries/Words.sol";
import {Access, Policy, PolicyLibrary} from "./types/Policy.sol";
import {Record, RecordLibrary} from "./types/Record.sol";
import {Terms} from "./types/Terms.sol";
import {TopicState, TopicStateLibrary} from "./types/TopicState.sol";

/// @title Topics
/// @notice See `ITopics`, which says everything.
contract Topics is Delivery {
    using Lanes for uint256[1 << 24];
    using Pages for uint256;
    using Reverts for bytes4;
    using Words for uint256;
    using Words for uint256[1 << 24];

    uint256 private constant VERSION = 1;
    uint256 private constant NAME_LENGTH_MAX = 128;
    uint256 private constant PAYLOAD_TYPE_LENGTH_MAX = 1_024;
    /// @dev A page must carry it again, with gas for its callbacks: see FULL_SIXTEENTHS.
    uint256 private constant PAYLOAD_LENGTH_MAX = 131_072;
    uint256 private constant MAY_PUBLISH = 1;
    uint256 private constant MAY_SUBSCRIBE = 2;
    /// @dev For one answer of an owner contract: a few cold reads.
    uint256 private constant ASK_GAS = 50000;
    uint256 private constant INDEX_MAX = (1 << 24) - 8;

    constructor() {
        emit TopicsDeployed(VERSION);
    }

    /* TOPICS */

    /// @inheritdoc ITopics
    function create(Policy policy, string calldata name) external returns (bytes32 topic) {
        uint256 length = bytes(name).length;
        if (length == 0 || length > NAME_LENGTH_MAX) BadName.selector.revertWith(length);
        topic = topicOf(msg.sender, name);
        Book storage book = _books[topic];
        if (book.state.exists()) TopicExists.selector.revertWith(topic);
        TopicState state = TopicStateLibrary.created();
        if (Policy.unwrap(policy) != 0) state = _setPolicy(book, state, policy);
        book.state = state;
        emit TopicCreated(topic, policy, name);
    }

    /// @inheritdoc ITopics
    function setPayloadType(bytes32 topic, string calldata payloadType) external {
        _openOwned(topic);
        uint256 length = bytes(payloadType).length;
        if (length > PAYLOAD_TYPE_LENGTH_MAX) BadName.selector.revertWith(length);
        emit PayloadTypeChanged(topic, payloadType);
    }

    /// @inheritdoc ITopics
    function setPolicy(bytes32 topic, Policy policy) external {
        (Book storage book, TopicState state) = _openOwned(topic);
        book.state = _setPolicy(book, state, policy);
        emit PolicyChanged(topic, policy);
    }

    /// @inheritdoc ITopics
    function setRoles(bytes32 topic, address account, uint256 roles) external {
        (Book storage book,) = _openOwned(topic);
        book.roles[account] = roles;
        emit RolesChanged(topic, account, roles);
    }

    /* SUBSCRIPTIONS */

    /// @inheritdoc ITopics
    function subscribe(bytes32 topic, Terms terms, uint256 hole) external payable returns (uint256 index) {
        unchecked {
            (Book storage book, TopicState state) = _open(topic);
            Policy policy = _policyOf(book, state);
            _requireAccess(book, topic, policy.accessAt(PolicyLibrary.SUBSCRIBING) | MAY_SUBSCRIBE << 8);
            uint256 deposit = _wholeGwei();
            _requireDeposit(deposit, policy.depositFloor());
            _requireLaneHolds(deposit);
            _checkTerms(terms, policy);

            index = state.end();
            if (hole < index && hole >= state.sealedEnd() && state.isSettled() && book.lanes.laneAt(hole) == 0) {
                index = hole;
            } else {
                if (index >= INDEX_MAX) NotAllowed.selector.revertWith(topic, msg.sender);
                state = state.withNextEnd();
            }
            book.state = state.withJoined(terms.callbackGas(), _reservedGas(terms.callbackGas()));
            book.records.put(index, Record.unwrap(RecordLibrary.make(msg.sender, terms)));
            book.lanes.putLane(index, deposit + 1);
            emit Subscribed(topic, msg.sender, index, terms, deposit);
        }
    }

    /// @inheritdoc ITopics
    function fund(bytes32 topic, uint256 index) external payable {
        unchecked {
            (Book storage book, TopicState state) = _open(topic);
            uint256 amount = _wholeGwei();
            uint256 deposit = _depositOf(book, topic, state, index) + amount;
            _requireLaneHolds(deposit);
            book.lanes.putLane(index, deposit + 1);
            emit Funded(topic, index, amount);
        }
    }

    /// @inheritdoc ITopics
    function withdraw(bytes32 topic, uint256 index, uint256 amount, address to) external {
        unchecked {
            (Book storage book, TopicState state) = _open(topic);
            uint256 deposit = _depositOf(book, topic, state, index);
            _onlySubscriber(_readRecord(book, state.sealedEnd(), index));
            uint256 need = amount + _policyOf(book, state).depositFloor();
            if (need < amount) need = amount; // more than there is
            _requireDeposit(deposit, need);
            book.lanes.putLane(index, deposit - amount + 1);
            emit Withdrawn(topic, index, to, amount);
            _payOut(to, amount);
        }
    }

    /// @inheritdoc ITopics
    function unsubscribe(bytes32 topic, uint256 index, address to) external returns (uint256 residue) {
        (Book storage book, TopicState state) = _open(topic);
        residue = _depositOf(book, topic, state, index);
        Record record = _readRecord(book, state.sealedEnd(), index);
        _onlySubscriber(record);
        _forget(topic, index, record, residue);
        // Opens the slot that the settlement of an ongoing delivery may credit, at the expense of the one who leaves.
        if (state.isDelivering()) _credit(msg.sender, 0);
        _payOut(to, residue);
    }

    /* EVENTS */

    /// @inheritdoc ITopics
    function publish(bytes32 topic, bytes32 key, uint256 expected, address payee, bytes calldata payload)
        external
        returns (uint256 sequence)
    {
        _openPage();
        Page memory page = _page()();
        page.gasAtEntry = gasleft();
        (Book storage book, TopicState state) = _open(topic);
        _requireSettled(book, topic, state);
        state = state.withNextSequence();
        sequence = state.sequence();
        if (expected != 0 && expected != sequence) StaleSequence.selector.revertWith(expected, sequence);
        Policy policy = _policyOf(book, state);
        _requireAccess(book, topic, policy.accessAt(PolicyLibrary.PUBLISHING) | MAY_PUBLISH << 8);
        if (payload.length > PAYLOAD_LENGTH_MAX) {
            PayloadTooLong.selector.revertWith(payload.length, PAYLOAD_LENGTH_MAX);
        }
        (page.topic, page.end) = (topic, state.end());
        page.payee = page.rewardPayee = payee;
        _deliverPage(book, state, policy, key, payload);
    }

    /// @inheritdoc ITopics
    function deliver(bytes32 topic, bytes32 key, address payee, bytes calldata payload)
        external
        returns (uint256 remaining)
    {
        _openPage();
        Page memory page = _page()();
        page.gasAtEntry = gasleft();
        (Book storage book, TopicState state) = _open(topic);
        if (state.isDelivering()) Delivering.selector.revertWith(topic);
        if (!state.isPending()) NothingPending.selector.revertWith(topic);
        uint256 pending = book.pendingPlace;
        (page.topic, page.from, page.end) = (topic, pending >> 160 & 0xffffff, pending >> 184);
        (page.payee, page.rewardPayee) = (payee, address(uint160(pending)));
        return _deliverPage(book, state, _policyOf(book, state), key, payload);
    }

    /// @inheritdoc ITopics
    function seal(bytes32 topic) external returns (uint256 sealedEnd) {
        unchecked {
            (Book storage book, TopicState state) = _open(topic);
            _requireSettled(book, topic, state);
            uint256 first = state.sealedEnd();
            uint256 number = first / Pages.RECORDS;
            uint256 pageFirst = number * Pages.RECORDS;
            sealedEnd = _least(state.end() & ~uint256(7), pageFirst + Pages.RECORDS);
            if (sealedEnd <= first) NothingToSeal.selector.revertWith(topic);

            uint256 count = sealedEnd - pageFirst;
            uint256 records = Pages.allocate(count);
            // What was sealed before this call is copied; where nothing was, nothing comes from an account without code.
            book.pages.at(number).read(0, first - pageFirst, records);
            for (uint256 index = first; index < sealedEnd; ++index) {
                (records + ((index - pageFirst) << 5)).write(book.records.at(index));
                book.records.put(index, 0);
            }
            uint256 page = records.create(count);
            book.pages.put(number, page);
            book.state = state.withSealedEnd(sealedEnd);
            emit Sealed(topic, first, sealedEnd, address(uint160(page)));
        }
    }

    /* MONEY */

    /// @inheritdoc ITopics
    function collect(address to) external returns (uint256 amount) {
        amount = getCredit(msg.sender);
        _credits[msg.sender] = OPENED;
        _collect(to, amount);
    }

    /// @inheritdoc ITopics
    function collectTopic(bytes32 topic, address to) external returns (uint256 amount) {
        (Book storage book, TopicState state) = _openOwned(topic);
        amount = state.credit();
        book.state = state.withoutCredit();
        _collect(to, amount);
    }

    /* VIEWS */

    /// @inheritdoc ITopics
    function topicOf(address owner, string calldata name) public pure returns (bytes32) {
        return bytes32(bytes20(owner)) | Calldata.hash(bytes(name)) << 160 >> 160;
    }

    /// @inheritdoc ITopics
    function getCredit(address account) public view returns (uint256) {
        return _credits[account] & ~OPENED;
    }

    /// @inheritdoc ITopics
    function extsload(bytes32 slot) external view returns (bytes32 value) {
        return bytes32(uint256(slot).load());
    }

    /* RULES */

    function _openOwned(bytes32 topic) private view returns (Book storage book, TopicState state) {
        (book, state) = _open(topic);
        if (msg.sender != _ownerOf(topic)) NotOwner.selector.revertWith(msg.sender, _ownerOf(topic));
    }

    function _onlySubscriber(Record record) private view {
        if (msg.sender != record.subscriber()) NotSubscriber.selector.revertWith(msg.sender, record.subscriber());
    }

    /// @dev Of a live index; reverts where nobody holds it.
    function _depositOf(Book storage book, bytes32 topic, TopicState state, uint256 index)
        private
        view
        returns (uint256)
    {
        unchecked {
            uint256 lane = index < state.end() ? book.lanes.laneAt(index) : 0;
            if (lane == 0) NotSubscribed.selector.revertWith(uint256(topic), index);
            return lane - 1;
        }
    }

    function _wholeGwei() private view returns (uint256) {
        if (msg.value % 1 gwei != 0) NotWholeGwei.selector.revertWith(msg.value);
        return msg.value / 1 gwei;
    }

    function _requireDeposit(uint256 have, uint256 need) private pure {
        if (have < need) DepositTooLow.selector.revertWith(have, need);
    }

    function _requireLaneHolds(uint256 deposit) private pure {
        if (deposit > Lanes.DEPOSIT_MAX) DepositTooHigh.selector.revertWith(deposit, Lanes.DEPOSIT_MAX);
    }

    function _setPolicy(Book storage book, TopicState state, Policy policy) private returns (TopicState) {
        if (!policy.isValid()) BadPolicy.selector.revertWith(Policy.unwrap(policy));
        book.policy = policy;
        return state.withOwnPolicy();
    }

    /// @dev A maximum below today's base fee would never be served, and would make the others pay for the look at it.
    function _checkTerms(Terms terms, Policy policy) private view {
        unchecked {
            uint256 gas_ = terms.callbackGas();
            if (
                gas_ == 0 || gas_ > policy.callbackGas() || terms.maxPrice() * MWEI < block.basefee
                    || terms.maxShare() < policy.reward() || Terms.unwrap(terms) & GUARDS != 0
            ) BadTerms.selector.revertWith(Terms.unwrap(terms), Policy.unwrap(policy), block.basefee);
        }
    }

    /// @param rule who may, and in bits 8 and 9 what: in one word, or the compiler makes a second copy for the second role
    function _requireAccess(Book storage book, bytes32 topic, uint256 rule) private view {
        uint256 access = rule & 3;
        if (msg.sender == _ownerOf(topic) || access == uint256(Access.Open)) return;
        bool allowed = access == uint256(Access.Listed)
            ? book.roles[msg.sender] & rule >> 8 != 0
            : _ask(
                topic, rule >> 8 == MAY_PUBLISH ? ITopicOwner.mayPublish.selector : ITopicOwner.maySubscribe.selector
            );
        if (!allowed) NotAllowed.selector.revertWith(topic, msg.sender);
    }

    /// @dev Whether the owner contract answers with exactly 32 bytes that equal 1.
    function _ask(bytes32 topic, bytes4 question) private view returns (bool yes) {
        address owner = _ownerOf(topic);
        assembly ("memory-safe") {
            let at := mload(0x40)
            mstore(at, question)
            mstore(add(at, 4), topic)
            mstore(add(at, 36), caller())
            yes := staticcall(ASK_GAS, owner, at, 68, 0, 32)
            yes := and(yes, and(eq(returndatasize(), 32), eq(mload(0), 1)))
        }
    }

    function _requireSettled(Book storage book, bytes32 topic, TopicState state) private view {
        if (state.isSettled()) return;
        if (state.isDelivering()) Delivering.selector.revertWith(topic);
        PagesPending.selector.revertWith(uint256(topic), state.sequence(), book.pendingPlace >> 160 & 0xffffff);
    }

    function _collect(address to, uint256 amount) private {
        if (amount == 0) NothingToCollect.selector.revertWith(uint160(msg.sender));
        emit Collected(msg.sender, to, amount);
        _payOut(to, amount);
    }

    /// @dev Last of all effects: hands control away. No return data is copied.
    function _payOut(address to, uint256 amount) private {
        bool paid;
        assembly ("memory-safe") {
            paid := call(gas(), to, mul(amount, 1000000000), 0, 0, 0, 0)
        }
        if (!paid) PaymentFailed.selector.revertWith(uint160(to), amount);
    }
}
