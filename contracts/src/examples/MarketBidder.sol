// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Subscriber} from "../Subscriber.sol";
import {Market} from "./Market.sol";

/// @title MarketBidder: buys in the block of the price itself
/// @notice Holds the money and the limit, and buys as soon as the market asks no more than that: inside the transaction that publishes the
/// price, before anybody who only watches can have seen it.
contract MarketBidder is Subscriber {
    Market public immutable market;
    bytes32 private immutable _topic;
    uint256 public immutable limit;

    error PaymentFailed(address to, uint256 amount);

    /// @notice The value sent is what it buys with.
    constructor(Market market_, uint256 limit_) payable Subscriber(market_.topics(), msg.sender) {
        (market, limit) = (market_, limit_);
        _topic = market_.topic();
    }

    /// @notice Gives the owner back what was not spent.
    function close(address to) external onlyOwner {
        uint256 amount = address(this).balance;
        (bool success,) = to.call{value: amount}("");
        require(success, PaymentFailed(to, amount));
    }

    function _accepts(bytes32 topic) internal view override returns (bool) {
        return topic == _topic;
    }

    /// @dev A market that is sold out reverts, and the bidder with it: nothing is paid.
    function _onEvent(bytes32, uint256, uint256, bytes32, bytes calldata payload) internal override {
        uint256 price = abi.decode(payload, (uint256));
        if (price <= limit) market.buy{value: price}();
    }
}
