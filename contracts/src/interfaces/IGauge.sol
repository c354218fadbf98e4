// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @notice A contract that remembers one field of a topic's latest event, for queues that wait for its value.
/// @dev Asked by a static call of 50,000 gas; only an answer of exactly 64 bytes counts.
interface IGauge {
    /// @return sequence the event's number; 0 while there was none
    /// @return value the field
    function latest() external view returns (uint256 sequence, int256 value);
}
