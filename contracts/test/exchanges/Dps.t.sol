// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {MessagePublisher} from "../../src/exchanges/MessagePublisher.sol";
import {Member} from "../../src/exchanges/Member.sol";
import {IExchanges} from "../../src/interfaces/IExchanges.sol";
import {Listener} from "../../src/testing/Pack.sol";
import {ExchangesTest} from "./ExchangesTest.sol";

/// @notice The examples of the DPS paper, and each trap of its reference implementation.
contract DpsTest is ExchangesTest {
    string[3] private colours = ["colour-black", "colour-blue", "colour-white"];
    Listener[3] private listeners;

    function setUp() public override {
        super.setUp();
        for (uint256 i; i < 3; ++i) {
            listeners[i] = join(makeQueue(colours[i]));
        }
    }

    function assertReached(bytes memory key, uint256 black, uint256 blue, uint256 white) private {
        uint64[3] memory before = [listeners[0].count(), listeners[1].count(), listeners[2].count()];
        publish(key);
        uint256[3] memory expected = [black, blue, white];
        for (uint256 i; i < 3; ++i) {
            assertEq(listeners[i].count() - before[i], expected[i], string.concat(string(key), " in ", colours[i]));
        }
    }

    /// @dev "RK and BK must be identical to match"; "colour-#####" as the rule says it, not the figure that counts one too few.
    function test_dps_colours() public {
        assertReached("colour-black", 1, 0, 0);
        assertReached("*", 1, 1, 1);
        assertReached("colour-bl*", 1, 1, 0);
        assertReached("colour-####", 0, 1, 0);
        assertReached("colour-#####", 1, 0, 1);
        assertReached("*-*k", 1, 0, 0);
        assertReached("#olour-*l*e", 0, 1, 0);
        assertReached("*e#", 0, 0, 0);
    }

    /// @dev Footnote 1: "if the Exchange accepts also no-char as a valid value for the # regexp".
    function test_dps_hashAsNoneOrOne() public {
        exchange = exchanges.createExchange("lenient", false, true, 0);
        for (uint256 i; i < 3; ++i) {
            exchanges.requestBinding(exchange, exchanges.idOf(address(this), colours[i]), colours[i]);
        }
        assertReached("colour-#####", 1, 1, 1);
        assertReached("#colour-#blue#", 0, 1, 0);
    }

    /* TRAPS */

    /// @dev D1: every documented publish reverted.
    function test_dps_publishReachesSubscriber() public {
        publish("colour-black");
        assertEq(listeners[0].payload(), PAYLOAD);
        assertEq(listeners[0].publisher(), address(this));
        assertEq(listeners[0].exchange(), exchange);
    }

    /// @dev D2: only the first subscriber of a queue was served.
    function test_dps_allSubscribersServed() public {
        bytes32 queue = makeQueue("many");
        Listener[5] memory many;
        for (uint256 i; i < 5; ++i) {
            many[i] = join(queue);
        }
        publish("many");
        for (uint256 i; i < 5; ++i) {
            assertEq(many[i].count(), 1);
        }
    }

    /// @dev D3: `colour-bl*` delivered twice; `*` matched nothing and ignored what follows.
    function test_dps_wildcardOnce() public {
        exchanges.requestBinding(exchange, exchanges.idOf(address(this), "colour-blue"), "colour-blau");
        assertReached("colour-bl*", 1, 1, 0);
        assertReached("colour-black*", 0, 0, 0);
        assertReached("*-white", 0, 0, 1);
    }

    /// @dev D4: lengths were compared with themselves.
    function test_dps_lengthExact() public {
        assertReached("colour-bl", 0, 0, 0);
        assertReached("colour-blacks", 0, 0, 0);
    }

    /// @dev D4: a key longer than a bound one reverted.
    function test_dps_shortKeyDoesNotRevert() public {
        makeQueue("c");
        assertReached("colour-######################", 0, 0, 0);
    }

    /// @dev D5: anybody could publish through a publisher.
    function test_dps_onlyOwnerPublishes() public {
        MessagePublisher publisher = new MessagePublisher(exchanges, address(this));
        publisher.requestPublishingIn(exchange);
        exchanges.approvePublisher(exchange, address(publisher));
        vm.prank(stranger);
        vm.expectRevert(abi.encodeWithSelector(Member.NotOwner.selector, stranger, address(this)));
        publisher.publishIn(exchange, "colour-black", PAYLOAD);
        publisher.publishIn(exchange, "colour-black", PAYLOAD);
        assertEq(listeners[0].publisher(), address(publisher));
    }

    /// @dev D6: keys that nothing could address were bound.
    function test_dps_invalidBindingKeyRefused() public {
        bytes32 queue = exchanges.createQueue("queue", openTerms());
        string[6] memory keys = ["", "a b", "a_b", "a*", "#", unicode"é"];
        uint256[6] memory flaws = [uint256(0), 1, 1, 1, 0, 0];
        for (uint256 i; i < 6; ++i) {
            vm.expectRevert(abi.encodeWithSelector(IExchanges.WrongKey.selector, flaws[i]));
            exchanges.requestBinding(exchange, queue, keys[i]);
        }
        bytes memory long = new bytes(129);
        for (uint256 i; i < 129; ++i) {
            long[i] = "x";
        }
        vm.expectRevert(abi.encodeWithSelector(IExchanges.WrongKey.selector, 128));
        exchanges.requestBinding(exchange, queue, string(long));
    }

    /// @dev D7: removing left holes that were called.
    function test_dps_removeLeavesNoHole() public {
        bytes32 queue = makeQueue("many");
        Listener[4] memory many = [join(queue), join(queue), join(queue), join(queue)];
        exchanges.removeSubscriber(queue, address(many[1]));
        exchanges.removeSubscriber(queue, address(many[3]));
        exchanges.removeBinding(exchange, exchanges.idOf(address(this), "colour-black"), "colour-black");
        assertEq(exchanges.getQueue(queue).places, 2);
        assertEq(exchanges.getExchange(exchange).bindings, 3);
        assertReached("*", 0, 1, 1);
        assertEq(many[0].count() + many[2].count(), 2);
        assertEq(many[1].count() + many[3].count(), 0);
    }

    /// @dev D7: bindings were approved that nobody had asked for.
    function test_dps_approveNeedsRequest() public {
        bytes32 queue = exchanges.createQueue("closed", plainTerms());
        vm.startPrank(stranger);
        bytes32 foreign = exchanges.createExchange("foreign", false, false, 0);
        exchanges.requestBinding(foreign, queue, "asked");
        vm.stopPrank();
        vm.expectRevert(abi.encodeWithSelector(IExchanges.NotRequested.selector, foreign));
        exchanges.approveBinding(foreign, queue, "other");
        vm.expectRevert(abi.encodeWithSelector(IExchanges.NotRequested.selector, exchange));
        exchanges.approvePublisher(exchange, stranger);
        vm.expectRevert(abi.encodeWithSelector(IExchanges.NotRequested.selector, queue));
        exchanges.approveSubscriber(queue, stranger);
        exchanges.approveBinding(foreign, queue, "asked");
        assertEq(exchanges.getExchange(foreign).bindings, 1);
    }

    /* ROUTING KEYS */

    function test_routingKey_refusals() public {
        bytes[8] memory keys = [bytes(""), "a b", "a..b", ".a", "a.", unicode"ü", "a.b.c.d.e.f.g.h.i", hex"0102020000"];
        uint256[8] memory flaws = [uint256(0), 1, 2, 0, 2, 0, 16, 0];
        for (uint256 i; i < 8; ++i) {
            vm.expectRevert(abi.encodeWithSelector(IExchanges.WrongKey.selector, flaws[i]));
            publish(keys[i]);
        }
    }

    /// @dev Compiled from `colou?r-(black|white)` by `proofcast.routing.automaton`.
    function test_regularExpression() public {
        assertReached(AUTOMATON, 1, 0, 1);
        bytes32 queue = makeQueue("color-black");
        Listener listener = join(queue);
        publish(bytes.concat(AUTOMATON, ".rest"));
        assertEq(listener.key(), "rest");
    }

    function test_regularExpression_damagedMatchesNothingAndNeverReverts() public {
        for (uint256 i = 66; i < AUTOMATON.length; i += 3) {
            bytes memory damaged = AUTOMATON;
            damaged[i] = 0xff;
            exchanges.isMatch(damaged, "colour-black", false);
        }
    }

    function test_directWithManyBindings_isConstant() public {
        uint256 few = gasOf("colour-black");
        bytes32 queue = exchanges.createQueue("other", openTerms());
        for (uint256 i; i < 50; ++i) {
            exchanges.requestBinding(exchange, queue, string.concat("other-", vm.toString(i)));
        }
        assertApproxEqAbs(gasOf("colour-black"), few, 200);
    }

    function gasOf(bytes memory key) private returns (uint256 used) {
        publish(key);
        used = gasleft();
        publish(key);
        used -= gasleft();
    }

    /// @dev The contract against the definition, every reading in turn.
    function testFuzz_matchingEqualsDefinition(uint256 seed, bool hashMayBeNothing) public view {
        for (uint256 round; round < 8; ++round) {
            seed = uint256(keccak256(abi.encode(seed)));
            bytes memory key = _draw(seed, "ab-*#");
            bytes memory binding = _draw(seed >> 128, "ab-");
            bool expected = _means(key, 0, binding, 0, hashMayBeNothing);
            assertEq(exchanges.isMatch(key, string(binding), hashMayBeNothing), expected, string(key));
        }
    }

    function _draw(uint256 seed, bytes memory alphabet) private pure returns (bytes memory text) {
        text = new bytes(1 + seed % 7);
        for (uint256 i; i < text.length; ++i) {
            seed >>= 8;
            text[i] = alphabet[seed % alphabet.length];
        }
    }

    function _means(bytes memory key, uint256 i, bytes memory binding, uint256 j, bool lenient)
        private
        pure
        returns (bool)
    {
        if (i == key.length) return j == binding.length;
        if (key[i] == "#" && lenient && _means(key, i + 1, binding, j, lenient)) return true;
        if (j == binding.length) return false;
        if (key[i] == "*" && _means(key, i, binding, j + 1, lenient)) return true;
        bool reads = key[i] == "*" || key[i] == "#" || key[i] == binding[j];
        return reads && _means(key, i + 1, binding, j + 1, lenient);
    }

    bytes private constant AUTOMATON =
        hex"010f120001010101010101010101010101010101010101010101010101010101010101010101010102030401050101060701080901010a01010b010c0d010e01010100000200000000000000000000000000000000000000020000000000000000000000000000000000000000030000000000000000000000000004000000000000000000000000000000050000000000000000000000000000000600070008000000000000000000000000000000000000000000000000000600000000000009000000000000000000000a0000000000000000000b00000000000000000000000c000000000000000000000d000000000000000000000000000000000000000e00000000000000000000000f00000000000000000000000000000000000000000000100000000000000000000011000000000000000000000011000000000000000000000000000000000000000000000000";
}
