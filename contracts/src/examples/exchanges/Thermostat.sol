// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Member} from "../../exchanges/Member.sol";
import {MessagePublisher} from "../../exchanges/MessagePublisher.sol";
import {MessageSubscriber} from "../../exchanges/MessageSubscriber.sol";
import {IExchanges} from "../../interfaces/IExchanges.sol";

/// @title Internet of things (DPS paper, 4.1): sensors publish, actuators subscribe
/// @notice A sensor publishes its reading under a key such as `kitchen-temperature`.
contract Sensor is MessagePublisher {
    bytes32 public immutable exchange;
    bytes private _key;

    constructor(IExchanges exchanges_, address owner_, bytes32 exchange_, string memory key_)
        MessagePublisher(exchanges_, owner_)
    {
        exchange = exchange_;
        _key = bytes(key_);
    }

    function report(int256 reading) external onlyOwner {
        exchanges.publish(exchange, _key, abi.encode(reading));
    }
}

/// @notice A heater is on while the last reading it heard of is below its target.
contract Heater is MessageSubscriber {
    int256 public immutable target;
    bool public isOn;

    constructor(IExchanges exchanges_, address owner_, int256 target_) Member(exchanges_, owner_) {
        target = target_;
    }

    function _onMessage(bytes32, uint256, bytes32, address, bytes calldata, bytes calldata payload) internal override {
        isOn = abi.decode(payload, (int256)) < target;
    }
}
