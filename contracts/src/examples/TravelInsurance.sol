// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Subscriber} from "../Subscriber.sol";
import {ITopics} from "../interfaces/ITopics.sol";

/// @title TravelInsurance: the subscriber of the paper's Fig. 2
/// @notice Pays three times the premium to whoever insured a flight that is reported two hours late. The report itself decides, in its
/// own transaction; no clerk and no second transaction do.
contract TravelInsurance is Subscriber {
    /// @dev Minutes.
    uint256 public constant DELAY_COVERED = 120;
    uint256 public constant PAYOUT_FACTOR = 3;

    bytes32 public immutable flightDelays;
    mapping(bytes32 flight => bool) public isLate;
    mapping(bytes32 flight => mapping(address traveller => uint256)) public premiumOf;
    /// @notice Wei that must stay here in case every insured flight is late.
    uint256 public promised;

    error AlreadyLate(string flight);
    error NotLate(string flight);
    error NotInsured(string flight, address traveller);
    error ReserveTooLow(uint256 have, uint256 need);
    error PaymentFailed(address to, uint256 amount);

    /// @notice The value sent is the first reserve.
    constructor(ITopics topics_, bytes32 flightDelays_) payable Subscriber(topics_, msg.sender) {
        flightDelays = flightDelays_;
    }

    /// @notice Insures the caller for a flight; the value sent is the premium.
    function insure(string calldata flight) external payable {
        bytes32 id = keccak256(bytes(flight));
        require(!isLate[id], AlreadyLate(flight));

        promised += msg.value * PAYOUT_FACTOR;
        require(address(this).balance >= promised, ReserveTooLow(address(this).balance, promised));
        premiumOf[id][msg.sender] += msg.value;
    }

    /// @notice Pays the caller for a late flight.
    function claim(string calldata flight) external returns (uint256 amount) {
        bytes32 id = keccak256(bytes(flight));
        require(isLate[id], NotLate(flight));
        amount = premiumOf[id][msg.sender] * PAYOUT_FACTOR;
        require(amount != 0, NotInsured(flight, msg.sender));

        promised -= amount;
        delete premiumOf[id][msg.sender];

        (bool success,) = msg.sender.call{value: amount}("");
        require(success, PaymentFailed(msg.sender, amount));
    }

    function _accepts(bytes32 topic) internal view override returns (bool) {
        return topic == flightDelays;
    }

    function _onEvent(bytes32, uint256, uint256, bytes32 flight, bytes calldata payload) internal override {
        (, uint64 delay) = abi.decode(payload, (string, uint64));
        if (delay >= DELAY_COVERED) isLate[flight] = true;
    }
}
