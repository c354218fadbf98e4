// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITopics} from "../../src/interfaces/ITopics.sol";
import {ITopicsLens} from "../../src/interfaces/ITopicsLens.sol";
import {Burner, Counter, Noop} from "../../src/testing/Zoo.sol";
import {Outcome} from "../../src/types/Outcome.sol";
import {PolicyLibrary} from "../../src/types/Policy.sol";
import {Terms, TermsLibrary} from "../../src/types/Terms.sol";
import {TopicTest} from "./TopicTest.sol";

/// @notice What `quotePublish` says comes true.
contract QuoteTest is TopicTest {
    /* REFUSALS */

    function test_quote_unknownTopic() public {
        topic = UNKNOWN;
        vm.expectRevert(abi.encodeWithSelector(ITopics.UnknownTopic.selector, UNKNOWN));
        this.quoteNow();
    }

    function test_indexAt_noSuchPosition() public {
        vm.expectRevert(abi.encodeWithSelector(ITopicsLens.NoSuchPosition.selector, 0, 0));
        lens.indexAt(1, 0, 0);
        vm.expectRevert(abi.encodeWithSelector(ITopicsLens.NoSuchPosition.selector, 16, 9));
        lens.indexAt(1, 16, 9);
    }

    function quoteNow() external view returns (uint256) {
        return quote(PAYLOAD.length, tx.gasprice).served;
    }

    /* SUCCESSES */

    function test_quote_nobody() public view {
        assertEq(quote(PAYLOAD.length, tx.gasprice).outcomes.length, 0);
        assertEq(quote(PAYLOAD.length, tx.gasprice).served, 0);
        assertEq(quote(PAYLOAD.length, tx.gasprice).mostCredited, 0);
    }

    function test_quote_tellsEveryOutcome() public {
        _joinMixture();
        vm.fee(1 gwei + 1);
        bytes memory expected = quote(PAYLOAD.length, tx.gasprice).outcomes;
        Page memory page = publish();
        for (uint256 i; i < expected.length; ++i) {
            assertEq(uint8(expected[i]), uint8(outcomeAt(page, i)));
        }
    }

    /// @dev Also who is removed and who must wait for it, which depends on the order of this event.
    function test_quote_tellsWhoIsRemoved() public {
        for (uint256 i; i < 24; ++i) {
            Terms terms = i % 6 == 1 ? TermsLibrary.pack(200_000, 1_500, ANY_SHARE) : anyTerms();
            joinWith(new Noop(), terms, i % 3 == 1 ? DEPOSIT_GWEI : FLOOR);
        }
        _raiseFloor();
        for (uint256 i; i < 8; ++i) {
            bytes memory expected = quote(PAYLOAD.length, tx.gasprice).outcomes;
            Page memory page = publish();
            for (uint256 j; j < expected.length; ++j) {
                assertEq(uint8(expected[j]), uint8(outcomeAt(page, j)));
            }
        }
        assertEq(viewOf(topic).live, 8);
    }

    /// @dev Whether a callback reverts is its own affair, and whether there is code may change.
    function test_quote_callsAreDelivered() public {
        join(new Burner());
        vm.prank(stranger);
        topics.subscribe{value: DEPOSIT}(topic, anyTerms(), NO_HOLE);
        assertEq(quote(PAYLOAD.length, tx.gasprice).outcomes, hex"0101");
    }

    /// @dev The gas limit is enough for everybody; nobody pays more than was told.
    function testFuzz_quote_isEnough(uint256 number, uint256 length, bool burns) public {
        number = bound(number, 1, 24);
        bytes memory payload = new bytes(bound(length, 0, 2_000));
        for (uint256 i; i < number; ++i) {
            if (burns) join(new Burner());
            else join(new Counter());
        }
        uint256 gasLimit = quote(payload.length, tx.gasprice).gasLimit;
        uint256 mostCredited = quote(payload.length, tx.gasprice).mostCredited;
        assertEq(quote(payload.length, tx.gasprice).served, number);
        vm.recordLogs();
        topics.publish{gas: gasLimit - 21_000 - 16 * (164 + payload.length)}(topic, KEY, 0, payee, payload);
        Page memory page = lastPage();
        assertEq(page.remaining, 0);
        assertLe(page.credited, mostCredited);
    }

    /// @dev Who is not sure to fit one transaction is told so; those told to be served are.
    function test_quote_deferred() public {
        joinLongList(10);
        uint256 served = quote(PAYLOAD.length, tx.gasprice).served;
        assertGt(served, 0);
        assertLt(served, 20);
        assertEq(uint8(quote(PAYLOAD.length, tx.gasprice).outcomes[19]), uint8(Outcome.Deferred));
        assertEq(quote(PAYLOAD.length, tx.gasprice).gasLimit, 1 << 24);
        assertGe(publishWithGas(FULL_GAS).outcomes.length, served);
    }

    function test_quote_atAnotherPrice() public {
        joinWith(new Noop(), anyTerms(), 1_000_000);
        vm.fee(100 gwei);
        assertEq(quote(PAYLOAD.length, 100 gwei).outcomes, abi.encodePacked(uint8(Outcome.Unfunded)));
        vm.fee(1 gwei);
        assertEq(quote(PAYLOAD.length, 1 gwei).outcomes, abi.encodePacked(uint8(Outcome.Delivered)));
    }

    function _joinMixture() private {
        join(new Counter());
        Noop leaver = new Noop();
        join(leaver);
        joinWith(new Noop(), anyTerms(), 100_000);
        joinWith(new Noop(), TermsLibrary.pack(200_000, 1_000, ANY_SHARE), DEPOSIT_GWEI);
        joinWith(new Noop(), anyTerms(), FLOOR);
        joinWith(new Noop(), TermsLibrary.pack(200_000, 1_000_000, 1), DEPOSIT_GWEI);
        joinWith(new Noop(), TermsLibrary.pack(200_000, 1_500, ANY_SHARE), DEPOSIT_GWEI);
        for (uint256 i; i < 6; ++i) {
            join(new Counter());
        }
        leave(leaver, 1);
        _raiseFloor();
    }

    function _raiseFloor() private {
        PolicyLibrary.Fields memory fields = PolicyLibrary.defaults();
        fields.depositFloor = FLOOR + 1;
        topics.setPolicy(topic, PolicyLibrary.pack(fields));
    }
}
