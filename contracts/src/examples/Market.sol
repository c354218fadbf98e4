// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITopics} from "../interfaces/ITopics.sol";
import {Policy} from "../types/Policy.sol";

/// @title Market: sells one lot at a price that its seller publishes
/// @notice The first to pay the price of the day has the lot.
contract Market {
    ITopics public immutable topics;
    bytes32 public immutable topic;
    address public immutable seller;
    uint256 public price;
    address public buyer;

    error NotSeller(address have, address need);
    error NoPrice();
    error Sold(address buyer);
    error WrongPayment(uint256 have, uint256 need);
    error PaymentFailed(address to, uint256 amount);

    constructor(ITopics topics_, Policy policy) {
        (topics, seller) = (topics_, msg.sender);
        topic = topics_.create(policy, "lot-price");
        topics_.setPayloadType(topic, "(uint256 price)");
    }

    /// @notice Sets the price and tells everybody; a subscriber may buy before this call returns.
    function offer(uint256 price_) external returns (uint256 sequence) {
        require(msg.sender == seller, NotSeller(msg.sender, seller));
        require(buyer == address(0), Sold(buyer));
        price = price_;
        return topics.publish(topic, 0, 0, msg.sender, abi.encode(price_));
    }

    function buy() external payable {
        require(price != 0, NoPrice());
        require(buyer == address(0), Sold(buyer));
        require(msg.value == price, WrongPayment(msg.value, price));
        buyer = msg.sender;
    }

    /// @notice Pays the seller.
    function settle() external {
        uint256 amount = address(this).balance;
        (bool success,) = seller.call{value: amount}("");
        require(success, PaymentFailed(seller, amount));
    }
}
