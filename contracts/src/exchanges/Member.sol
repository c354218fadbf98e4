// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IExchanges} from "../interfaces/IExchanges.sol";

/// @notice A contract that takes part in exchanges and queues for its owner.
abstract contract Member {
    IExchanges public immutable exchanges;
    address public immutable owner;

    error NotOwner(address have, address need);
    error NotExchanges(address have, address need);

    modifier onlyOwner() {
        require(msg.sender == owner, NotOwner(msg.sender, owner));
        _;
    }

    constructor(IExchanges exchanges_, address owner_) {
        (exchanges, owner) = (exchanges_, owner_);
    }

    /// @notice Takes what `Exchanges` owes this contract: shares of messages, value that came back. See `IExchanges.collect`.
    function collectTo(address to) external onlyOwner returns (uint256 amount) {
        return exchanges.collect(to);
    }
}
