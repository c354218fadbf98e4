// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {SamplePublisher} from "../../src/testing/SamplePublisher.sol";
import {ITopics} from "../../src/interfaces/ITopics.sol";
import {Burner, Counter, Noop, Unsubscriber} from "../../src/testing/Zoo.sol";
import {PolicyLibrary} from "../../src/types/Policy.sol";
import {TopicTest} from "./TopicTest.sol";

/// @notice Whoever pays for the transaction of a publish gets between 99 and 105 % of it back: measured on cold storage, with the
/// transaction's own 21,000 gas and calldata, at any price and number of subscribers.
contract MoneyTest is TopicTest {
    uint256 private constant KINDS = 4;
    uint16[KINDS] internal numbers = [1, 2, 8, 20];

    address internal sender = makeAddr("sender");
    bytes32[KINDS] internal direct;
    SamplePublisher[KINDS] internal publishers;
    address[] private accounts;

    /// @dev All in here, so that in a test every storage word is as an earlier transaction left it.
    function setUp() public virtual override {
        super.setUp();
        for (uint256 kind; kind < KINDS; ++kind) {
            vm.prank(sender);
            direct[kind] = topics.create(DEFAULT_POLICY, vm.toString(kind));
            vm.prank(sender);
            publishers[kind] = new SamplePublisher(topics);
            publishers[kind].register();
            _joinNoops(direct[kind], numbers[kind]);
            _joinNoops(publishers[kind].topic(), numbers[kind]);
        }
    }

    /* DIRECTLY */

    function test_reimbursement_direct() public {
        _assertWholeDirectly(payee, 1 gwei, PAYLOAD);
        _assertWholeDirectly(payee, 100 gwei, PAYLOAD);
    }

    function test_reimbursement_directWithoutPayee() public {
        _assertWholeDirectly(address(0), 1 gwei, PAYLOAD);
        _assertWholeDirectly(address(0), 100 gwei, PAYLOAD);
    }

    function test_reimbursement_directTenKilobytes() public {
        _assertWholeDirectly(payee, 1 gwei, _tenKilobytes());
        _assertWholeDirectly(payee, 100 gwei, _tenKilobytes());
        _assertWholeDirectly(payee, 1 gwei, new bytes(10_000));
    }

    /// @dev With EIP-7623's floor under the price of calldata.
    /// forge-config: default.evm_version = "prague"
    function test_reimbursement_directOverTheCalldataFloor() public {
        _assertWholeDirectly(payee, 1 gwei, _tenKilobytes());
        _assertWholeDirectly(address(0), 100 gwei, PAYLOAD);
    }

    /* THROUGH A CONTRACT */

    function test_reimbursement_throughContract() public {
        _assertWholeThroughContract(payee, 1 gwei, PAYLOAD);
        _assertWholeThroughContract(payee, 100 gwei, PAYLOAD);
    }

    function test_reimbursement_throughContractWithoutPayee() public {
        _assertWholeThroughContract(address(0), 1 gwei, PAYLOAD);
        _assertWholeThroughContract(address(0), 100 gwei, PAYLOAD);
    }

    function test_reimbursement_throughContractTenKilobytes() public {
        _assertWholeThroughContract(payee, 1 gwei, _tenKilobytes());
        _assertWholeThroughContract(address(0), 100 gwei, _tenKilobytes());
    }

    /* ODD PRICES */

    /// @dev Below a gwei for all of it, each pays at most one unit too much.
    function test_reimbursement_tinyPrice() public {
        for (uint256 kind; kind < KINDS; ++kind) {
            (uint256 credit, uint256 fee) =
                _measure(sender, address(topics), _publishing(kind, payee, PAYLOAD), 0.001 gwei);
            assertGe(credit * 1 gwei, fee * 99 / 100);
            assertLe(credit, fee * 105 / 100 / 1 gwei + 1 + numbers[kind]);
        }
    }

    function test_reimbursement_noPrice() public {
        topic = direct[3];
        uint256 before = depositsOf(20);
        setPrice(0);
        (uint256 credit,) = _send(sender, address(topics), _publishing(3, payee, PAYLOAD));
        assertEq(credit, 0);
        assertEq(depositsOf(20), before);
    }

    /// @dev A tip above the topic's cap is the sender's own.
    function test_reimbursement_tipAboveTheCap() public {
        vm.fee(10 gwei);
        vm.txGasPrice(50 gwei);
        (uint256 credit, uint256 fee) = _send(sender, address(topics), _publishing(2, payee, PAYLOAD));
        _assertRatio(credit, fee * 13 / 50, "at base fee and 3 gwei");
    }

    /* BAD COMPANY */

    /// @dev Hostile subscribers pay what they burn; who leaves or is removed does not make the sender pay.
    function test_reimbursement_amongHostile() public {
        topic = direct[1];
        for (uint256 i; i < 4; ++i) {
            join(new Burner());
            join(new Unsubscriber());
            join(new Counter());
        }
        (uint256 credit, uint256 fee) = _measure(sender, address(topics), _publishing(1, payee, PAYLOAD), 10 gwei);
        assertGe(credit * 1 gwei, fee * 99 / 100, "the sender pays");
    }

    /// @dev However few are served and however many fell below the floor.
    function test_reimbursement_whileOthersAreRemoved() public {
        for (uint256 kind; kind < KINDS; ++kind) {
            for (uint256 poor = 1; poor < 20; poor += 6) {
                uint256 snapshot = vm.snapshotState();
                _joinPoor(kind, poor);
                _assertWholeWhileRemoving(kind);
                vm.revertToState(snapshot);
            }
        }
    }

    /// @dev The records of those removed are in code, which cannot be forgotten.
    function test_reimbursement_whileSealedAreRemoved() public {
        for (uint256 kind; kind < KINDS; ++kind) {
            _joinPoor(kind, 16);
            topics.seal(topic);
            _assertWholeWhileRemoving(kind);
        }
    }

    /// @dev Brought below the floor by an event they had to pay, not by the owner.
    function test_reimbursement_whileBurntDownAreRemoved() public {
        for (uint256 kind; kind < KINDS; ++kind) {
            topic = direct[kind];
            _setFloor(250_000);
            for (uint256 i; i < 8; ++i) {
                joinWith(new Burner(), anyTerms(), 400_000);
            }
            setPrice(1 gwei);
            _publishAs(sender);
            assertLt(depositAt(numbers[kind]), 250_000, "not burnt down");
            _assertWholeWhileRemoving(kind);
        }
    }

    function _assertWholeWhileRemoving(uint256 kind) private {
        uint256 live = viewOf(topic).live;
        uint256 snapshot = vm.snapshotState();
        (uint256 credit, uint256 fee) = _measure(sender, address(topics), _publishing(kind, payee, PAYLOAD), 10 gwei);
        _assertRatio(credit, fee, string.concat("subscribers: ", vm.toString(numbers[kind])));
        vm.revertToState(snapshot);
        _publishAs(sender);
        assertLt(viewOf(topic).live, live, "nobody was removed");
    }

    function _joinPoor(uint256 kind, uint256 number) private {
        topic = direct[kind];
        for (uint256 i; i < number; ++i) {
            joinWith(new Noop(), anyTerms(), FLOOR);
        }
        _setFloor(FLOOR + 1);
    }

    function _setFloor(uint256 floor) private {
        PolicyLibrary.Fields memory fields = PolicyLibrary.defaults();
        fields.depositFloor = floor;
        vm.prank(sender);
        topics.setPolicy(topic, PolicyLibrary.pack(fields));
    }

    function _publishAs(address publisher) private {
        vm.prank(publisher, publisher);
        topics.publish(topic, KEY, 0, payee, PAYLOAD);
    }

    /// @dev And among empty places that somebody left behind.
    function test_reimbursement_amongHoles() public {
        topic = direct[3];
        for (uint256 i = 1; i < 20; ++i) {
            leave(Noop(payable(holderOf(i))), i);
        }
        join(new Noop());
        (uint256 credit, uint256 fee) = _measure(sender, address(topics), _publishing(3, payee, PAYLOAD), 10 gwei);
        _assertRatio(credit, fee, "among holes");
    }

    /* STEPS */

    function _assertWholeDirectly(address payee_, uint256 price, bytes memory payload) private {
        for (uint256 kind; kind < KINDS; ++kind) {
            (uint256 credit, uint256 fee) = _measure(sender, address(topics), _publishing(kind, payee_, payload), price);
            _assertRatio(credit, fee, string.concat("subscribers: ", vm.toString(numbers[kind])));
        }
    }

    function _assertWholeThroughContract(address payee_, uint256 price, bytes memory payload) private {
        for (uint256 kind; kind < KINDS; ++kind) {
            bytes memory data = abi.encodeCall(SamplePublisher.publishFor, (payload, payee_));
            (uint256 credit, uint256 fee) = _measure(sender, address(publishers[kind]), data, price);
            _assertRatio(credit, fee, string.concat("subscribers: ", vm.toString(numbers[kind])));
        }
    }

    function _assertRatio(uint256 credit, uint256 fee, string memory what) private pure {
        string memory text = string.concat(what, "; credit in % of the fee: ", vm.toString(credit * 1e11 / fee));
        assertGe(credit * 1 gwei * 100, fee * 99, text);
        assertLe(credit * 1 gwei * 100, fee * 105, text);
    }

    /// @dev Gwei credited and wei paid for one transaction, which is then undone.
    function _measure(address from, address to, bytes memory data, uint256 price)
        private
        returns (uint256 credit, uint256 fee)
    {
        uint256 snapshot = vm.snapshotState();
        vm.fee(price > 3 gwei ? price - 3 gwei : price);
        vm.txGasPrice(price);
        (credit, fee) = _send(from, to, data);
        vm.revertToState(snapshot);
    }

    function _send(address from, address to, bytes memory data) internal returns (uint256 credit, uint256 fee) {
        _coolEverything();
        vm.recordLogs();
        vm.prank(from, from);
        (bool success,) = to.call(data);
        fee = _gasOfTransaction(data) * tx.gasprice;
        assertTrue(success);
        credit = lastPage().credited;
    }

    function _coolEverything() private {
        vm.cool(address(topics));
        for (uint256 i; i < accounts.length; ++i) {
            vm.cool(accounts[i]);
        }
    }

    /// @dev Of the last call, as if a transaction had made it: intrinsic gas, refunds, the floor where there is one.
    function _gasOfTransaction(bytes memory data) private view returns (uint256 gas_) {
        uint256 used = vm.lastCallGas().gasTotalUsed;
        uint256 refund = uint64(vm.lastCallGas().gasRefunded);
        uint256 tokens;
        for (uint256 i; i < data.length; ++i) {
            tokens += data[i] == 0 ? 1 : 4;
        }
        gas_ = 21_000 + 4 * tokens + used;
        gas_ -= refund < gas_ / 5 ? refund : gas_ / 5;
        (bool hasNoFloor,) = address(0x0b).staticcall{gas: 0}("");
        if (!hasNoFloor && gas_ < 21_000 + 10 * tokens) gas_ = 21_000 + 10 * tokens;
    }

    function _publishing(uint256 kind, address payee_, bytes memory payload) internal view returns (bytes memory) {
        return abi.encodeCall(ITopics.publish, (direct[kind], 0, 0, payee_, payload));
    }

    function _tenKilobytes() private pure returns (bytes memory payload) {
        payload = new bytes(10_000);
        for (uint256 i; i < payload.length; ++i) {
            payload[i] = bytes1(uint8(i % 251 + 1));
        }
    }

    function _joinNoops(bytes32 topic_, uint256 number) private {
        for (uint256 i; i < number; ++i) {
            Noop noop = new Noop();
            noop.join{value: DEPOSIT}(topics, topic_, anyTerms(), NO_HOLE);
            accounts.push(address(noop));
        }
    }
}

/// @notice The same after a first event, when nothing is fresh any more.
contract MoneyLaterTest is MoneyTest {
    function setUp() public override {
        super.setUp();
        for (uint256 kind; kind < direct.length; ++kind) {
            _publishFirst(kind, payee);
            _publishFirst(kind, address(0));
        }
    }

    function _publishFirst(uint256 kind, address payee_) private {
        vm.startPrank(sender);
        topics.publish(direct[kind], 0, 0, payee_, PAYLOAD);
        publishers[kind].publishFor(PAYLOAD, payee_);
        vm.stopPrank();
    }
}
