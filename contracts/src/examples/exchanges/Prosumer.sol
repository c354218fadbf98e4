// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {PubSub} from "../../exchanges/PubSub.sol";
import {IExchanges} from "../../interfaces/IExchanges.sol";

/// @title Energy distribution (DPS paper, 4.3): a prosumer buys energy from the grid and sells its own
/// @notice Offers come with the price as their value: those who listen to the grid are paid for hearing of it, and keep count of what is offered.
contract Prosumer is PubSub {
    bytes32 public immutable grid;
    /// @notice Watt hours that others have offered.
    uint256 public offered;

    constructor(IExchanges exchanges_, address owner_, bytes32 grid_) PubSub(exchanges_, owner_) {
        grid = grid_;
    }

    /// @notice Offers energy to a district, e.g. `district-2`, or to all by `district-*`.
    function offer(string calldata district, uint256 wattHours) external payable onlyOwner {
        exchanges.publish{value: msg.value}(grid, bytes(district), abi.encode(wattHours));
    }

    function _onMessage(
        bytes32 queue,
        uint256 number,
        bytes32 exchange,
        address publisher,
        bytes calldata key,
        bytes calldata payload
    ) internal override {
        if (publisher != address(this)) offered += abi.decode(payload, (uint256));
        super._onMessage(queue, number, exchange, publisher, key, payload);
    }
}
