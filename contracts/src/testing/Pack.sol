// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IExchanges} from "../interfaces/IExchanges.sol";
import {IMessageSubscriber} from "../interfaces/IMessageSubscriber.sol";

// The pack: subscribers of queues that are plain or hostile, to try an exchange with. Anybody may drive them, so they belong in tests and
// demonstrations and never hold money that matters.

/// @notice What each can do besides being called: as it is told.
abstract contract PackAnimal is IMessageSubscriber {
    receive() external payable virtual {}

    /// @notice Calls anything as this animal and hands on the answer, or the revert.
    function execute(address target, uint256 value, bytes calldata data) external payable returns (bytes memory) {
        (bool success, bytes memory returned) = target.call{value: value}(data);
        if (!success) {
            assembly ("memory-safe") {
                revert(add(returned, 32), mload(returned))
            }
        }
        return returned;
    }

    function subscribe(IExchanges exchanges, bytes32 queue) external {
        exchanges.subscribe(queue);
    }
}

/// @notice The cheapest subscriber there is.
contract QuietListener is PackAnimal {
    function onMessage(bytes32, uint256, bytes32, address, bytes calldata, bytes calldata)
        external
        returns (bytes4 acknowledgement)
    {}
}

/// @notice Remembers how often it was called, and the last message.
contract Listener is PackAnimal {
    uint64 public count;
    uint64 public number;
    address public publisher;
    bytes32 public exchange;
    bytes public key;
    bytes public payload;

    function onMessage(
        bytes32,
        uint256 number_,
        bytes32 exchange_,
        address publisher_,
        bytes calldata key_,
        bytes calldata payload_
    ) external returns (bytes4) {
        (count, number, publisher, exchange) = (count + 1, uint64(number_), publisher_, exchange_);
        (key, payload) = (key_, payload_);
        return this.onMessage.selector;
    }
}

/// @notice Does what it was told beforehand: burn, bomb, or make a call while it is called.
contract Trickster is PackAnimal {
    enum Trick {
        Burn,
        RevertBomb,
        ReturnBomb,
        Call
    }

    Trick public trick;
    address public target;
    bytes public data;
    uint64 public count;
    bool public success;
    bytes public returned;
    uint256 public gasAtEntry;

    constructor(Trick trick_) {
        trick = trick_;
    }

    function prepare(address target_, bytes calldata data_) external {
        (target, data) = (target_, data_);
    }

    function onMessage(bytes32, uint256, bytes32, address, bytes calldata, bytes calldata) external returns (bytes4) {
        Trick trick_ = trick;
        if (trick_ == Trick.Call) {
            gasAtEntry = gasleft();
            ++count;
            (success, returned) = target.call(data);
        }
        assembly {
            switch trick_
            case 0 { invalid() }
            case 1 { revert(0, 280000) }
            case 2 { return(0, 280000) }
        }
        return this.onMessage.selector;
    }
}
