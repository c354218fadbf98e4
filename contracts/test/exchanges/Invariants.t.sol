// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {StdInvariant} from "forge-std/StdInvariant.sol";
import {Test} from "forge-std/Test.sol";

import {ExchangesWorld} from "./ExchangesWorld.sol";

/// @notice What holds of exchanges and queues whatever anybody does: all ether is somebody's, and no held message is lost.
contract ExchangesWorldTest is StdInvariant, Test {
    ExchangesWorld private world;

    function setUp() public {
        world = new ExchangesWorld();
        bytes4[] memory selectors = new bytes4[](12);
        selectors[0] = selectors[1] = selectors[2] = ExchangesWorld.publish.selector;
        selectors[3] = selectors[4] = ExchangesWorld.toggle.selector;
        selectors[5] = selectors[6] = ExchangesWorld.release.selector;
        selectors[7] = ExchangesWorld.expire.selector;
        selectors[8] = ExchangesWorld.wait.selector;
        selectors[9] = ExchangesWorld.fund.selector;
        selectors[10] = ExchangesWorld.collect.selector;
        selectors[11] = ExchangesWorld.tidy.selector;
        targetContract(address(world));
        targetSender(address(0xca11e4));
        targetSelector(FuzzSelector({addr: address(world), selectors: selectors}));
    }

    /// @dev The random world does what it is there for.
    function test_world_isBusy() public {
        for (uint256 seed; seed < 300; ++seed) {
            uint256 dice = uint256(keccak256(abi.encode(seed)));
            world.toggle(dice);
            world.publish(dice, uint96(dice));
            world.release(dice >> 8);
            world.expire(dice >> 8);
            world.wait(uint16(dice) % 400);
            world.tidy(dice >> 16);
        }
        assertEq(world.complaint(), "");
        assertGt(world.released(), 10);
        assertGt(world.expired(), 10);
        assertGt(world.pages(), 3);
    }

    function invariant_nothingIsLost() public view {
        assertEq(world.complaint(), "");
    }
}
