// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITopics} from "../../src/interfaces/ITopics.sol";
import {Counter, GasEcho, Noop} from "../../src/testing/Zoo.sol";
import {Outcome} from "../../src/types/Outcome.sol";
import {Policy, PolicyLibrary} from "../../src/types/Policy.sol";
import {TermsLibrary} from "../../src/types/Terms.sol";
import {TopicTest} from "./TopicTest.sol";

contract SetPolicyTest is TopicTest {
    PolicyLibrary.Fields private fields = PolicyLibrary.defaults();

    /* REFUSALS */

    function test_setPolicy_unknownTopic() public {
        vm.expectRevert(abi.encodeWithSelector(ITopics.UnknownTopic.selector, UNKNOWN));
        topics.setPolicy(UNKNOWN, boundaryPolicy());
    }

    function test_setPolicy_onlyOwner() public {
        vm.expectRevert(abi.encodeWithSelector(ITopics.NotOwner.selector, stranger, address(this)));
        vm.prank(stranger);
        topics.setPolicy(topic, boundaryPolicy());
    }

    function test_setPolicy_eachFieldHasItsBound() public {
        Policy[] memory bad = badPolicies();
        for (uint256 i; i < bad.length; ++i) {
            vm.expectRevert(abi.encodeWithSelector(ITopics.BadPolicy.selector, bad[i]));
            topics.setPolicy(topic, bad[i]);
        }
    }

    /* SUCCESSES */

    function test_setPolicy_isShown() public {
        vm.expectEmit(address(topics));
        emit ITopics.PolicyChanged(topic, boundaryPolicy());
        topics.setPolicy(topic, boundaryPolicy());
        assertEq(Policy.unwrap(viewOf(topic).policy), Policy.unwrap(boundaryPolicy()));
    }

    /// @dev What costs more binds only those who accept it.
    function test_setPolicy_rewardBindsOnlyWhoAccepts() public {
        uint256 frugal = joinWith(new Noop(), TermsLibrary.pack(200_000, 1_000_000, 500_000), DEPOSIT_GWEI);
        Counter generous = joinCounters(1)[0];
        fields.reward = 600_000;
        topics.setPolicy(topic, PolicyLibrary.pack(fields));
        Page memory page = publish();
        assertOutcomeAt(page, frugal, Outcome.PriceTooHigh);
        assertGt(depositAt(frugal) + 30_000, DEPOSIT_GWEI, "no more than a look is paid");
        assertEq(generous.count(), 1);
        assertLt(depositAt(generous.index()) + 600_000, DEPOSIT_GWEI);
    }

    /// @dev A base that is declared too high cannot drain deposits beyond the share each accepts.
    function test_setPolicy_baseGasBindsOnlyWhoAccepts() public {
        uint256 frugal = joinWith(new Noop(), TermsLibrary.pack(200_000, 1_000_000, 500_000), DEPOSIT_GWEI);
        fields.baseGas = 3_000_000;
        topics.setPolicy(topic, PolicyLibrary.pack(fields));
        assertOutcomeAt(publish(), frugal, Outcome.PriceTooHigh);
    }

    function test_setPolicy_dataFeeBindsOnlyWhoAccepts() public {
        uint256 frugal = joinWith(new Noop(), TermsLibrary.pack(200_000, 1_000_000, 500_000), DEPOSIT_GWEI);
        fields.dataFee = 1_000_000_000;
        topics.setPolicy(topic, PolicyLibrary.pack(fields));
        assertOutcomeAt(publish(), frugal, Outcome.PriceTooHigh);
    }

    /// @dev A subscription keeps the gas it asked for; newcomers get no more than the new cap.
    function test_setPolicy_capBindsNewcomersOnly() public {
        GasEcho echo = new GasEcho();
        join(echo);
        fields.callbackGas = 50_000;
        Policy policy = PolicyLibrary.pack(fields);
        topics.setPolicy(topic, policy);
        publish();
        assertGe(echo.gasAtEntry(), 199_500);
        Noop late = new Noop();
        vm.expectRevert(abi.encodeWithSelector(ITopics.BadTerms.selector, termsOf(50_001), policy, block.basefee));
        joinWith(late, termsOf(50_001), DEPOSIT_GWEI);
    }

    /// @dev Who is below a raised floor is removed before the call, and what it had is its own.
    function test_setPolicy_floorRemovesWithResidue() public {
        Counter poor = new Counter();
        uint256 index = joinWith(poor, anyTerms(), 4_000_000);
        Counter rich = joinCounters(1)[0];
        fields.depositFloor = 5_000_000;
        topics.setPolicy(topic, PolicyLibrary.pack(fields));
        Page memory page = publish();
        assertOutcomeAt(page, index, Outcome.Removed);
        assertEq(poor.count(), 0);
        assertEq(rich.count(), 1);
        assertEq(holderOf(index), address(0));
        assertEq(topics.getCredit(address(poor)), 4_000_000);
    }
}
