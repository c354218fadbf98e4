// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Policy} from "../types/Policy.sol";
import {Terms} from "../types/Terms.sol";

/// @title Topics: events that reach contracts inside the publishing transaction
/// @notice One immutable contract without an administrator holds every topic of a chain. A publisher publishes once; each
/// subscriber contract that can pay is called in the same transaction, isolated from the others, and pays its own gas and
/// an equal share of the rest from its deposit, so that the publisher is made whole.
///
/// Theory of operation
/// - A topic's id is its owner's address (20 bytes) and the last 12 bytes of `keccak256(name)`: it can be computed
///   by anyone, and nobody can take another's.
/// - Subscriptions have a stable index. Eight deposits share a storage word; a lane holds deposit + 1 in gwei, 0 for nobody.
/// - Before a callback the worst it can cost is debited, so that nothing the callback does can spend the same ether twice.
///   After all callbacks every bill is settled at once: measured gas, plus an equal share of everything that was
///   nobody's own, times the price, rounded up to a gwei.
/// - A callback gets exactly its gas or is not made: where it does not fit any more, the rest of the list is served by
///   `deliver`, page by page, by anybody, in order; the topic publishes again when the last page is done.
/// - Callbacks run in index order from a start that rotates by eight with the sequence.
/// - Who is below the deposit floor is never called. A page removes one of them, or as many as share its base so far: those
///   pay for it, and no more than they have been debited.
///
/// Amounts are in gwei unless a name says otherwise; prices in mwei (1e6 wei).
interface ITopics {
    /* EVENTS */

    /// @notice The contract exists from this block on; everything else it says comes later.
    event TopicsDeployed(uint256 version);

    /// @notice A topic was created; the first 20 bytes of its id are its owner.
    /// @param policy 0 for the default policy
    event TopicCreated(bytes32 indexed topic, Policy policy, string name);

    /// @notice What the payload of a topic's events is from now on.
    /// @param payloadType an ABI type, e.g. `(string flight, uint64 delay)`
    event PayloadTypeChanged(bytes32 indexed topic, string payloadType);

    event PolicyChanged(bytes32 indexed topic, Policy policy);

    /// @param roles the account's roles from now on: bit 0 may publish, bit 1 may subscribe
    event RolesChanged(bytes32 indexed topic, address indexed account, uint256 roles);

    event Subscribed(bytes32 indexed topic, address indexed subscriber, uint256 index, Terms terms, uint256 deposit);

    event Funded(bytes32 indexed topic, uint256 indexed index, uint256 amount);

    event Withdrawn(bytes32 indexed topic, uint256 indexed index, address to, uint256 amount);

    /// @notice A subscription ended, by its own wish or because its deposit fell below the floor.
    event Unsubscribed(bytes32 indexed topic, address indexed subscriber, uint256 index, uint256 residue);

    /// @notice An event was published; its callbacks come after this log.
    event Published(
        bytes32 indexed topic, uint256 indexed sequence, bytes32 indexed key, address publisher, bytes payload
    );

    /// @notice What became of one page of deliveries.
    /// @param first position of the first outcome in the order of this event (see `indexAt`)
    /// @param remaining positions left for later pages; 0 when everybody was served
    /// @param credited gwei that the served subscribers paid for this page
    /// @param outcomes one `Outcome` byte per position
    event Delivered(
        bytes32 indexed topic,
        uint256 indexed sequence,
        uint256 first,
        uint256 remaining,
        uint256 credited,
        bytes outcomes
    );

    /// @notice The records of indexes `first` to `end - 1` now live in the code of `page`.
    event Sealed(bytes32 indexed topic, uint256 first, uint256 end, address page);

    event Collected(address indexed account, address to, uint256 amount);

    /* ERRORS */

    error UnknownTopic(bytes32 topic);
    error TopicExists(bytes32 topic);
    error BadName(uint256 length);
    error BadPolicy(Policy policy);
    /// @notice The terms do not fit the topic's policy or the present base fee: gas within its cap, share at least its reward, price at least that fee.
    error BadTerms(Terms terms, Policy policy, uint256 baseFee);
    error NotOwner(address have, address need);
    error NotAllowed(bytes32 topic, address account);
    error NotSubscriber(address have, address need);
    error NotSubscribed(bytes32 topic, uint256 index);
    error DepositTooLow(uint256 have, uint256 need);
    error DepositTooHigh(uint256 have, uint256 most);
    error NotWholeGwei(uint256 value);
    error StaleSequence(uint256 have, uint256 need);
    error PayloadTooLong(uint256 have, uint256 most);
    error NotEnoughGas(uint256 have, uint256 need);
    /// @notice The topic is inside a delivery; publish, deliver and seal must wait for its end.
    error Delivering(bytes32 topic);
    /// @notice Event `sequence` still has pages to deliver, from `position` on.
    error PagesPending(bytes32 topic, uint256 sequence, uint256 position);
    error NothingPending(bytes32 topic);
    error WrongEvent(bytes32 have, bytes32 need);
    error NothingToSeal(bytes32 topic);
    error NothingToCollect(address account);
    error PaymentFailed(address to, uint256 amount);

    /* TOPICS */

    /// @notice Creates a topic owned by the caller.
    /// @param policy see `PolicyLibrary.pack`; 0 for the default
    /// @param name 1 to 128 bytes
    function create(Policy policy, string calldata name) external returns (bytes32 topic);

    /// @notice Says what the payload is, by the owner, so that services can show named fields. Not enforced.
    /// @param payloadType an ABI type of at most 1,024 bytes, or empty
    function setPayloadType(bytes32 topic, string calldata payloadType) external;

    /// @notice Changes the policy, by the owner, within the bounds stated in `PolicyLibrary`. What costs a subscriber more than its
    /// terms accept does not bind it: it is skipped instead.
    function setPolicy(bytes32 topic, Policy policy) external;

    /// @notice Lists an account as publisher (1), subscriber (2), both (3) or neither (0), by the owner.
    function setRoles(bytes32 topic, address account, uint256 roles) external;

    /* SUBSCRIPTIONS */

    /// @notice Subscribes the caller; the value sent, whole gwei, is its deposit.
    /// @param terms its gas, its greatest price, and the most it pays per event beyond its own gas
    /// @param hole a free index below the end to reuse, as `findHole` tells; any other value appends
    function subscribe(bytes32 topic, Terms terms, uint256 hole) external payable returns (uint256 index);

    /// @notice Adds the value sent to a deposit; anybody may.
    function fund(bytes32 topic, uint256 index) external payable;

    /// @notice Takes part of the deposit back; what stays must be at least the topic's floor.
    function withdraw(bytes32 topic, uint256 index, uint256 amount, address to) external;

    /// @notice Ends the caller's subscription and pays the deposit out. Possible at any time, also when sealed or while being called;
    /// what an ongoing delivery gives back later is credited to the caller (`collect`).
    function unsubscribe(bytes32 topic, uint256 index, address to) external returns (uint256 residue);

    /* EVENTS */

    /// @notice Publishes an event and calls every subscriber that can pay.
    /// @param expected the number the event must get, or 0 for any
    /// @param payee who is credited what the subscribers pay; 0 leaves it with the topic for its owner
    /// @param payload at most 131,072 bytes
    function publish(bytes32 topic, bytes32 key, uint256 expected, address payee, bytes calldata payload)
        external
        returns (uint256 sequence);

    /// @notice Delivers the next page of an event that did not fit one transaction; anybody may, and is paid for it.
    /// @param key of the event, as published
    /// @param payee who is credited the gas of this page; the reward stays with the publication's payee
    /// @param payload of the event, as published
    /// @return remaining positions left for later pages
    function deliver(bytes32 topic, bytes32 key, address payee, bytes calldata payload)
        external
        returns (uint256 remaining);

    /// @notice Moves up to 760 subscription records, whole words of eight, from storage into code; anybody may.
    function seal(bytes32 topic) external returns (uint256 sealedEnd);

    /* MONEY */

    /// @notice Pays out what the caller is owed by publications, pages and ended subscriptions.
    function collect(address to) external returns (uint256 amount);

    /// @notice Pays out what publications without a payee left with the topic, to its owner's order.
    function collectTopic(bytes32 topic, address to) external returns (uint256 amount);

    /* VIEWS */

    function topicOf(address owner, string calldata name) external pure returns (bytes32 topic);

    /// @notice Gwei that an account can `collect`.
    function getCredit(address account) external view returns (uint256 amount);

    /// @notice The contents of a storage slot, for contracts and programs that read more, such as `TopicsLens`.
    function extsload(bytes32 slot) external view returns (bytes32 value);
}
