// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @notice A contract that owns topics whose policy says `Access.Asked`.
/// @dev Asked by a static call of 50,000 gas; only an answer of exactly 32 bytes that equals 1 admits.
interface ITopicOwner {
    function mayPublish(bytes32 topic, address account) external view returns (bool);
    function maySubscribe(bytes32 topic, address account) external view returns (bool);
}
