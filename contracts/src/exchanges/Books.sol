// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IExchanges} from "../interfaces/IExchanges.sol";
import {ITopics} from "../interfaces/ITopics.sol";
import {ExchangeState} from "../types/ExchangeState.sol";
import {QueueState} from "../types/QueueState.sol";

/// @notice What is stored of exchanges and queues, and the rules every entry point shares.
abstract contract Books is IExchanges {
    struct Binding {
        bytes key;
        bytes32 queue;
    }

    struct Exchange {
        ExchangeState state;
        uint256 balance;
        /// All bindings, for keys with wildcards.
        Binding[] bindings;
        /// The queues bound by a key's hash, for direct keys.
        mapping(bytes32 keyHash => bytes32[]) direct;
    }

    struct Queue {
        QueueState state;
        /// Fund 128 | value of held messages 128, from the lowest bit.
        uint256 money;
        /// Lifetime 32 | delay 32 | notBefore 64 | reward 128, from the lowest bit.
        uint256 terms;
        bytes32 subject;
        int256 threshold;
        bytes32 deadLetter;
        /// The message that is half delivered, and where it stands: place 24 | served 24.
        bytes32 pending;
        uint256 pendingPlace;
        /// Hashes of held messages by their place.
        mapping(uint256 place => bytes32) heldAt;
        /// Subscriptions: subscriber 160 | number of the last message before it joined 40 | of the first after it left 40, or 0.
        mapping(uint256 place => uint256) records;
    }

    uint256 internal constant NAME_LENGTH_MAX = 128;
    /// @dev Kinds of edges; no exchange has such an id, so that those of bindings differ.
    uint256 internal constant PUBLISHING = 1;
    uint256 internal constant SUBSCRIBING = 2;

    ITopics public immutable topics;

    uint256 internal _serial;
    mapping(bytes32 => Exchange) internal _exchanges;
    mapping(bytes32 => Queue) internal _queues;
    /// @dev Edges by kind and ends: status 8 | place 40 | place in the list of its key 40, from the lowest bit.
    mapping(bytes32 => uint256) internal _edges;
    mapping(address => uint256) internal _credits;

    constructor(ITopics topics_) {
        topics = topics_;
    }

    /* RULES */

    function _openExchange(bytes32 exchange) internal view returns (Exchange storage book) {
        book = _exchanges[exchange];
        require(book.state.exists(), UnknownExchange(exchange));
    }

    function _openQueue(bytes32 queue) internal view returns (Queue storage book) {
        book = _queues[queue];
        require(book.state.exists(), UnknownQueue(queue));
    }

    function _isOwner(bytes32 id) internal view returns (bool) {
        return msg.sender == _ownerOf(id);
    }

    function _requireOwner(bytes32 id) internal view {
        require(_isOwner(id), NotTheOwner(msg.sender, _ownerOf(id)));
    }

    /// @dev Either the owner of the one side or the account on the other.
    function _requireEither(bytes32 id, address other) internal view {
        require(_isOwner(id) || msg.sender == other, NotTheOwner(msg.sender, _ownerOf(id)));
    }

    function _ownerOf(bytes32 id) internal pure returns (address) {
        return address(bytes20(id));
    }

    function _claimName(string calldata name) internal view returns (bytes32) {
        uint256 length = bytes(name).length;
        require(length != 0 && length <= NAME_LENGTH_MAX, WrongName(length));
        return idOf(msg.sender, name);
    }

    /// @inheritdoc IExchanges
    function idOf(address owner, string calldata name) public pure returns (bytes32) {
        return bytes32(bytes20(owner)) | bytes32(uint256(keccak256(bytes(name))) & type(uint96).max);
    }

    /* EDGES */

    /// @dev Between an account and an exchange (`PUBLISHING`) or a queue (`SUBSCRIBING`).
    function _edgeOf(uint256 kind, bytes32 id, address account) internal pure returns (bytes32) {
        return keccak256(abi.encode(kind, id, account));
    }

    function _edgeOf(bytes32 exchange, bytes32 queue, bytes32 keyHash) internal pure returns (bytes32) {
        return keccak256(abi.encode(exchange, queue, keyHash));
    }

    function _statusOf(bytes32 edge) internal view returns (Status) {
        return Status(_edges[edge] & 0xff);
    }

    function _requireRequested(bytes32 edge, bytes32 id) internal view {
        require(_statusOf(edge) == Status.Requested, NotRequested(id));
    }

    function _requireNone(bytes32 edge, bytes32 id) internal view {
        require(_edges[edge] == 0, AlreadyThere(id));
    }

    /// @dev What the end of an edge is called.
    function _farewell(bytes32 edge, bytes32 id) internal view returns (Status) {
        Status status = _statusOf(edge);
        require(status != Status.None, NotThere(id));
        return status == Status.Requested ? Status.Rejected : Status.Removed;
    }

    /* MONEY */

    function _credit(address account, uint256 amount) internal {
        unchecked {
            _credits[account] += amount; // no more than all ether
        }
    }

    function _giveBack(Header memory header) internal {
        if (header.value == 0) return;
        _credit(header.publisher, header.value);
        emit Returned(header.publisher, header.exchange, header.sequence, header.value);
        header.value = 0;
    }

    function _payOut(bytes32 id, address to, uint256 amount) internal returns (uint256) {
        require(amount != 0, NothingOwed(id));
        emit PaidOut(msg.sender, to, amount);
        (bool success,) = to.call{value: amount}("");
        require(success, TransferFailed(to, amount));
        return amount;
    }
}
