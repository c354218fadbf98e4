// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Test} from "forge-std/Test.sol";
import {Vm} from "forge-std/Vm.sol";

import {ITopics} from "../interfaces/ITopics.sol";
import {ITopicsLens} from "../interfaces/ITopicsLens.sol";
import {Outcome} from "../types/Outcome.sol";
import {Policy} from "../types/Policy.sol";
import {Terms, TermsLibrary} from "../types/Terms.sol";

/// @title DeployedTopics: what a Foundry test asks of a `Topics`, wherever that comes from
/// @notice Prices as on a quiet day, and the question every test asks: what became of that delivery?
abstract contract DeployedTopics is Test {
    Policy internal constant DEFAULT_POLICY = Policy.wrap(0);
    /// @dev Above every index: append to the list.
    uint256 internal constant NO_HOLE = type(uint256).max;
    uint256 internal constant DEPOSIT = 0.1 ether;

    ITopics internal topics;
    ITopicsLens internal lens;

    error NoSuchDelivery(bytes32 topic, uint256 sequence, uint256 index);

    function setUp() public virtual {
        (topics, lens) = deployTopics();
        vm.fee(1 gwei);
        vm.txGasPrice(2 gwei);
    }

    function deployTopics() internal virtual returns (ITopics, ITopicsLens);

    /// @notice Terms that take everything a default policy allows, at up to 1,000 gwei.
    function anyTerms() internal pure returns (Terms) {
        return TermsLibrary.pack(200_000, 1_000_000, TermsLibrary.MAX_SHARE);
    }

    /// @notice What became of one delivery, by the logs recorded since `vm.recordLogs`; empties them.
    function outcomeOf(bytes32 topic, uint256 sequence, uint256 index) internal returns (Outcome) {
        Vm.Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i; i < logs.length; ++i) {
            if (!_isDelivered(logs[i], topic, sequence)) continue;
            (uint256 first, uint256 remaining,, bytes memory outcomes) =
                abi.decode(logs[i].data, (uint256, uint256, uint256, bytes));
            uint256 end = first + outcomes.length + remaining;
            for (uint256 j; j < outcomes.length; ++j) {
                if (lens.indexAt(sequence, first + j, end) == index) return Outcome(uint8(outcomes[j]));
            }
            if (remaining != 0) return Outcome.Deferred;
        }
        revert NoSuchDelivery(topic, sequence, index);
    }

    function assertOutcome(bytes32 topic, uint256 sequence, uint256 index, Outcome expected) internal {
        assertEq(uint256(outcomeOf(topic, sequence, index)), uint256(expected), "outcome");
    }

    function _isDelivered(Vm.Log memory log, bytes32 topic, uint256 sequence) private view returns (bool) {
        return log.emitter == address(topics) && log.topics[0] == ITopics.Delivered.selector && log.topics[1] == topic
            && uint256(log.topics[2]) == sequence;
    }
}
