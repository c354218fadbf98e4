// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {StdInvariant} from "forge-std/StdInvariant.sol";
import {Test} from "forge-std/Test.sol";

import {World} from "./World.sol";

/// @notice What holds whatever anybody does, in any order. How many calls: FOUNDRY_INVARIANT_RUNS times FOUNDRY_INVARIANT_DEPTH.
contract InvariantsTest is StdInvariant, Test {
    World private world;

    function setUp() public {
        world = new World();
        bytes4[] memory selectors = new bytes4[](18);
        selectors[0] = selectors[1] = selectors[2] = World.subscribe.selector;
        selectors[3] = selectors[4] = selectors[5] = selectors[6] = World.publish.selector;
        selectors[7] = World.deliver.selector;
        selectors[8] = World.fund.selector;
        selectors[9] = World.withdraw.selector;
        selectors[10] = World.unsubscribe.selector;
        selectors[11] = World.prepare.selector;
        selectors[12] = World.seal.selector;
        selectors[13] = World.setPolicy.selector;
        selectors[14] = World.collect.selector;
        selectors[15] = World.setPrices.selector;
        selectors[16] = World.force.selector;
        selectors[17] = World.collectTopic.selector;
        targetContract(address(world));
        // Else the contract itself, or an animal, might be drawn, and pay for the gas.
        targetSender(address(0xca11e4));
        targetSelector(FuzzSelector({addr: address(world), selectors: selectors}));
    }

    /// @dev In one function, so that a step is followed by one look.
    function invariant_everything() public view {
        assertEq(world.complaint(), "", "deliveries");
        assertTrue(world.doCountersAgree(), "the logs and the subscribers disagree");
        uint256 sum = world.credits();
        for (uint256 i; i < 2; ++i) {
            (string memory wrong, uint256 owed) = world.inspect(i);
            assertEq(wrong, "", "a topic");
            sum += owed;
        }
        assertEq(sum * 1 gwei, world.held() - world.forced(), "deposits and credits are not the ether paid in");
    }
}
