// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Market} from "./Market.sol";

/// @title MonitorAndReact: the baseline, without a subscription
/// @notice The same bidder as `MarketBidder` done the old way: a service watches the chain for the price and then sends a second
/// transaction, a block later at best.
contract MonitorAndReact {
    Market public immutable market;
    address public immutable watcher;
    uint256 public immutable limit;

    error NotWatcher(address have, address need);
    error PriceTooHigh(uint256 have, uint256 need);

    /// @notice The value sent is what it buys with.
    constructor(Market market_, address watcher_, uint256 limit_) payable {
        (market, watcher, limit) = (market_, watcher_, limit_);
    }

    /// @notice Brings a price that the watcher saw in an earlier block.
    function react(uint256 price) external {
        require(msg.sender == watcher, NotWatcher(msg.sender, watcher));
        require(price <= limit, PriceTooHigh(price, limit));
        market.buy{value: price}();
    }
}
