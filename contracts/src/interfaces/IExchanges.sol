// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @title Exchanges: messages routed by keys to queues, and from queues to contracts
/// @notice One immutable contract without an administrator holds every exchange and every queue of a chain. A publisher hands data and a
/// routing key to an exchange; every queue whose binding key matches gets the message once and delivers it to its subscribers, at once
/// or when its condition holds.
///
/// Theory of operation
/// - An id is its owner's address (20 bytes) and the last 12 bytes of `keccak256(name)`, for exchanges and queues apart.
/// - Each edge (publisher to exchange, exchange to queue by a key, subscriber to queue) is requested by the one and approved by the other
///   owner; where the other side is open, or both are the same account, the request is the approval.
/// - A message that a queue cannot deliver at once is held: the queue keeps the hash of its `Header`, remaining key and payload. Whoever
///   releases it brings these again, as they stand in the logs.
/// - A message belongs to those subscribed when it arrived, and its value is split among them; who left since is paid and not called.
/// - A callback gets exactly the queue's gas. A page of deliveries ends early only in a transaction of at least `FULL_GAS`; anybody
///   goes on with the rest by `release`, before the queue does anything else.
/// - A queue's terms never change. So a held message is released or, after its lifetime, given back: nobody can keep it from both.
///
/// Amounts are in wei, times in seconds.
interface IExchanges {
    /// @notice How far an edge has come. `Rejected` and `Removed` are told by events only; the edge is gone.
    enum Status {
        None,
        Requested,
        Approved,
        Rejected,
        Removed
    }

    /// @notice What a held message waits for.
    enum Condition {
        /// Nothing: it is delivered when it arrives.
        AtOnce,
        /// The time `notBefore`, and `delay` after its arrival.
        Time,
        /// An event of the topic `subject`, published after its arrival.
        Event,
        /// The gauge at `subject` shows more than `threshold`.
        Above,
        /// The gauge at `subject` shows less than `threshold`.
        Below,
        /// The account `subject` releases it.
        Account
    }

    /// @notice What a queue does with its messages; fixed when it is created.
    struct QueueTerms {
        /// Exchanges may bind without approval.
        bool openBinding;
        /// Anybody may subscribe without approval.
        bool openSubscribing;
        /// Value is split among its subscribers although anybody may be several of them.
        bool openValue;
        /// The newest held message is released first.
        bool lifo;
        Condition condition;
        bytes32 subject;
        int256 threshold;
        uint256 delay;
        uint256 notBefore;
        /// After so long a held message expires; at least 1, at most 10 years.
        uint256 lifetime;
        /// Exact gas of each callback, at most 4 million.
        uint256 callbackGas;
        /// Paid from the queue's fund to who releases a page or expires a message, as far as the fund reaches.
        uint256 reward;
        /// Queue that gets what expires, or 0.
        bytes32 deadLetter;
    }

    /// @notice A message without its key and payload.
    struct Header {
        bytes32 exchange;
        uint256 sequence;
        address publisher;
        uint256 value;
        uint256 number;
        /// How many were subscribed when it arrived.
        uint256 entitled;
        uint256 arrived;
        /// Number of the last event of the topic that the queue waits for, when it arrived.
        uint256 mark;
    }

    struct ExchangeView {
        address owner;
        bool open;
        bool hashMayBeNothing;
        uint256 fee;
        uint256 sequence;
        uint256 bindings;
        uint256 balance;
    }

    struct QueueView {
        address owner;
        QueueTerms terms;
        uint256 messages;
        uint256 subscribers;
        uint256 places;
        uint256 held;
        bool pending;
        bool delivering;
        uint256 fund;
        uint256 heldValue;
        bytes32 next;
    }

    /* EVENTS */

    event ExchangeCreated(bytes32 indexed exchange, bool open, bool hashMayBeNothing, uint256 fee, string name);
    event QueueCreated(bytes32 indexed queue, QueueTerms terms, string name);
    event PublisherChanged(bytes32 indexed exchange, address indexed publisher, Status status);
    event BindingChanged(bytes32 indexed exchange, bytes32 indexed queue, Status status, string key);
    event SubscriberChanged(bytes32 indexed queue, address indexed subscriber, Status status);

    /// @notice A message was published; what its queues did with it comes after this log.
    event Routed(
        bytes32 indexed exchange,
        uint256 indexed sequence,
        address indexed publisher,
        uint256 value,
        uint256 queues,
        bytes key,
        bytes payload
    );

    /// @notice A message waits in a queue, for its condition, for older ones, or for the rest of its deliveries.
    event Held(bytes32 indexed queue, uint256 indexed number, Header header);

    /// @notice One page of a message's deliveries; `outcomes` has one `Outcome` byte per place, from `first` on.
    event Handed(
        bytes32 indexed queue,
        uint256 indexed number,
        bytes32 indexed exchange,
        uint256 sequence,
        uint256 first,
        uint256 remaining,
        bytes outcomes
    );

    /// @notice A queue that holds as much as it may did not take a message.
    event Overflowed(bytes32 indexed queue, bytes32 indexed exchange, uint256 sequence);

    event Expired(bytes32 indexed queue, uint256 indexed number, bytes32 deadLetter);

    /// @notice Value that reached nobody is its publisher's again.
    event Returned(address indexed publisher, bytes32 indexed exchange, uint256 sequence, uint256 value);

    event QueueFunded(bytes32 indexed queue, uint256 amount);
    event PaidOut(address indexed account, address to, uint256 amount);

    /* ERRORS */

    error UnknownExchange(bytes32 exchange);
    error UnknownQueue(bytes32 queue);
    error NameTaken(bytes32 id);
    error WrongName(uint256 length);
    error WrongTerms(uint256 field);
    error WrongKey(uint256 position);
    error NotTheOwner(address have, address need);
    error NotApproved(bytes32 id, address account);
    error AlreadyThere(bytes32 id);
    error NotRequested(bytes32 id);
    error NotThere(bytes32 id);
    error TooMany(bytes32 id, uint256 most);
    error MessageTooLong(uint256 have, uint256 most);
    error ValueTooLow(uint256 have, uint256 need);
    error TooLittleGas(uint256 have, uint256 need);
    error QueueBusy(bytes32 queue);
    error NothingHeld(bytes32 queue);
    error WrongMessage(bytes32 have, bytes32 need);
    error NotReleasable(bytes32 queue, Condition condition);
    error IsExpired(uint256 at);
    error NotExpired(uint256 at);
    error NothingOwed(bytes32 id);
    error TransferFailed(address to, uint256 amount);

    /* EXCHANGES AND THEIR PUBLISHERS */

    /// @notice Creates an exchange owned by the caller, who may publish in it.
    /// @param open whether anybody may publish
    /// @param hashMayBeNothing whether `#` in a routing key stands for none or one character instead of exactly one
    /// @param fee what each message costs, kept for the owner: a bar against floods of an open exchange
    function createExchange(string calldata name, bool open, bool hashMayBeNothing, uint256 fee)
        external
        returns (bytes32 exchange);

    function requestPublishing(bytes32 exchange) external;

    function approvePublisher(bytes32 exchange, address publisher) external;

    /// @notice Rejects a request or ends an approval, by the exchange's owner or the publisher itself.
    function removePublisher(bytes32 exchange, address publisher) external;

    /* QUEUES AND THEIR SUBSCRIBERS */

    function createQueue(string calldata name, QueueTerms calldata terms) external returns (bytes32 queue);

    /// @notice Asks for a subscription of the caller; an open queue, or one of its own, gives it at once.
    function subscribe(bytes32 queue) external;

    function approveSubscriber(bytes32 queue, address subscriber) external;

    /// @notice Rejects a request or ends a subscription, by the queue's owner or the subscriber itself, at any time.
    function removeSubscriber(bytes32 queue, address subscriber) external;

    /// @notice Frees the place of somebody who left while messages were held; anybody may, when none is.
    function tidy(bytes32 queue, uint256 place) external;

    /* BINDINGS */

    /// @notice Asks a queue, by the exchange's owner, to be bound by a key of 1 to 128 of `a-z A-Z 0-9 -`. A pair may have several.
    function requestBinding(bytes32 exchange, bytes32 queue, string calldata key) external;

    /// @notice Approves exactly this binding, by the queue's owner.
    function approveBinding(bytes32 exchange, bytes32 queue, string calldata key) external;

    /// @notice Rejects or ends a binding, by either owner.
    function removeBinding(bytes32 exchange, bytes32 queue, string calldata key) external;

    /* MESSAGES */

    /// @notice Publishes a message: each queue with a matching binding gets it once.
    /// @param key the routing key, whose first part routes: binding characters, `*` for one or more and `#` for one of them; `*` alone
    /// reaches every queue. Up to 8 parts are divided by `.`; a part may be an automaton instead (see `Automata`).
    /// @param payload at most 65,536 bytes
    /// @dev Value beyond the exchange's fee is split among the matching queues that have subscribers and take value, to the last wei; if
    /// there is none it is the publisher's again (`collect`).
    function publish(bytes32 exchange, bytes calldata key, bytes calldata payload)
        external
        payable
        returns (uint256 sequence);

    /// @notice Delivers the next message of a queue, or goes on with one that is half delivered; anybody may, and gets the reward.
    /// @param key what is left of the routing key
    function release(bytes32 queue, Header calldata header, bytes calldata key, bytes calldata payload, address payee)
        external
        returns (bool done);

    /// @notice Gives up the oldest held message when its lifetime is over: its value is its publisher's again, and it goes to the queue's
    /// dead-letter queue, if any. Anybody may, and gets the reward; the account that a queue waits for may do so before, as a refusal.
    function expire(bytes32 queue, Header calldata header, bytes calldata key, bytes calldata payload, address payee)
        external;

    /* MONEY */

    /// @notice Adds the value sent to what a queue pays for releases; anybody may.
    function fund(bytes32 queue) external payable;

    /// @notice Pays out what the caller is owed.
    function collect(address to) external returns (uint256 amount);

    /// @notice Pays out an exchange's fees, by its owner.
    function collectExchange(bytes32 exchange, address to) external returns (uint256 amount);

    /// @notice Pays out a queue's fund, by its owner; the value of held messages is not part of it.
    function collectQueue(bytes32 queue, address to) external returns (uint256 amount);

    /* VIEWS */

    function idOf(address owner, string calldata name) external pure returns (bytes32 id);
    function getExchange(bytes32 exchange) external view returns (ExchangeView memory);
    function getQueue(bytes32 queue) external view returns (QueueView memory);
    function getBinding(bytes32 exchange, uint256 place) external view returns (bytes32 queue, string memory key);
    function getSubscriber(bytes32 queue, uint256 place)
        external
        view
        returns (address subscriber, uint256 joined, uint256 left);
    function getPublisherStatus(bytes32 exchange, address publisher) external view returns (Status);
    function getBindingStatus(bytes32 exchange, bytes32 queue, string calldata key) external view returns (Status);
    function getSubscriberStatus(bytes32 queue, address subscriber) external view returns (Status);

    /// @notice Wei that an account can `collect`.
    function getCredit(address account) external view returns (uint256 amount);

    /// @notice Whether the first part of a routing key means a binding key.
    function isMatch(bytes calldata key, string calldata binding, bool hashMayBeNothing) external pure returns (bool);

    /// @notice Whether the condition of a queue holds for a message now, and for this caller.
    function isReleasable(bytes32 queue, Header calldata header) external view returns (bool);
}
