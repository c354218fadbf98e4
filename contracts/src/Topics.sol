// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Delivery} from "./Delivery.sol";
import {ITopicOwner} from "./interfaces/ITopicOwner.sol";
import {ITopics} from "./interfaces/ITopics.sol";
import {Calldata} from "./libraries/Calldata.sol";
import {Lanes} from "./libraries/Lanes.sol";
import {Pages} from "./libraries/Pages.sol";
import {Reverts} from "./libraries/Reverts.sol";
import {Access, Policy} from "./types/Policy.sol";
import {Record, RecordLibrary} from "./types/Record.sol";
import {Terms} from "./types/Terms.sol";
import {TopicState, TopicStateLibrary} from "./types/TopicState.sol";

/// @title Topics
/// @notice See `ITopics`, which says everything.
contract Topics is Delivery {
    using Lanes for uint256[1 << 21];
    using Pages for address;
    using Reverts for bytes4;

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
        if (bytes(name).length == 0 || bytes(name).length > NAME_LENGTH_MAX) {
            BadName.selector.revertWith(bytes(name).length);
        }
        topic = topicOf(msg.sender, name);
        if (_topics[topic].exists()) TopicExists.selector.revertWith(topic);
        bool own = Policy.unwrap(policy) != 0;
        if (own) _setPolicy(topic, policy);
        _topics[topic] = TopicStateLibrary.created(own);
        emit TopicCreated(topic, policy, name);
    }

    /// @inheritdoc ITopics
    function setPayloadType(bytes32 topic, string calldata payloadType) external {
        _stateOf(topic);
        _onlyOwner(topic);
        if (bytes(payloadType).length > PAYLOAD_TYPE_LENGTH_MAX) {
            BadName.selector.revertWith(bytes(payloadType).length);
        }
        emit PayloadTypeChanged(topic, payloadType);
    }

    /// @inheritdoc ITopics
    function setPolicy(bytes32 topic, Policy policy) external {
        TopicState state = _stateOf(topic);
        _onlyOwner(topic);
        _setPolicy(topic, policy);
        _topics[topic] = state.withOwnPolicy();
        emit PolicyChanged(topic, policy);
    }

    /// @inheritdoc ITopics
    function setRoles(bytes32 topic, address account, uint256 roles) external {
        _stateOf(topic);
        _onlyOwner(topic);
        _roles[topic][account] = roles;
        emit RolesChanged(topic, account, roles);
    }

    /* SUBSCRIPTIONS */

    /// @inheritdoc ITopics
    function subscribe(bytes32 topic, Terms terms, uint256 hole) external payable returns (uint256 index) {
        TopicState state = _stateOf(topic);
        Policy policy = _policyOf(topic, state);
        _requireAccess(topic, uint256(policy.subscribing()) | MAY_SUBSCRIBE << 8);
        uint256 deposit = _wholeGwei();
        if (deposit < policy.depositFloor()) DepositTooLow.selector.revertWith(deposit, policy.depositFloor());
        if (deposit > Lanes.DEPOSIT_MAX) DepositTooHigh.selector.revertWith(deposit, Lanes.DEPOSIT_MAX);
        _checkTerms(terms, policy);

        index = state.end();
        if (hole < index && hole >= state.sealedEnd() && state.isSettled() && _lanes[topic].load(hole) == 0) {
            index = hole;
        } else {
            if (index >= INDEX_MAX) NotAllowed.selector.revertWith(topic, msg.sender);
            state = state.withEnd(index + 1);
        }
        _topics[topic] = state.withJoined(terms.callbackGas(), _reservedGas(terms.callbackGas()));
        _records[topic][index] = RecordLibrary.make(msg.sender, terms);
        _lanes[topic].store(index, deposit + 1);
        emit Subscribed(topic, msg.sender, index, terms, deposit);
    }

    /// @inheritdoc ITopics
    function fund(bytes32 topic, uint256 index) external payable {
        _recordOf(topic, _stateOf(topic), index);
        uint256 amount = _wholeGwei();
        uint256 lane = _lanes[topic].load(index) + amount;
        if (lane - 1 > Lanes.DEPOSIT_MAX) DepositTooHigh.selector.revertWith(lane - 1, Lanes.DEPOSIT_MAX);
        _lanes[topic].store(index, lane);
        emit Funded(topic, index, amount);
    }

    /// @inheritdoc ITopics
    function withdraw(bytes32 topic, uint256 index, uint256 amount, address to) external {
        TopicState state = _stateOf(topic);
        _onlySubscriber(_recordOf(topic, state, index));
        uint256 deposit = _lanes[topic].load(index) - 1;
        uint256 need = amount + _policyOf(topic, state).depositFloor();
        if (deposit < need) DepositTooLow.selector.revertWith(deposit, need);
        _lanes[topic].store(index, deposit - amount + 1);
        emit Withdrawn(topic, index, to, amount);
        _pay(to, amount);
    }

    /// @inheritdoc ITopics
    function unsubscribe(bytes32 topic, uint256 index, address to) external returns (uint256 residue) {
        TopicState state = _stateOf(topic);
        Record record = _recordOf(topic, state, index);
        _onlySubscriber(record);
        residue = _lanes[topic].load(index) - 1;
        _forget(topic, index, record, residue);
        // Opens the slot that the settlement of an ongoing delivery may credit, at the expense of the one who leaves.
        if (state.isDelivering()) _credits[msg.sender] |= OPENED;
        _pay(to, residue);
    }

    /* EVENTS */

    /// @inheritdoc ITopics
    function publish(bytes32 topic, bytes32 key, uint256 expected, address payee, bytes calldata payload)
        external
        returns (uint256 sequence)
    {
        Page memory page = _pageMaker()();
        page.gasAtEntry = gasleft();
        TopicState state = _stateOf(topic);
        if (!state.isSettled()) _revertUnsettled(topic, state);
        sequence = state.sequence() + 1;
        if (expected != 0 && expected != sequence) StaleSequence.selector.revertWith(expected, sequence);
        Policy policy = _policyOf(topic, state);
        _requireAccess(topic, uint256(policy.publishing()) | MAY_PUBLISH << 8);

        if (payload.length > PAYLOAD_LENGTH_MAX) {
            PayloadTooLong.selector.revertWith(payload.length, PAYLOAD_LENGTH_MAX);
        }

        (page.topic, page.end) = (topic, state.end());
        state = state.withNextSequence();
        _deliverPage(page, state, policy, key, payload, payee, payee);
    }

    /// @inheritdoc ITopics
    function deliver(bytes32 topic, bytes32 key, address payee, bytes calldata payload)
        external
        returns (uint256 remaining)
    {
        Page memory page = _pageMaker()();
        page.gasAtEntry = gasleft();
        TopicState state = _stateOf(topic);
        if (state.isDelivering()) Delivering.selector.revertWith(topic);
        if (!state.isPending()) NothingPending.selector.revertWith(topic);
        uint256 pending = _pending[topic].place;
        (page.topic, page.from, page.end) = (topic, pending >> 160 & 0xffffff, pending >> 184);
        address rewardPayee = address(uint160(pending));
        return _deliverPage(page, state, _policyOf(topic, state), key, payload, payee, rewardPayee);
    }

    /// @inheritdoc ITopics
    function seal(bytes32 topic) external returns (uint256 sealedEnd) {
        TopicState state = _stateOf(topic);
        if (!state.isSettled()) _revertUnsettled(topic, state);
        uint256 first = state.sealedEnd();
        uint256 pageNumber = first / Pages.RECORDS;
        uint256 pageFirst = pageNumber * Pages.RECORDS;
        sealedEnd = state.end() & ~uint256(7);
        if (sealedEnd > pageFirst + Pages.RECORDS) sealedEnd = pageFirst + Pages.RECORDS;
        if (sealedEnd <= first) NothingToSeal.selector.revertWith(topic);

        uint256[] memory records = new uint256[](sealedEnd - pageFirst);
        uint256 at;
        assembly ("memory-safe") {
            at := add(records, 32)
        }
        if (first != pageFirst) _pages[topic][pageNumber].read(first - pageFirst, at);
        for (uint256 index = first; index < sealedEnd; ++index) {
            records[index - pageFirst] = Record.unwrap(_records[topic][index]);
            _records[topic][index] = Record.wrap(0);
        }
        address page = Pages.create(at, sealedEnd - pageFirst);
        _pages[topic][pageNumber] = page;
        _topics[topic] = state.withSealedEnd(sealedEnd);
        emit Sealed(topic, first, sealedEnd, page);
    }

    /* MONEY */

    /// @inheritdoc ITopics
    function collect(address to) external returns (uint256 amount) {
        amount = getCredit(msg.sender);
        if (amount == 0) NothingToCollect.selector.revertWith(uint160(msg.sender));
        _credits[msg.sender] = OPENED;
        emit Collected(msg.sender, to, amount);
        _pay(to, amount);
    }

    /// @inheritdoc ITopics
    function collectTopic(bytes32 topic, address to) external returns (uint256 amount) {
        TopicState state = _stateOf(topic);
        _onlyOwner(topic);
        amount = state.credit();
        if (amount == 0) NothingToCollect.selector.revertWith(uint160(msg.sender));
        _topics[topic] = state.withCredit(0);
        emit Collected(msg.sender, to, amount);
        _pay(to, amount);
    }

    /* VIEWS */

    /// @inheritdoc ITopics
    function topicOf(address owner, string calldata name) public pure returns (bytes32) {
        return bytes32(bytes20(owner)) | bytes32(uint256(keccak256(bytes(name))) & type(uint96).max);
    }

    /// @inheritdoc ITopics
    function getCredit(address account) public view returns (uint256) {
        return _credits[account] & ~OPENED;
    }

    /// @inheritdoc ITopics
    function extsload(bytes32 slot) external view returns (bytes32 value) {
        assembly ("memory-safe") {
            value := sload(slot)
        }
    }

    /* RULES */

    function _onlyOwner(bytes32 topic) private view {
        if (msg.sender != _ownerOf(topic)) NotOwner.selector.revertWith(msg.sender, _ownerOf(topic));
    }

    function _onlySubscriber(Record record) private view {
        if (msg.sender != record.subscriber()) NotSubscriber.selector.revertWith(msg.sender, record.subscriber());
    }

    function _wholeGwei() private view returns (uint256) {
        if (msg.value % 1 gwei != 0) NotWholeGwei.selector.revertWith(msg.value);
        return msg.value / 1 gwei;
    }

    function _setPolicy(bytes32 topic, Policy policy) private {
        if (!policy.isValid()) BadPolicy.selector.revertWith(Policy.unwrap(policy));
        _policies[topic] = policy;
    }

    /// @dev A maximum below today's base fee would never be served, and would make the others pay for the look at it.
    function _checkTerms(Terms terms, Policy policy) private view {
        uint256 gas_ = terms.callbackGas();
        if (
            gas_ == 0 || gas_ > policy.callbackGas() || terms.maxPrice() * MWEI < block.basefee
                || terms.maxShare() < policy.reward() || Terms.unwrap(terms) & GUARDS != 0
        ) BadTerms.selector.revertWith(Terms.unwrap(terms), Policy.unwrap(policy), block.basefee);
    }

    /// @param rule who may, and in bits 8 and 9 what: in one word, or the compiler makes a second copy for the second role
    function _requireAccess(bytes32 topic, uint256 rule) private view {
        Access access = Access(rule & 3);
        if (access == Access.Open || msg.sender == _ownerOf(topic)) return;
        bool allowed = access == Access.Listed
            ? _roles[topic][msg.sender] & rule >> 8 != 0
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

    function _revertUnsettled(bytes32 topic, TopicState state) private view {
        if (state.isDelivering()) Delivering.selector.revertWith(topic);
        PagesPending.selector.revertWith(uint256(topic), state.sequence(), _pending[topic].place >> 160 & 0xffffff);
    }

    /* PAGES */

    /// @dev Serves what fits, settles, records what is left. An event that is not `fresh` must be the pending one.
    function _deliverPage(
        Page memory page,
        TopicState state,
        Policy policy,
        bytes32 key,
        bytes calldata payload,
        address payee,
        address rewardPayee
    ) private returns (uint256 remaining) {
        unchecked {
            bytes32 topic = page.topic;
            bool fresh = !state.isPending();
            _topics[topic] = state.withDelivering();
            _layOut(page, state.sequence(), key, payload, fresh);
            if (!fresh) _requirePending(topic, _hashEvent(page));

            page.words = (page.end + 7) >> 3;
            if (page.words != 0) page.startWord = state.sequence() % page.words;
            page.sealedEnd = state.sealedEnd();
            (page.finishGas, page.laneGas) = (FINISH_GAS, LANE_GAS);
            if (payee != address(0)) page.finishGas += _credits[payee] == 0 ? FRESH_WRITE_GAS : WRITE_GAS;
            uint256 tokens = Calldata.countTokens(payload) + (key == 0 ? 0 : KEY_TOKENS);
            // Only an estimate of gas hangs on who started the transaction, never a right. A publisher contract copies its payload.
            if (msg.sender != tx.origin) page.outsideGas = policy.publisherGas() + payload.length / 3;
            _price(page, policy, state, tokens, payload.length, tx.gasprice);

            _requireGas(page, state);
            uint256 to = page.words << 3;
            if (to > page.from + POSITIONS_MAX) to = page.from + POSITIONS_MAX;
            _allocate(page, to - page.from);
            to = _serve(page, to);
            remaining = (page.words << 3) - to;
            if (remaining != 0) page.finishGas += fresh ? 2 * FRESH_WRITE_GAS + 4_200 : WRITE_GAS;
            _settle(page, to);
            uint256 gasPaid = page.gasPaid;
            uint256 rewards = page.billed * page.reward;

            uint256 topicCredit;
            if (rewardPayee == address(0)) topicCredit = rewards;
            else if (rewards != 0) _credit(rewardPayee, rewards);
            if (payee == address(0)) topicCredit += gasPaid;
            else _credit(payee, gasPaid);
            state = _topics[topic].withDelivered(remaining != 0);
            state = state.withCredit(state.credit() + topicCredit);
            if (remaining != 0) _setPending(page, to, rewardPayee, fresh);
            else if (page.end == state.end()) state = _withoutTail(page, state);
            _topics[topic] = state;
            _emitDelivered(page, state.sequence(), to, remaining, gasPaid + rewards);
        }
    }

    function _requirePending(bytes32 topic, bytes32 event_) private view {
        if (event_ != _pending[topic].event_) {
            WrongEvent.selector.revertWith(uint256(event_), uint256(_pending[topic].event_));
        }
    }

    function _setPending(Page memory page, uint256 position, address payee, bool fresh) private {
        Pending storage pending = _pending[page.topic];
        if (fresh) pending.event_ = _hashEvent(page);
        pending.place = page.end << 184 | position << 160 | uint160(payee);
    }

    /// @dev Gives the last word of the list back where it is empty.
    function _withoutTail(Page memory page, TopicState state) private view returns (TopicState) {
        if (page.end < page.live + 8) return state;
        uint256 tail = (page.end - 1) & ~uint256(7);
        return tail >= page.sealedEnd && _lanes[page.topic][tail >> 3] == 0 ? state.withEnd(tail) : state;
    }

    function _emitDelivered(Page memory page, uint256 sequence, uint256 to, uint256 remaining, uint256 credited)
        private
    {
        bytes32 signature = Delivered.selector;
        (bytes32 topic, uint256 from, uint256 outcomes) = (page.topic, page.from, page.outcomes);
        assembly ("memory-safe") {
            let data := sub(outcomes, 160)
            let count := sub(to, from)
            mstore(data, from)
            mstore(add(data, 32), remaining)
            mstore(add(data, 64), credited)
            mstore(add(data, 96), 128)
            mstore(add(data, 128), count)
            log3(data, add(160, and(add(count, 31), not(31))), signature, topic, sequence)
        }
    }
}
