// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITopics} from "../../src/interfaces/ITopics.sol";
import {
    Animal,
    Burner,
    Counter,
    GasEcho,
    Noop,
    Reenterer,
    ReturnBomb,
    RevertBomb,
    Selfdestructor,
    Unsubscriber,
    WrongReturn
} from "../../src/testing/Zoo.sol";
import {Outcome} from "../../src/types/Outcome.sol";
import {PolicyLibrary} from "../../src/types/Policy.sol";
import {TermsLibrary} from "../../src/types/Terms.sol";
import {TopicTest} from "./TopicTest.sol";

/// @notice The zoo on one topic: no animal stops it, starves a neighbour or makes the sender pay.
contract HostileTest is TopicTest {
    /* ONE BY ONE */

    function test_burner() public {
        _assertHarmless(new Burner(), Outcome.Failed);
    }

    function test_revertBomb() public {
        _assertHarmless(new RevertBomb(), Outcome.Failed);
    }

    function test_returnBomb() public {
        _assertHarmless(new ReturnBomb(), Outcome.Delivered);
    }

    function test_wrongReturn() public {
        _assertHarmless(new WrongReturn(), Outcome.Delivered);
    }

    function test_unsubscriber() public {
        Unsubscriber unsubscriber = new Unsubscriber();
        _assertHarmless(unsubscriber, Outcome.Delivered);
        assertEq(holderOf(1), address(0));
        assertGt(topics.getCredit(address(unsubscriber)), 0, "the rest of its debit");
    }

    function test_selfdestructor() public {
        Selfdestructor selfdestructor = new Selfdestructor();
        vm.deal(address(selfdestructor), 1 ether);
        join(new Counter());
        join(selfdestructor);
        assertOutcomeAt(publish(), 1, Outcome.Delivered);
        assertEq(
            address(topics).balance,
            1 ether + (depositsOf(2) + topics.getCredit(payee)) * 1 gwei,
            "forced ether is nobody's"
        );
    }

    function test_reenterer() public {
        Reenterer reenterer = new Reenterer();
        reenterer.prepare(address(topics), 0, abi.encodeCall(ITopics.publish, (topic, 0, 0, payee, "")));
        topics.setRoles(topic, address(reenterer), 1);
        _assertHarmless(reenterer, Outcome.Delivered);
        assertFalse(reenterer.success());
    }

    /// forge-config: default.evm_version = "prague"
    function test_delegatedAccount() public {
        (address account, uint256 key) = makeAddrAndKey("delegated");
        vm.deal(account, DEPOSIT);
        vm.signAndAttachDelegation(address(new Counter()), key);
        vm.prank(account);
        uint256 index = topics.subscribe{value: DEPOSIT}(topic, anyTerms(), NO_HOLE);
        assertOutcomeAt(publish(), index, Outcome.Delivered);
        assertEq(Counter(payable(account)).count(), 1);
    }

    /// @dev Its delegate burns; the account itself never had code.
    /// forge-config: default.evm_version = "prague"
    function test_delegatedBurner() public {
        (address account, uint256 key) = makeAddrAndKey("delegated");
        vm.deal(account, DEPOSIT);
        vm.signAndAttachDelegation(address(new Burner()), key);
        vm.prank(account);
        uint256 index = topics.subscribe{value: DEPOSIT}(topic, anyTerms(), NO_HOLE);
        Counter counter = joinCounters(1)[0];
        assertOutcomeAt(publish(), index, Outcome.Failed);
        assertEq(counter.count(), 1);
    }

    /* ALL TOGETHER */

    /// @dev Everybody twice over, in words of eight with plain ones between, four events long.
    function test_wholeZoo() public {
        Counter[] memory counters = new Counter[](16);
        for (uint256 i; i < 16; ++i) {
            join(counters[i] = new Counter());
            join(_animal(i % 8));
        }
        for (uint256 sequence = 1; sequence <= 4; ++sequence) {
            uint256 gasBefore = gasleft();
            Page memory page = publish();
            uint256 gasUsed = gasBefore - gasleft();
            assertGt(page.credited * 1 gwei, gasUsed * tx.gasprice, "the sender pays");
            for (uint256 i; i < 16; ++i) {
                assertEq(counters[i].count(), sequence);
            }
        }
    }

    /* GAS */

    /// @dev Between refused and rich: whoever is called has its whole gas, and an accepted publish serves everybody.
    function test_starvation_shortList() public {
        _assertNeverStarved(8, 200_000);
    }

    function test_starvation_tinyCallbacks() public {
        _assertNeverStarved(3, 30_000);
    }

    function test_starvation_largeCallbacks() public {
        allowLargeCallbacks();
        _assertNeverStarved(4, 2_000_000);
    }

    function test_starvation_largestCallback() public {
        PolicyLibrary.Fields memory fields = PolicyLibrary.defaults();
        fields.callbackGas = PolicyLibrary.CALLBACK_GAS_MAX;
        topics.setPolicy(topic, PolicyLibrary.pack(fields));
        _assertNeverStarved(1, PolicyLibrary.CALLBACK_GAS_MAX * 3 / 4); // two of them, and both must fit
    }

    /// @dev Where the list does not fit, the callback at the edge is made with its whole gas or not at all.
    function test_starvation_atTheEndOfAPage() public {
        allowLargeCallbacks();
        GasEcho[] memory echoes = new GasEcho[](10);
        for (uint256 i; i < 10; ++i) {
            joinWith(new Burner(), termsOf(2_000_000), DEPOSIT_GWEI);
            joinWith(echoes[i] = new GasEcho(), termsOf(2_000_000), DEPOSIT_GWEI);
        }
        for (uint256 extra; extra < 2_200_000; extra += 39_119) {
            uint256 snapshot = vm.snapshotState();
            Page memory page = publishWithGas(FULL_GAS + extra);
            assertGt(page.remaining, 0);
            for (uint256 i; i < 10; ++i) {
                _assertWholeOrNot(page, echoes[i], 2 * i + 1, 2_000_000);
            }
            vm.revertToState(snapshot);
        }
    }

    /// @dev A crowd that leaves while it is called costs gas at the end of the page that nobody reserved: the page ends all the same.
    function test_publish_survivesACrowdOfLeavers() public {
        address[] memory creditors = new address[](121);
        for (uint256 i; i < 120; ++i) {
            Unsubscriber leaver = new Unsubscriber();
            joinWith(leaver, termsOf(80_000), DEPOSIT_GWEI);
            creditors[i] = address(leaver);
        }
        creditors[120] = payee;
        Page memory page = publishWithGas(leastGas());
        for (uint256 i; i < page.outcomes.length; ++i) {
            assertEq(uint8(page.outcomes[i]), uint8(Outcome.Delivered));
        }
        assertGt(page.outcomes.length, 0);
        assertBooksBalance(120, creditors);
    }

    /* MONEY OF NEIGHBOURS */

    /// @dev One that is served at its own price and one that is removed, in either order, do not touch each other's money.
    function test_removed_besideOneWithAPriceOfItsOwn() public {
        vm.txGasPrice(3 gwei);
        Noop poor = new Noop();
        joinWith(new Noop(), TermsLibrary.pack(200_000, 1_000, ANY_SHARE), DEPOSIT_GWEI);
        joinWith(poor, anyTerms(), FLOOR);
        joinWith(new Noop(), TermsLibrary.pack(200_000, 2_000, ANY_SHARE), DEPOSIT_GWEI);
        _raiseFloor();
        Page memory page = publish();

        assertOutcomeAt(page, 1, Outcome.Removed);
        assertEq(topics.getCredit(address(poor)), FLOOR, "its residue is its own");
        address[] memory creditors = new address[](2);
        (creditors[0], creditors[1]) = (payee, address(poor));
        assertBooksBalance(3, creditors);
        uint256 cheap = DEPOSIT_GWEI - depositAt(0);
        assertApproxEqRel(DEPOSIT_GWEI - depositAt(2), 2 * cheap, 0.1e18, "twice the price");
    }

    /* CROWDS */

    /// @dev Leavers are settled one by one. They, and burners that use a page up to its edge, must leave gas for its end.
    function test_crowd_ofLeaversAndBurners() public {
        Burner burner = new Burner();
        Counter counter = joinCounters(1)[0];
        for (uint256 i; i < 300; ++i) {
            join(new Unsubscriber());
        }
        for (uint256 i; i < 200; ++i) {
            joinWith(burner, termsOf(2_300), DEPOSIT_GWEI);
        }
        _assertServedByPages(counter);
    }

    /// @dev The same, where one that is called last makes all those leave that were served before.
    function test_crowd_thatLeavesAtOnce() public {
        allowLargeCallbacks();
        for (uint256 i; i < 100; ++i) {
            join(new Noop());
        }
        Crowd crowd = new Crowd();
        for (uint256 i; i < 60; ++i) {
            joinWith(crowd.add(), termsOf(2_300), DEPOSIT_GWEI);
        }
        joinWith(crowd, termsOf(2_000_000), DEPOSIT_GWEI);
        _assertServedByPages(joinCounters(1)[0]);
    }

    /// @dev Those below the floor are removed as the others can pay for it, and passed over until then.
    function test_crowd_ofThePoor() public {
        Counter counter = joinCounters(1)[0];
        for (uint256 i; i < 400; ++i) {
            joinWith(new Noop(), anyTerms(), FLOOR);
        }
        _raiseFloor();
        uint256 reserved = viewOf(topic).callbackGas;
        _assertServedByPages(counter);
        assertLe(viewOf(topic).live, 400, "nobody was removed");
        assertEq(viewOf(topic).callbackGas * 401, reserved * viewOf(topic).live);
    }

    /* STEPS */

    function _assertHarmless(Animal animal, Outcome expected) private {
        Counter[] memory before = joinCounters(1);
        uint256 index = join(animal);
        Counter[] memory behind = joinCounters(1);
        uint256 gasBefore = gasleft();
        Page memory page = publish();
        uint256 gasUsed = gasBefore - gasleft();

        assertOutcomeAt(page, index, expected);
        assertEq(before[0].count(), 1);
        assertEq(behind[0].count(), 1);
        assertGt(page.credited * 1 gwei, gasUsed * tx.gasprice, "the sender pays");
        assertApproxEqRel(depositAt(0), depositAt(2), 0.001e18, "a neighbour pays");
        address[] memory creditors = new address[](2);
        (creditors[0], creditors[1]) = (payee, address(animal));
        assertBooksBalance(3, creditors);
    }

    function _raiseFloor() private {
        PolicyLibrary.Fields memory fields = PolicyLibrary.defaults();
        fields.depositFloor = FLOOR + 1;
        topics.setPolicy(topic, PolicyLibrary.pack(fields));
    }

    function _animal(uint256 kind) private returns (Animal) {
        if (kind == 0) return new Burner();
        if (kind == 1) return new RevertBomb();
        if (kind == 2) return new ReturnBomb();
        if (kind == 3) return new WrongReturn();
        if (kind == 4) return new Unsubscriber();
        if (kind == 5) return new Selfdestructor();
        if (kind == 6) return new Reenterer();
        return new Noop();
    }

    function _assertNeverStarved(uint256 number, uint256 callbackGas) private {
        GasEcho[] memory echoes = new GasEcho[](number);
        for (uint256 i; i < number; ++i) {
            joinWith(new Burner(), termsOf(callbackGas), DEPOSIT_GWEI);
            joinWith(echoes[i] = new GasEcho(), termsOf(callbackGas), DEPOSIT_GWEI);
        }
        uint256 accepted = leastGas();
        assertLt(accepted, FULL_GAS + ENTRY_GAS, "the list must fit");
        for (uint256 extra; extra < 100_000; extra += 2_503) {
            uint256 snapshot = vm.snapshotState();
            Page memory page = publishWithGas(accepted + extra - ENTRY_GAS);
            assertEq(page.remaining, 0, string.concat("a prefix was served with extra gas of ", vm.toString(extra)));
            for (uint256 i; i < number; ++i) {
                _assertWholeOrNot(page, echoes[i], 2 * i + 1, callbackGas);
            }
            vm.revertToState(snapshot);
        }
    }

    function _assertWholeOrNot(Page memory page, GasEcho echo, uint256 index, uint256 callbackGas) private view {
        if (outcomeAt(page, index) == Outcome.Deferred) {
            assertEq(echo.gasAtEntry(), 0);
        } else {
            assertOutcomeAt(page, index, Outcome.Delivered);
            assertGe(echo.gasAtEntry() + 500, callbackGas);
            assertLe(echo.gasAtEntry(), callbackGas);
        }
    }

    function _assertServedByPages(Counter counter) private {
        Page memory page = publishWithGas(FULL_GAS);
        for (uint256 i; i < 30 && page.remaining != 0; ++i) {
            page = deliverWithGas(FULL_GAS, stranger);
        }
        assertEq(page.remaining, 0);
        assertEq(counter.count(), 1);
    }
}

/// @notice When it is called, everybody in it leaves.
contract Crowd is Animal {
    Noop[] private _members;

    function add() external returns (Noop member) {
        _members.push(member = new Noop());
    }

    function onEvent(bytes32 topic, uint256, uint256 index, bytes32, bytes calldata)
        external
        returns (bytes4 acknowledgement)
    {
        uint256 first = index - _members.length;
        for (uint256 i; i < _members.length; ++i) {
            bytes memory call = abi.encodeCall(ITopics.unsubscribe, (topic, first + i, address(this)));
            _members[i].execute(msg.sender, 0, call);
        }
    }
}
