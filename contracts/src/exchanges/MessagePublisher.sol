// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Member} from "./Member.sol";
import {IExchanges} from "../interfaces/IExchanges.sol";

/// @title MessagePublisher: inherit from it to publish in exchanges, or let your owner do it
contract MessagePublisher is Member {
    constructor(IExchanges exchanges_, address owner_) Member(exchanges_, owner_) {}

    /// @notice Asks an exchange to let this contract publish. See `IExchanges.requestPublishing`.
    function requestPublishingIn(bytes32 exchange) external onlyOwner {
        exchanges.requestPublishing(exchange);
    }

    /// @notice Publishes; the value sent goes with the message. See `IExchanges.publish`.
    function publishIn(bytes32 exchange, bytes calldata key, bytes calldata payload)
        external
        payable
        onlyOwner
        returns (uint256 sequence)
    {
        return exchanges.publish{value: msg.value}(exchange, key, payload);
    }
}
