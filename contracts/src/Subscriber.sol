// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ERC165} from "@openzeppelin/contracts/utils/introspection/ERC165.sol";

import {ISubscriber} from "./interfaces/ISubscriber.sol";
import {ITopics} from "./interfaces/ITopics.sol";
import {Terms} from "./types/Terms.sol";

/// @title Subscriber: inherit from it, say which topics you listen to and what you do with an event
/// @notice Lets only `Topics` bring events, and only of accepted topics. Its owner subscribes, withdraws and ends; everything the owner
/// gets back goes where the owner says.
/// @dev A callback costs two comparisons more than your own code: owner and `Topics` never change and stand in the code, and
/// which topics are accepted is a question to you (`_accepts`), so that a comparison with an immutable can answer it.
abstract contract Subscriber is ISubscriber, ERC165 {
    ITopics public immutable topics;
    address public immutable owner;

    error NotTopics(address have, address need);
    error NotOwner(address have, address need);
    error NotAccepted(bytes32 topic);

    modifier onlyOwner() {
        require(msg.sender == owner, NotOwner(msg.sender, owner));
        _;
    }

    constructor(ITopics topics_, address owner_) {
        (topics, owner) = (topics_, owner_);
    }

    /* TO IMPLEMENT */

    /// @notice Whether events of a topic are wanted. Refused ones cannot be subscribed to and never reach `_onEvent`.
    function _accepts(bytes32 topic) internal view virtual returns (bool);

    /// @notice What to do with an event; the parameters are those of `onEvent`.
    /// @dev Runs with the exact gas of the subscription's terms. A revert undoes what was done here and nothing else.
    function _onEvent(bytes32 topic, uint256 sequence, uint256 index, bytes32 key, bytes calldata payload)
        internal
        virtual;

    /* EVENTS */

    /// @inheritdoc ISubscriber
    function onEvent(bytes32 topic, uint256 sequence, uint256 index, bytes32 key, bytes calldata payload)
        external
        returns (bytes4)
    {
        require(msg.sender == address(topics), NotTopics(msg.sender, address(topics)));
        require(_accepts(topic), NotAccepted(topic));
        _onEvent(topic, sequence, index, key, payload);
        return this.onEvent.selector;
    }

    /* SUBSCRIPTIONS */

    /// @notice Subscribes this contract; the value sent is its deposit. See `ITopics.subscribe`.
    function subscribeTo(bytes32 topic, Terms terms, uint256 hole) external payable onlyOwner returns (uint256 index) {
        require(_accepts(topic), NotAccepted(topic));
        return topics.subscribe{value: msg.value}(topic, terms, hole);
    }

    /// @notice Ends a subscription and pays its deposit out. See `ITopics.unsubscribe`.
    function unsubscribeFrom(bytes32 topic, uint256 index, address to) external onlyOwner returns (uint256 residue) {
        return topics.unsubscribe(topic, index, to);
    }

    /// @notice Takes part of a deposit back. See `ITopics.withdraw`.
    function withdrawFrom(bytes32 topic, uint256 index, uint256 amount, address to) external onlyOwner {
        topics.withdraw(topic, index, amount, to);
    }

    /// @notice Takes what `Topics` owes this contract, such as the residue of a subscription that was removed. See `ITopics.collect`.
    function collectTo(address to) external onlyOwner returns (uint256 amount) {
        return topics.collect(to);
    }

    /* VIEWS */

    /// @inheritdoc ERC165
    function supportsInterface(bytes4 interfaceId) public view virtual override returns (bool) {
        return interfaceId == type(ISubscriber).interfaceId || super.supportsInterface(interfaceId);
    }
}
