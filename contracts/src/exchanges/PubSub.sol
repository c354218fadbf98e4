// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Member} from "./Member.sol";
import {MessagePublisher} from "./MessagePublisher.sol";
import {MessageSubscriber} from "./MessageSubscriber.sol";
import {IExchanges} from "../interfaces/IExchanges.sol";

/// @title PubSub: a subscriber that passes messages on to exchanges of its own
/// @notice A message that comes with the rest `b.c` of a hierarchical key is published with that key in every exchange of this contract. Each
/// hop takes one part off the key, and a key has at most 8, so that whatever ring of exchanges there is, a message ends.
/// A forward that does not fit the callback's gas, or is refused, is deferred: anybody may `forward` it later, and bring its fee.
contract PubSub is MessagePublisher, MessageSubscriber {
    /// @dev What deferring one forward costs, with a margin.
    uint256 private constant DEFER_GAS = 45_000;
    uint256 private constant TARGETS_MAX = 8;

    bytes32[] private _targets;
    /// @notice How often a forward, named by the hash of its exchange, key and payload, is still to be made.
    mapping(bytes32 forward => uint256) public deferred;

    event ForwardDeferred(bytes32 indexed exchange, bytes key, bytes payload);

    error TooManyTargets(uint256 most);
    error NoSuchForward(bytes32 forward);

    constructor(IExchanges exchanges_, address owner_) MessagePublisher(exchanges_, owner_) {}

    /// @notice The exchanges that messages are passed on to.
    function getTargets() external view returns (bytes32[] memory) {
        return _targets;
    }

    /// @notice Passes messages on to these exchanges from now on.
    function setTargets(bytes32[] calldata targets) external onlyOwner {
        require(targets.length <= TARGETS_MAX, TooManyTargets(TARGETS_MAX));
        _targets = targets;
    }

    /// @notice Makes a forward that was deferred; anybody may. The value sent goes with it, for the exchange's fee.
    function forward(bytes32 exchange, bytes calldata key, bytes calldata payload) external payable {
        bytes32 name = keccak256(abi.encode(exchange, key, payload));
        require(deferred[name] != 0, NoSuchForward(name));
        --deferred[name];
        exchanges.publish{value: msg.value}(exchange, key, payload);
    }

    function _onMessage(bytes32, uint256, bytes32, address, bytes calldata key, bytes calldata payload)
        internal
        virtual
        override
    {
        if (key.length != 0) _passOn(key, payload);
    }

    function _passOn(bytes calldata key, bytes calldata payload) internal {
        uint256 count = _targets.length;
        for (uint256 i; i < count; ++i) {
            uint256 reserve = (count - i) * (DEFER_GAS + 20 * payload.length);
            if (gasleft() <= reserve || !_tryForward(_targets[i], key, payload, gasleft() - reserve)) {
                ++deferred[keccak256(abi.encode(_targets[i], key, payload))];
                emit ForwardDeferred(_targets[i], key, payload);
            }
        }
    }

    function _tryForward(bytes32 exchange, bytes calldata key, bytes calldata payload, uint256 gas_)
        private
        returns (bool)
    {
        try exchanges.publish{gas: gas_}(exchange, key, payload) {
            return true;
        } catch {
            return false;
        }
    }
}
