// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Test} from "forge-std/Test.sol";
import {Vm} from "forge-std/Vm.sol";

import {ITopics} from "../../src/interfaces/ITopics.sol";
import {ITopicsLens} from "../../src/interfaces/ITopicsLens.sol";
import {Animal, Burner, Counter} from "../../src/testing/Zoo.sol";
import {Outcome} from "../../src/types/Outcome.sol";
import {Access, Policy, PolicyLibrary} from "../../src/types/Policy.sol";
import {Terms, TermsLibrary} from "../../src/types/Terms.sol";
import {Shipped} from "../Shipped.sol";

/// @notice One topic of the test's own, and what its tests say again and again.
abstract contract TopicTest is Test {
    /// @dev One `Delivered` log.
    struct Page {
        bytes32 topic;
        uint256 sequence;
        uint256 first;
        uint256 remaining;
        uint256 credited;
        bytes outcomes;
    }

    Policy internal constant DEFAULT_POLICY = Policy.wrap(0);
    uint256 internal constant NO_HOLE = type(uint256).max;
    uint256 internal constant DEPOSIT = 0.1 ether;
    /// @dev Gas with which a publish is accepted however long the list is: 13 sixteenths of EIP-7825's cap.
    uint256 internal constant FULL_GAS = uint256(1 << 24) * 13 / 16;
    /// @dev For the way into the contract, before it looks at its gas.
    uint256 internal constant ENTRY_GAS = 2_000;
    uint256 internal constant DEPOSIT_GWEI = DEPOSIT / 1 gwei;
    uint256 internal constant DEPOSIT_MAX = (1 << 31) - 1;
    /// @dev Of the default policy, in gwei.
    uint256 internal constant FLOOR = 10_000;
    /// @dev In gwei and mwei: more than anybody will ask.
    uint256 internal constant ANY_SHARE = (1 << 39) - 1;
    uint256 internal constant PRICE_MAX = (1 << 31) - 1;
    bytes32 internal constant UNKNOWN = "nobody's";
    bytes32 internal constant KEY = "key";
    bytes internal constant PAYLOAD = "payload";

    address internal payee = makeAddr("payee");
    address internal stranger = makeAddr("stranger");
    ITopics internal topics;
    ITopicsLens internal lens;
    bytes32 internal topic;

    receive() external payable {}

    function setUp() public virtual {
        topics = Shipped.topics();
        lens = Shipped.topicsLens(topics);
        vm.fee(1 gwei);
        vm.txGasPrice(2 gwei);
        vm.deal(stranger, 10 ether);
        topic = topics.create(DEFAULT_POLICY, "topic");
    }

    /* SUBSCRIPTIONS */

    function join(Animal animal) internal returns (uint256 index) {
        return joinWith(animal, anyTerms(), DEPOSIT_GWEI);
    }

    function joinWith(Animal animal, Terms terms, uint256 deposit) internal returns (uint256 index) {
        return animal.join{value: deposit * 1 gwei}(topics, topic, terms, NO_HOLE);
    }

    function joinCounters(uint256 number) internal returns (Counter[] memory counters) {
        counters = new Counter[](number);
        for (uint256 i; i < number; ++i) {
            join(counters[i] = new Counter());
        }
    }

    /// @dev Terms that take everything a default policy allows, at up to 1,000 gwei.
    function anyTerms() internal pure returns (Terms) {
        return termsOf(200_000);
    }

    function termsOf(uint256 callbackGas) internal pure returns (Terms) {
        return TermsLibrary.pack(callbackGas, 1_000_000, ANY_SHARE);
    }

    function leave(Animal animal, uint256 index) internal {
        animal.execute(address(topics), 0, leaving(index, address(animal)));
    }

    function leaving(uint256 index, address to) internal view returns (bytes memory call) {
        return abi.encodeCall(ITopics.unsubscribe, (topic, index, to));
    }

    /* WHAT THE TOPIC SHOWS */

    function depositAt(uint256 index) internal view returns (uint256 deposit) {
        (,, deposit) = lens.getSubscription(topic, index);
    }

    function holderOf(uint256 index) internal view returns (address subscriber) {
        (subscriber,,) = lens.getSubscription(topic, index);
    }

    function termsAt(uint256 index) internal view returns (Terms terms) {
        (, terms,) = lens.getSubscription(topic, index);
    }

    function rolesOf(bytes32 topic_, address account) internal view returns (uint256) {
        return lens.getRoles(topic_, account);
    }

    function holeOf(bytes32 topic_) internal view returns (uint256) {
        return lens.findHole(topic_);
    }

    function indexAt(uint256 sequence, uint256 position, uint256 end) internal view returns (uint256) {
        return lens.indexAt(sequence, position, end);
    }

    function quote(uint256 payloadLength, uint256 gasPrice) internal view returns (ITopicsLens.Quote memory) {
        return lens.quotePublish(topic, payloadLength, gasPrice);
    }

    function pendingOf(bytes32 topic_) internal view returns (ITopicsLens.PendingView memory) {
        return lens.getPending(topic_);
    }

    function viewOf(bytes32 topic_) internal view returns (ITopicsLens.TopicView memory) {
        return lens.getTopic(topic_);
    }

    /* EVENTS */

    function publish() internal returns (Page memory) {
        vm.recordLogs();
        topics.publish(topic, KEY, 0, payee, PAYLOAD);
        return lastPage();
    }

    /// @dev With about so much gas inside the contract.
    function publishWithGas(uint256 gas_) internal returns (Page memory) {
        vm.recordLogs();
        topics.publish{gas: gas_ + ENTRY_GAS}(topic, KEY, 0, payee, PAYLOAD);
        return lastPage();
    }

    function deliverWithGas(uint256 gas_, address carrier) internal returns (Page memory) {
        vm.recordLogs();
        topics.deliver{gas: gas_ + ENTRY_GAS}(topic, KEY, carrier, PAYLOAD);
        return lastPage();
    }

    /// @dev The last page in the logs recorded since `vm.recordLogs`; empties them.
    function lastPage() internal returns (Page memory page) {
        Vm.Log[] memory logs = vm.getRecordedLogs();
        for (uint256 i = logs.length; i-- > 0;) {
            if (logs[i].topics[0] == ITopics.Delivered.selector) return parsePage(logs[i]);
        }
        revert("no page was delivered");
    }

    function parsePage(Vm.Log memory log) internal pure returns (Page memory page) {
        (page.topic, page.sequence) = (log.topics[1], uint256(log.topics[2]));
        (page.first, page.remaining, page.credited, page.outcomes) =
            abi.decode(log.data, (uint256, uint256, uint256, bytes));
    }

    /// @dev `Deferred` where the page did not come so far.
    function outcomeAt(Page memory page, uint256 index) internal view returns (Outcome) {
        uint256 end = page.first + page.outcomes.length + page.remaining;
        for (uint256 i; i < page.outcomes.length; ++i) {
            if (indexAt(page.sequence, page.first + i, end) == index) return Outcome(uint8(page.outcomes[i]));
        }
        return Outcome.Deferred;
    }

    function assertOutcomeAt(Page memory page, uint256 index, Outcome expected) internal view {
        assertEq(uint256(outcomeAt(page, index)), uint256(expected), string.concat("outcome at ", vm.toString(index)));
    }

    /// @dev The least gas with which a publish is accepted: what is refused with tells what is missing.
    function leastGas() internal returns (uint256) {
        uint256 tried = 100_000;
        try topics.publish{gas: tried}(topic, KEY, 0, payee, PAYLOAD) {
            revert("accepted with too little gas");
        } catch (bytes memory reason) {
            assertEq(bytes4(reason), ITopics.NotEnoughGas.selector);
            (uint256 have, uint256 need) = this.parseHaveNeed(reason);
            return tried + need - have;
        }
    }

    function parseHaveNeed(bytes calldata reason) external pure returns (uint256 have, uint256 need) {
        return abi.decode(reason[4:], (uint256, uint256));
    }

    /* MONEY */

    /// @dev A gas price that is all base fee.
    function setPrice(uint256 price) internal {
        vm.fee(price);
        vm.txGasPrice(price);
    }

    /// @dev Gwei the topic's subscribers hold, of the first `end` indexes.
    function depositsOf(uint256 end) internal view returns (uint256 sum) {
        for (uint256 i; i < end; ++i) {
            sum += depositAt(i);
        }
    }

    /// @dev All ether that the contract holds is somebody's: deposits of this topic, credits of these accounts, the topic's own.
    function assertBooksBalance(uint256 end, address[] memory creditors) internal view {
        uint256 sum = depositsOf(end) + viewOf(topic).credit;
        for (uint256 i; i < creditors.length; ++i) {
            sum += topics.getCredit(creditors[i]);
        }
        assertEq(sum * 1 gwei, address(topics).balance, "deposits and credits are not the ether held");
    }

    /* POLICIES */

    /// @dev Every field at its bound.
    function boundaryPolicy() internal pure returns (Policy) {
        return PolicyLibrary.pack(_boundaryFields());
    }

    /// @dev No gas, too much gas, too high a floor; an unknown access; no mark, a stray bit, nothing else at all.
    function badPolicies() internal pure returns (Policy[] memory policies) {
        policies = new Policy[](8);
        PolicyLibrary.Fields memory fields = _boundaryFields();
        fields.callbackGas = 0;
        policies[0] = PolicyLibrary.pack(fields);
        fields.callbackGas = 8_000_001;
        policies[1] = PolicyLibrary.pack(fields);
        (fields.callbackGas, fields.depositFloor) = (8_000_000, 10_000_001);
        policies[2] = PolicyLibrary.pack(fields);
        uint256 good = Policy.unwrap(boundaryPolicy());
        policies[3] = Policy.wrap(good | 3 << 216);
        policies[4] = Policy.wrap(good | 3 << 218);
        policies[5] = Policy.wrap(good & ~uint256(1 << 220));
        policies[6] = Policy.wrap(good | 1 << 221);
        policies[7] = Policy.wrap(1);
    }

    function _boundaryFields() private pure returns (PolicyLibrary.Fields memory) {
        return PolicyLibrary.Fields({
            callbackGas: 8_000_000,
            reward: type(uint32).max,
            depositFloor: 10_000_000,
            baseGas: type(uint24).max,
            publisherGas: type(uint24).max,
            tokenGas: type(uint8).max,
            floorTokenGas: type(uint8).max,
            tipCap: type(uint32).max,
            dataFee: type(uint32).max,
            publishing: Access.Asked,
            subscribing: Access.Asked
        });
    }

    /* PAGES */

    /// @dev From now on callbacks of up to 2 million gas, so that a few fill a page.
    function allowLargeCallbacks() internal {
        PolicyLibrary.Fields memory fields = PolicyLibrary.defaults();
        fields.callbackGas = 2_400_000;
        topics.setPolicy(topic, PolicyLibrary.pack(fields));
    }

    /// @dev A list that does not fit one transaction: of every two, one burns 2 million and one counts.
    function joinLongList(uint256 pairs) internal returns (Counter[] memory counters) {
        allowLargeCallbacks();
        counters = new Counter[](pairs);
        for (uint256 i; i < pairs; ++i) {
            joinWith(new Burner(), termsOf(2_000_000), DEPOSIT_GWEI);
            joinWith(counters[i] = new Counter(), termsOf(2_000_000), DEPOSIT_GWEI);
        }
    }
}
