// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {FlightBoard, FlightReporter, PartnerBoard} from "../../src/examples/FlightBoard.sol";
import {TravelInsurance} from "../../src/examples/TravelInsurance.sol";
import {ITopics} from "../../src/interfaces/ITopics.sol";
import {Outcome} from "../../src/types/Outcome.sol";
import {ShippedTopics} from "../Shipped.sol";

/// @notice Both halves of the paper's Fig. 2.
contract TravelInsuranceTest is ShippedTopics {
    address private oracleA = makeAddr("oracle A");
    address private oracleB = makeAddr("oracle B");
    address private insurer = makeAddr("insurer");
    address private traveller = makeAddr("traveller");
    FlightBoard private boardA;
    TravelInsurance private insurance;
    bytes32 private topic;

    function setUp() public override {
        super.setUp();
        boardA = new FlightBoard(topics, oracleA, insurer, DEFAULT_POLICY);
        topic = boardA.topic();
        insurance = new TravelInsurance{value: 10 ether}(topics, topic);
        vm.deal(traveller, 1 ether);
    }

    /* REFUSALS */

    /// @dev Trap E4: the sample publisher of the paper's code lets anybody publish.
    function test_publish_onlyAuthorised(address stranger) public {
        vm.assume(stranger != oracleA && stranger != address(boardA));
        vm.expectRevert(abi.encodeWithSelector(FlightReporter.NotOracle.selector, stranger, oracleA));
        vm.prank(stranger);
        boardA.report("LH454", 180);

        vm.expectRevert(abi.encodeWithSelector(ITopics.NotAllowed.selector, topic, stranger));
        vm.prank(stranger);
        topics.publish(topic, 0, 0, stranger, "");
    }

    /// @dev "Allowing more than one Pub_C for the same event type is dangerous since the new Publisher can accept data from a DO_O that
    /// the original Publisher would reject." (IV-A)
    function test_admit_unapprovedPublisherRefused() public {
        address partner = vm.computeCreateAddress(address(this), vm.getNonce(address(this)));
        vm.expectRevert(abi.encodeWithSelector(FlightBoard.NotApproved.selector, partner));
        new PartnerBoard(boardA, oracleB);
    }

    function test_approve_onlyInsurer() public {
        vm.expectRevert(abi.encodeWithSelector(FlightBoard.NotInsurer.selector, oracleB, insurer));
        vm.prank(oracleB);
        boardA.approve(oracleB);
    }

    function test_report_eachBoardBelievesItsOwnOracle() public {
        PartnerBoard boardB = _admitPartner();
        vm.expectRevert(abi.encodeWithSelector(FlightReporter.NotOracle.selector, oracleA, oracleB));
        vm.prank(oracleA);
        boardB.report("LH454", 180);
    }

    function test_insure_knownDelayRefused() public {
        insurance.subscribeTo{value: DEPOSIT}(topic, anyTerms(), NO_HOLE);
        _report(boardA, oracleA, 180);
        vm.expectRevert(abi.encodeWithSelector(TravelInsurance.AlreadyLate.selector, "LH454"));
        vm.prank(traveller);
        insurance.insure{value: 1 ether}("LH454");
    }

    function test_insure_beyondReserveRefused() public {
        vm.deal(traveller, 100 ether);
        vm.expectRevert(abi.encodeWithSelector(TravelInsurance.ReserveTooLow.selector, 16 ether, 18 ether));
        vm.prank(traveller);
        insurance.insure{value: 6 ether}("LH454");
    }

    function test_claim_refusals() public {
        insurance.subscribeTo{value: DEPOSIT}(topic, anyTerms(), NO_HOLE);
        _report(boardA, oracleA, 119);
        vm.expectRevert(abi.encodeWithSelector(TravelInsurance.NotLate.selector, "LH454"));
        insurance.claim("LH454");

        _report(boardA, oracleA, 120);
        vm.expectRevert(abi.encodeWithSelector(TravelInsurance.NotInsured.selector, "LH454", address(this)));
        insurance.claim("LH454");
    }

    /* FIG. 2a */

    /// @dev "(1) the Pub_C registers itself with the PS_C (2) ... To subscribe to these on-chain events, a Sub_C calls PS_C (5), specifying
    /// the address of the Pub_C it wishes to receive events from and a deposit ... For each update received and verified by the Pub_C
    /// (7), the Pub_C calls into the EM_C (8) for distribution to the subscribers, who are notified by executing Sub_C's callback function
    /// (9)." (IV)
    function test_fig2a_registerSubscribePublish() public {
        assertEq(topic, topics.topicOf(address(boardA), "flight-delays"), "1, 2: the publisher's address leads to it");
        assertEq(lens.getTopic(topic).owner, address(boardA));

        uint256 index = insurance.subscribeTo{value: DEPOSIT}(topic, anyTerms(), NO_HOLE); // 5, 6
        vm.prank(traveller);
        insurance.insure{value: 1 ether}("LH454");

        vm.recordLogs();
        assertEq(_report(boardA, oracleA, 180), 1); // 7, 8
        assertOutcome(topic, 1, index, Outcome.Delivered); // 9
        assertTrue(insurance.isLate(keccak256("LH454")));
        assertGt(topics.getCredit(oracleA), 0, "the oracle is paid by the subscriber");

        vm.prank(traveller);
        assertEq(insurance.claim("LH454"), 3 ether);
        assertEq(traveller.balance, 3 ether);
        assertEq(insurance.promised(), 0);
    }

    /* FIG. 2b */

    /// @dev "At deployment (1), instead of calling PS_C to create a new EM_C, Publisher B calls into Publisher A to request to be added to
    /// its EM_C (2). If the insurance company has authorized Publisher B (3), Publisher A adds the new publisher (4) and returns the
    /// address of its EM_C for Publisher B to use (5). Subsequent updates from Publisher B's DO_O (6) are sent to A's event manager (7),
    /// and distributed to the same list of subscribers (8)." (IV-A)
    function test_fig2b_secondPublisherIsAdmittedByTheFirst() public {
        uint256 index = insurance.subscribeTo{value: DEPOSIT}(topic, anyTerms(), NO_HOLE);
        PartnerBoard boardB = _admitPartner(); // 1 to 4
        assertEq(boardB.topic(), topic); // 5
        assertEq(lens.getRoles(topic, address(boardB)), 1);

        vm.recordLogs();
        assertEq(_report(boardB, oracleB, 200), 1); // 6, 7
        assertOutcome(topic, 1, index, Outcome.Delivered); // 8
        assertTrue(insurance.isLate(keccak256("LH454")));
        assertGt(topics.getCredit(oracleB), 0);
        assertEq(_report(boardA, oracleA, 200), 2, "both boards number one sequence");
    }

    function _admitPartner() private returns (PartnerBoard) {
        address partner = vm.computeCreateAddress(address(this), vm.getNonce(address(this)));
        vm.prank(insurer);
        boardA.approve(partner);
        return new PartnerBoard(boardA, oracleB);
    }

    function _report(FlightReporter board, address oracle, uint64 delay) private returns (uint256) {
        vm.prank(oracle);
        return board.report("LH454", delay);
    }
}
