// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Subscriber} from "../Subscriber.sol";
import {ITopics} from "../interfaces/ITopics.sol";

/// @title HybridSubscriber: the urgent part on the chain, the rest by a service
/// @notice A door that closes for everybody in the transaction that announces a stolen key, at the price of one storage write. A service
/// that hears of the same event takes its time to find out which key it was, bars it and opens the door again.
contract HybridSubscriber is Subscriber {
    bytes32 public immutable stolenKeys;
    address private immutable _operator;

    /// @dev One slot that is never empty, so that a callback writes it for 2,900 gas: number of the last event heard and
    /// of the last one the service has dealt with, both plus 1.
    uint128 private _heard = 1;
    uint128 private _handled = 1;
    mapping(address account => bool) public isBarred;

    error NotOperator(address have, address need);
    error NotHeard(uint256 have, uint256 need);

    constructor(ITopics topics_, bytes32 stolenKeys_, address operator) Subscriber(topics_, msg.sender) {
        (stolenKeys, _operator) = (stolenKeys_, operator);
    }

    /// @notice The second half: bars the keys of all events up to `sequence`, and opens the door if that was the last.
    function complete(uint256 sequence, address[] calldata stolen) external {
        require(msg.sender == _operator, NotOperator(msg.sender, _operator));
        require(sequence < _heard, NotHeard(sequence, _heard - 1));
        for (uint256 i; i < stolen.length; ++i) {
            isBarred[stolen[i]] = true;
        }
        _handled = uint128(sequence + 1);
    }

    function isOpen() public view returns (bool) {
        return _heard == _handled;
    }

    function mayEnter(address account) external view returns (bool) {
        return isOpen() && !isBarred[account];
    }

    function _accepts(bytes32 topic) internal view override returns (bool) {
        return topic == stolenKeys;
    }

    function _onEvent(bytes32, uint256 sequence, uint256, bytes32, bytes calldata) internal override {
        _heard = uint128(sequence + 1);
    }
}
