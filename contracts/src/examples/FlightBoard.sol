// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITopics} from "../interfaces/ITopics.sol";
import {Policy} from "../types/Policy.sol";

/// @notice What both flight boards share: a topic, and the one oracle each believes.
abstract contract FlightReporter {
    ITopics public immutable topics;
    address public immutable oracle;

    error NotOracle(address have, address need);

    constructor(ITopics topics_, address oracle_) {
        (topics, oracle) = (topics_, oracle_);
    }

    function topic() public view virtual returns (bytes32);

    /// @notice Publishes a delay; the oracle is paid by the subscribers.
    /// @param flight e.g. `LH454`; its hash is the routing key
    /// @param delay in minutes
    function report(string calldata flight, uint64 delay) external returns (uint256 sequence) {
        require(msg.sender == oracle, NotOracle(msg.sender, oracle));
        return topics.publish(topic(), keccak256(bytes(flight)), 0, msg.sender, abi.encode(flight, delay));
    }
}

/// @title FlightBoard: publisher A of the paper's Fig. 2
/// @notice Owns the topic of flight delays and decides who else publishes in it: those its insurer approves, and who then ask.
contract FlightBoard is FlightReporter {
    bytes32 private immutable _topic;
    address public immutable insurer;
    mapping(address publisher => bool) public isApproved;

    error NotInsurer(address have, address need);
    error NotApproved(address publisher);

    constructor(ITopics topics_, address oracle_, address insurer_, Policy policy) FlightReporter(topics_, oracle_) {
        insurer = insurer_;
        _topic = topics_.create(policy, "flight-delays");
        topics_.setPayloadType(_topic, "(string flight, uint64 delay)");
    }

    function topic() public view override returns (bytes32) {
        return _topic;
    }

    /// @notice Says that a publisher's contract, deployed or not, may be admitted.
    function approve(address publisher) external {
        require(msg.sender == insurer, NotInsurer(msg.sender, insurer));
        isApproved[publisher] = true;
    }

    /// @notice Admits the calling contract as a publisher of this board's topic.
    function admit() external returns (bytes32) {
        require(isApproved[msg.sender], NotApproved(msg.sender));
        topics.setRoles(_topic, msg.sender, 1);
        return _topic;
    }
}

/// @title PartnerBoard: publisher B of the paper's Fig. 2
/// @notice Publishes in another board's topic, which it asks to be admitted to when it is deployed.
contract PartnerBoard is FlightReporter {
    bytes32 private immutable _topic;

    constructor(FlightBoard first, address oracle_) FlightReporter(first.topics(), oracle_) {
        _topic = first.admit();
    }

    function topic() public view override returns (bytes32) {
        return _topic;
    }
}
