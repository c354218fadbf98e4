// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Member} from "../../exchanges/Member.sol";
import {MessageSubscriber} from "../../exchanges/MessageSubscriber.sol";
import {IExchanges} from "../../interfaces/IExchanges.sol";

/// @title Supply chain (DPS paper, 4.5): the trail of one shipment, written by everyone who handles it
/// @notice Carriers publish under the shipment's key; the trail is a chain of hashes that a consumer compares with the logs.
contract Trail is MessageSubscriber {
    struct Station {
        address carrier;
        uint64 time;
        bytes32 report;
    }

    Station[] public stations;

    constructor(IExchanges exchanges_, address owner_) Member(exchanges_, owner_) {}

    function count() external view returns (uint256) {
        return stations.length;
    }

    function _onMessage(bytes32, uint256, bytes32, address publisher, bytes calldata, bytes calldata payload)
        internal
        override
    {
        stations.push(Station(publisher, uint64(block.timestamp), keccak256(payload)));
    }
}
