// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {Books} from "./Books.sol";
import {Holding} from "./Holding.sol";
import {Routing} from "./Routing.sol";
import {IExchanges} from "../interfaces/IExchanges.sol";
import {ITopics} from "../interfaces/ITopics.sol";
import {Keys} from "../libraries/Keys.sol";
import {ExchangeState, ExchangeStateLibrary} from "../types/ExchangeState.sol";
import {QueueState, QueueStateLibrary} from "../types/QueueState.sol";

/// @title Exchanges
/// @notice See `IExchanges`, which says everything.
contract Exchanges is Routing, Holding {
    uint256 private constant PAYLOAD_LENGTH_MAX = 65_536;
    uint256 private constant SUBSCRIBERS_MAX = 4_096;
    uint256 private constant CALLBACK_GAS_MAX = 4_000_000;
    uint256 private constant LIFETIME_S_MAX = 10 * 365 days;
    /// @dev For holding a message in a queue whose turn comes later: its hash, its value, its log.
    uint256 private constant HOLD_GAS = 75_000;

    constructor(ITopics topics_) Books(topics_) {}

    /* EXCHANGES AND THEIR PUBLISHERS */

    /// @inheritdoc IExchanges
    function createExchange(string calldata name, bool open, bool hashMayBeNothing, uint256 fee)
        external
        returns (bytes32 exchange)
    {
        exchange = _claimName(name);
        require(!_exchanges[exchange].state.exists(), NameTaken(exchange));
        require(fee <= ExchangeStateLibrary.FEE_MAX, WrongTerms(fee));
        _exchanges[exchange].state = ExchangeStateLibrary.make(++_serial, fee, open, hashMayBeNothing);
        emit ExchangeCreated(exchange, open, hashMayBeNothing, fee, name);
    }

    /// @inheritdoc IExchanges
    function requestPublishing(bytes32 exchange) external {
        Exchange storage book = _openExchange(exchange);
        bytes32 edge = _edgeOf(PUBLISHING, exchange, msg.sender);
        _requireNone(edge, exchange);
        Status status = book.state.isOpen() || _isOwner(exchange) ? Status.Approved : Status.Requested;
        _edges[edge] = uint256(status);
        emit PublisherChanged(exchange, msg.sender, status);
    }

    /// @inheritdoc IExchanges
    function approvePublisher(bytes32 exchange, address publisher) external {
        _requireOwner(exchange);
        bytes32 edge = _edgeOf(PUBLISHING, exchange, publisher);
        _requireRequested(edge, exchange);
        _edges[edge] = uint256(Status.Approved);
        emit PublisherChanged(exchange, publisher, Status.Approved);
    }

    /// @inheritdoc IExchanges
    function removePublisher(bytes32 exchange, address publisher) external {
        _requireEither(exchange, publisher);
        bytes32 edge = _edgeOf(PUBLISHING, exchange, publisher);
        Status status = _farewell(edge, exchange);
        delete _edges[edge];
        emit PublisherChanged(exchange, publisher, status);
    }

    /* QUEUES AND THEIR SUBSCRIBERS */

    /// @inheritdoc IExchanges
    function createQueue(string calldata name, QueueTerms calldata terms) external returns (bytes32 queue) {
        queue = _claimName(name);
        Queue storage book = _queues[queue];
        require(!book.state.exists(), NameTaken(queue));
        _checkTerms(terms);
        book.state = QueueStateLibrary.make(
            terms.callbackGas,
            uint256(terms.condition),
            terms.openBinding,
            terms.openSubscribing,
            terms.openValue,
            terms.lifo
        );
        book.terms = terms.lifetime | terms.delay << 32 | terms.notBefore << 64 | terms.reward << 128;
        if (terms.condition != Condition.AtOnce) (book.subject, book.threshold) = (terms.subject, terms.threshold);
        if (terms.deadLetter != 0) book.deadLetter = terms.deadLetter;
        emit QueueCreated(queue, terms, name);
    }

    /// @dev A refusal names the field by its place in `QueueTerms`.
    function _checkTerms(QueueTerms calldata terms) private view {
        require(terms.delay <= LIFETIME_S_MAX, WrongTerms(7));
        require(terms.notBefore <= type(uint64).max, WrongTerms(8));
        require(terms.lifetime != 0 && terms.lifetime <= LIFETIME_S_MAX, WrongTerms(9));
        require(terms.callbackGas != 0 && terms.callbackGas <= CALLBACK_GAS_MAX, WrongTerms(10));
        require(terms.reward <= type(uint96).max, WrongTerms(11));
        if (terms.condition == Condition.Event) _sequenceOf(terms.subject); // it exists
        // A dead-letter queue is older than its queue, so that they form no ring.
        if (terms.deadLetter != 0) {
            bool isOpen = _openQueue(terms.deadLetter).state.isOpenToBinding();
            require(isOpen || _isOwner(terms.deadLetter), WrongTerms(12));
        }
    }

    /// @inheritdoc IExchanges
    function subscribe(bytes32 queue) external {
        Queue storage book = _openQueue(queue);
        bytes32 edge = _edgeOf(SUBSCRIBING, queue, msg.sender);
        _requireNone(edge, queue);
        if (book.state.isOpenToSubscribing() || _isOwner(queue)) {
            _join(book, queue, msg.sender, edge);
        } else {
            _edges[edge] = uint256(Status.Requested);
            emit SubscriberChanged(queue, msg.sender, Status.Requested);
        }
    }

    /// @inheritdoc IExchanges
    function approveSubscriber(bytes32 queue, address subscriber) external {
        _requireOwner(queue);
        bytes32 edge = _edgeOf(SUBSCRIBING, queue, subscriber);
        _requireRequested(edge, queue);
        _join(_queues[queue], queue, subscriber, edge);
    }

    /// @inheritdoc IExchanges
    function removeSubscriber(bytes32 queue, address subscriber) external {
        _requireEither(queue, subscriber);
        bytes32 edge = _edgeOf(SUBSCRIBING, queue, subscriber);
        Status status = _farewell(edge, queue);
        uint256 place = _edges[edge] >> 8;
        delete _edges[edge];
        if (status == Status.Removed) _leave(_queues[queue], queue, place);
        emit SubscriberChanged(queue, subscriber, status);
    }

    /// @inheritdoc IExchanges
    function tidy(bytes32 queue, uint256 place) external {
        Queue storage book = _openQueue(queue);
        require(book.state.isIdle(), QueueBusy(queue));
        require(book.records[place] >> 200 != 0, NotThere(queue));
        _vacate(book, queue, place);
    }

    function _join(Queue storage book, bytes32 queue, address subscriber, bytes32 edge) private {
        QueueState state = book.state;
        uint256 place = state.end();
        require(place < SUBSCRIBERS_MAX, TooMany(queue, SUBSCRIBERS_MAX));
        _edges[edge] = uint256(Status.Approved) | place << 8;
        book.records[place] = uint160(subscriber) | state.number() << 160;
        book.state = state.withJoined();
        emit SubscriberChanged(queue, subscriber, Status.Approved);
    }

    /// @dev Who leaves while messages are held keeps its place until they are gone: they are partly its own.
    function _leave(Queue storage book, bytes32 queue, uint256 place) private {
        unchecked {
            QueueState state = book.state;
            book.state = state.withLeft();
            if (state.isIdle()) _vacate(book, queue, place);
            else book.records[place] |= (state.number() + 1) << 200;
        }
    }

    /// @dev The last one takes the place, so that the list has no hole.
    function _vacate(Queue storage book, bytes32 queue, uint256 place) private {
        unchecked {
            QueueState state = book.state;
            uint256 last = state.end() - 1;
            if (place != last) {
                uint256 moved = book.records[last];
                book.records[place] = moved;
                if (moved >> 200 == 0) {
                    bytes32 edge = _edgeOf(SUBSCRIBING, queue, address(uint160(moved)));
                    _edges[edge] = uint256(Status.Approved) | place << 8;
                }
            }
            delete book.records[last];
            book.state = state.withoutLastPlace();
        }
    }

    /* MESSAGES */

    /// @inheritdoc IExchanges
    function publish(bytes32 exchange, bytes calldata key, bytes calldata payload)
        external
        payable
        returns (uint256 sequence)
    {
        Page memory page;
        page.gasAtEntry = gasleft();
        Exchange storage book = _openExchange(exchange);
        ExchangeState state = book.state.withNextSequence();
        _requirePublisher(exchange, state);
        require(payload.length <= PAYLOAD_LENGTH_MAX, MessageTooLong(payload.length, PAYLOAD_LENGTH_MAX));
        (uint256 first, uint256 flaw) = Keys.split(key);
        require(first != 0, WrongKey(flaw));
        uint256 value = _takeFee(book, state.fee());
        book.state = state;
        sequence = state.sequence();

        bytes32[] memory queues = _choose(book, state, key[:first]);
        emit Routed(exchange, sequence, msg.sender, value, queues.length, key, payload);
        Header memory header;
        (header.exchange, header.sequence, header.publisher, header.value) = (exchange, sequence, msg.sender, value);
        _route(queues, header, key[first == key.length ? first : first + 1:], payload, page);
    }

    /// @dev Hands the message to each queue, with its share of the value.
    function _route(
        bytes32[] memory queues,
        Header memory header,
        bytes calldata key,
        bytes calldata payload,
        Page memory page
    ) private {
        unchecked {
            uint256 value = header.value;
            uint256 takers = value == 0 ? 0 : _countTakers(queues);
            if (takers == 0) _giveBack(header);
            uint256 taken;
            uint256 free;
            assembly ("memory-safe") {
                free := mload(0x40)
            }
            for (uint256 i; i < queues.length; ++i) {
                page.reserve = (queues.length - 1 - i) * (HOLD_GAS + payload.length / 2);
                header.value = 0;
                if (taken < takers && _queues[queues[i]].state.takesValue()) {
                    header.value = _shareOf(value, takers, taken++);
                }
                _arrive(queues[i], header, key, payload, page);
                // What one queue wrote into memory the next may overwrite; else long payloads would cost the square of the queues.
                assembly ("memory-safe") {
                    mstore(0x40, free)
                }
            }
            // A callback may have emptied a queue that was counted.
            for (; taken < takers; ++taken) {
                header.value = _shareOf(value, takers, taken);
                _giveBack(header);
            }
        }
    }

    function _countTakers(bytes32[] memory queues) private view returns (uint256 takers) {
        unchecked {
            for (uint256 i; i < queues.length; ++i) {
                if (_queues[queues[i]].state.takesValue()) ++takers;
            }
        }
    }

    function _requirePublisher(bytes32 exchange, ExchangeState state) private view {
        if (state.isOpen() || _isOwner(exchange)) return;
        bytes32 edge = _edgeOf(PUBLISHING, exchange, msg.sender);
        require(_statusOf(edge) == Status.Approved, NotApproved(exchange, msg.sender));
    }

    function _takeFee(Exchange storage book, uint256 fee) private returns (uint256 value) {
        require(msg.value >= fee, ValueTooLow(msg.value, fee));
        if (fee != 0) book.balance += fee;
        return msg.value - fee;
    }

    /* MONEY */

    /// @inheritdoc IExchanges
    function fund(bytes32 queue) external payable {
        _openQueue(queue).money += msg.value;
        emit QueueFunded(queue, msg.value);
    }

    /// @inheritdoc IExchanges
    function collect(address to) external returns (uint256 amount) {
        amount = _credits[msg.sender];
        delete _credits[msg.sender];
        return _payOut(bytes32(bytes20(msg.sender)), to, amount);
    }

    /// @inheritdoc IExchanges
    function collectExchange(bytes32 exchange, address to) external returns (uint256 amount) {
        _requireOwner(exchange);
        amount = _exchanges[exchange].balance;
        delete _exchanges[exchange].balance;
        return _payOut(exchange, to, amount);
    }

    /// @inheritdoc IExchanges
    function collectQueue(bytes32 queue, address to) external returns (uint256 amount) {
        _requireOwner(queue);
        amount = _queues[queue].money & type(uint128).max;
        _queues[queue].money -= amount;
        return _payOut(queue, to, amount);
    }

    /* VIEWS */

    /// @inheritdoc IExchanges
    function getExchange(bytes32 exchange) external view returns (ExchangeView memory) {
        Exchange storage book = _openExchange(exchange);
        ExchangeState state = book.state;
        return ExchangeView({
            owner: _ownerOf(exchange),
            open: state.isOpen(),
            hashMayBeNothing: state.hashMayBeNothing(),
            fee: state.fee(),
            sequence: state.sequence(),
            bindings: book.bindings.length,
            balance: book.balance
        });
    }

    /// @inheritdoc IExchanges
    function getQueue(bytes32 queue) external view returns (QueueView memory queueView) {
        Queue storage book = _openQueue(queue);
        QueueState state = book.state;
        queueView.owner = _ownerOf(queue);
        queueView.terms = _termsOf(book, state);
        (queueView.messages, queueView.subscribers, queueView.places) = (state.number(), state.live(), state.end());
        (queueView.held, queueView.pending, queueView.delivering) =
        (state.held(), state.isPending(), state.isDelivering());
        (queueView.fund, queueView.heldValue) = (book.money & type(uint128).max, book.money >> 128);
        if (state.isPending()) queueView.next = book.pending;
        else if (state.isLifo() && state.held() != 0) queueView.next = book.heldAt[_placeOf(state, state.held() - 1)];
        else queueView.next = book.heldAt[state.first()];
    }

    function _termsOf(Queue storage book, QueueState state) private view returns (QueueTerms memory terms) {
        terms.openBinding = state.isOpenToBinding();
        terms.openSubscribing = state.isOpenToSubscribing();
        terms.openValue = state.isOpenToValue();
        terms.lifo = state.isLifo();
        terms.condition = Condition(state.condition());
        (terms.subject, terms.threshold, terms.deadLetter) = (book.subject, book.threshold, book.deadLetter);
        terms.delay = book.terms >> 32 & type(uint32).max;
        terms.notBefore = book.terms >> 64 & type(uint64).max;
        terms.lifetime = book.terms & type(uint32).max;
        terms.callbackGas = state.callbackGas();
        terms.reward = book.terms >> 128;
    }

    /// @inheritdoc IExchanges
    function getBinding(bytes32 exchange, uint256 place) external view returns (bytes32 queue, string memory key) {
        Binding storage binding = _openExchange(exchange).bindings[place];
        return (binding.queue, string(binding.key));
    }

    /// @inheritdoc IExchanges
    function getSubscriber(bytes32 queue, uint256 place)
        external
        view
        returns (address subscriber, uint256 joined, uint256 left)
    {
        uint256 record = _openQueue(queue).records[place];
        return (address(uint160(record)), record >> 160 & 0xffffffffff, record >> 200);
    }

    /// @inheritdoc IExchanges
    function getPublisherStatus(bytes32 exchange, address publisher) external view returns (Status) {
        return _statusOf(_edgeOf(PUBLISHING, exchange, publisher));
    }

    /// @inheritdoc IExchanges
    function getBindingStatus(bytes32 exchange, bytes32 queue, string calldata key) external view returns (Status) {
        return _statusOf(_edgeOf(exchange, queue, keccak256(bytes(key))));
    }

    /// @inheritdoc IExchanges
    function getSubscriberStatus(bytes32 queue, address subscriber) external view returns (Status) {
        return _statusOf(_edgeOf(SUBSCRIBING, queue, subscriber));
    }

    /// @inheritdoc IExchanges
    function getCredit(address account) external view returns (uint256) {
        return _credits[account];
    }
}
