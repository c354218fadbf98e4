// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {ITopics} from "../../src/interfaces/ITopics.sol";
import {Animal, Burner, Counter, Noop, Reenterer} from "../../src/testing/Zoo.sol";
import {Outcome} from "../../src/types/Outcome.sol";
import {PolicyLibrary} from "../../src/types/Policy.sol";
import {Terms, TermsLibrary} from "../../src/types/Terms.sol";
import {TopicTest} from "./TopicTest.sol";

/// @notice Every entry point, called from inside a callback: by the one that is called, and by its neighbours in the same word of eight,
/// served before it or waiting behind it.
contract ReentryTest is TopicTest {
    /// @dev Indexes of one word: one already served, the one that re-enters, one that is still waiting.
    uint256 private constant SERVED = 1;
    uint256 private constant ACTOR = 3;
    uint256 private constant WAITING = 5;
    uint256 private constant AMOUNT = 1_234;

    Reenterer private actor = new Reenterer();
    Animal[] private animals;

    function setUp() public override {
        super.setUp();
        allowLargeCallbacks();
        vm.deal(address(actor), 10 ether);
    }

    /* REFUSALS */

    function test_publish_whileDelivering() public {
        topics.setRoles(topic, address(actor), 3);
        _refuses(abi.encodeCall(ITopics.publish, (topic, KEY, 0, payee, PAYLOAD)));
    }

    function test_deliver_whileDelivering() public {
        _refuses(abi.encodeCall(ITopics.deliver, (topic, KEY, payee, PAYLOAD)));
    }

    function test_seal_whileDelivering() public {
        _refuses(abi.encodeCall(ITopics.seal, (topic)));
    }

    function test_deliver_insideAPage() public {
        joinLongList(6);
        joinWith(actor, termsOf(1_000_000), DEPOSIT_GWEI);
        actor.prepare(address(topics), 0, abi.encodeCall(ITopics.deliver, (topic, KEY, payee, PAYLOAD)));
        Page memory page = publishWithGas(FULL_GAS);
        while (page.remaining != 0) page = deliverWithGas(FULL_GAS, payee);
        assertEq(actor.count(), 1);
        assertEq(actor.returned(), abi.encodeWithSelector(ITopics.Delivering.selector, topic));
    }

    /* BY ITSELF */

    function test_subscribe_byItself() public {
        _inEveryWord(_subscribeByItself);
    }

    function _subscribeByItself() internal {
        leave(animals[SERVED], SERVED);
        uint256 end = viewOf(topic).end;
        _reenter(DEPOSIT, abi.encodeCall(ITopics.subscribe, (topic, anyTerms(), SERVED)));
        assertEq(abi.decode(actor.returned(), (uint256)), end, "nothing fills a hole while delivering");
        assertEq(actor.count(), 1, "who joins inside an event is not served it");
        animals.push(actor);
        _assertEverythingComesOut();
    }

    function test_fund_byItself() public {
        _inEveryWord(_fundByItself);
    }

    function _fundByItself() internal {
        uint256 before = address(topics).balance;
        _reenter(AMOUNT * 1 gwei, abi.encodeCall(ITopics.fund, (topic, ACTOR)));
        assertEq(address(topics).balance, before + AMOUNT * 1 gwei);
        _assertEverythingComesOut();
    }

    function test_withdraw_byItself() public {
        _inEveryWord(_withdrawByItself);
    }

    function _withdrawByItself() internal {
        _reenter(0, abi.encodeCall(ITopics.withdraw, (topic, ACTOR, AMOUNT, stranger)));
        assertEq(stranger.balance, 10 ether + AMOUNT * 1 gwei);
        _assertEverythingComesOut();
    }

    function test_unsubscribe_byItself() public {
        _inEveryWord(_unsubscribeByItself);
    }

    function _unsubscribeByItself() internal {
        _reenter(0, leaving(ACTOR, stranger));
        uint256 back = (stranger.balance - 10 ether) / 1 gwei + topics.getCredit(address(actor));
        assertLt(DEPOSIT_GWEI - back, 500_000, "more than 250,000 gas at 2 gwei");
        assertEq(holderOf(ACTOR), address(0));
        _assertEverythingComesOut();
    }

    function test_collect_byItself() public {
        topics.publish(topic, KEY, 0, address(actor), PAYLOAD);
        _inEveryWord(_collectByItself);
    }

    function _collectByItself() internal {
        topics.publish(topic, KEY, 0, address(actor), PAYLOAD);
        uint256 owed = topics.getCredit(address(actor));
        _reenter(0, abi.encodeCall(ITopics.collect, (stranger)));
        assertEq(stranger.balance, 10 ether + owed * 1 gwei);
        assertEq(topics.getCredit(address(actor)), 0);
        _assertEverythingComesOut();
    }

    /* BY A NEIGHBOUR */

    function test_fund_byNeighbours() public {
        _inEveryWord(_fundServed);
        _inEveryWord(_fundWaiting);
    }

    function _fundServed() internal {
        _fundNeighbour(SERVED);
    }

    function _fundWaiting() internal {
        _fundNeighbour(WAITING);
    }

    function _fundNeighbour(uint256 index) private {
        uint256 charge = _chargeWithout(index);
        _reenterAs(index, AMOUNT * 1 gwei, abi.encodeCall(ITopics.fund, (topic, index)));
        assertApproxEqRel(DEPOSIT_GWEI + AMOUNT - depositAt(index), charge, 0.05e18, "the neighbour's funds are gone");
        _assertEverythingComesOut();
    }

    function test_withdraw_byNeighbours() public {
        _inEveryWord(_withdrawServed);
        _inEveryWord(_withdrawWaiting);
    }

    function _withdrawServed() internal {
        _withdrawNeighbour(SERVED);
    }

    function _withdrawWaiting() internal {
        _withdrawNeighbour(WAITING);
    }

    function _withdrawNeighbour(uint256 index) private {
        uint256 charge = _chargeWithout(index);
        _reenterAs(index, 0, abi.encodeCall(ITopics.withdraw, (topic, index, AMOUNT, stranger)));
        assertEq(stranger.balance, 10 ether + AMOUNT * 1 gwei);
        assertApproxEqRel(DEPOSIT_GWEI - AMOUNT - depositAt(index), charge, 0.05e18, "withdrawn twice, or not at all");
        _assertEverythingComesOut();
    }

    function test_unsubscribe_byNeighbours() public {
        _inEveryWord(_unsubscribeServed);
        _inEveryWord(_unsubscribeWaiting);
    }

    function _unsubscribeServed() internal {
        _unsubscribeNeighbour(SERVED);
    }

    function _unsubscribeWaiting() internal {
        _unsubscribeNeighbour(WAITING);
    }

    /// @dev Who leaves while waiting is served this one event, or not at all and pays nothing.
    function _unsubscribeNeighbour(uint256 index) private {
        uint256 charge = _chargeWithout(index);
        _reenterAs(index, 0, leaving(index, stranger));
        _assertBooks();
        uint256 back = (stranger.balance - 10 ether) / 1 gwei + topics.getCredit(address(animals[index]));
        if (Counter(payable(address(animals[index]))).count() == 0) charge = 0;
        assertApproxEqAbs(DEPOSIT_GWEI - back, charge, charge / 20, "the leaver's money");
        assertEq(holderOf(index), address(0), "it came back");
        _assertEverythingComesOut();
    }

    function test_subscribe_byNeighbour() public {
        _inEveryWord(_subscribeNeighbour);
    }

    function _subscribeNeighbour() internal {
        _reenterAs(WAITING, DEPOSIT, abi.encodeCall(ITopics.subscribe, (topic, anyTerms(), NO_HOLE)));
        assertEq(Counter(payable(address(animals[WAITING]))).count(), 1);
        animals.push(animals[WAITING]);
        _assertEverythingComesOut();
    }

    /// @dev Leaves and comes back inside the same callback: a new index, and the old one stays empty.
    function test_unsubscribeThenSubscribe_byNeighbour() public {
        _inEveryWord(_replaceNeighbour);
    }

    function _replaceNeighbour() internal {
        Replacer replacer = new Replacer();
        animals[WAITING].execute(address(topics), 0, leaving(WAITING, address(this)));
        replacer.join{value: DEPOSIT}(topics, topic, anyTerms(), WAITING);
        animals[WAITING] = replacer;
        actor.prepare(
            address(replacer), DEPOSIT, abi.encodeCall(Replacer.replace, (topics, topic, WAITING, anyTerms()))
        );
        publish();
        assertTrue(actor.success());
        _assertBooks();
        assertEq(holderOf(WAITING), address(0), "it came back");
        animals.push(replacer);
        _assertEverythingComesOut();
    }

    /// @dev A neighbour that was debited, left, and is then not reached any more, must not come back by its refund.
    function test_unsubscribe_byNeighbourBeyondThePage() public {
        Noop leaver = new Noop();
        joinWith(actor, termsOf(2_400_000), DEPOSIT_GWEI);
        for (uint256 i = 1; i < 7; ++i) {
            joinWith(new Burner(), termsOf(2_400_000), DEPOSIT_GWEI);
        }
        joinWith(leaver, termsOf(2_400_000), DEPOSIT_GWEI);
        bytes memory call = abi.encodeCall(Animal.execute, (address(topics), 0, leaving(7, address(leaver))));
        actor.prepare(address(leaver), 0, call);
        Page memory page = publishWithGas(FULL_GAS);
        assertGt(page.remaining, 0, "the page must end before the leaver");
        deliverWithGas(FULL_GAS, payee);

        assertEq(holderOf(7), address(0), "it came back");
        assertEq(address(leaver).balance + topics.getCredit(address(leaver)) * 1 gwei, DEPOSIT);
        address[] memory creditors = new address[](2);
        (creditors[0], creditors[1]) = (payee, address(leaver));
        assertBooksBalance(8, creditors);
    }

    /// @dev A deposit grows above a lane's bound when it is funded while its debit is out. The next debit and fund must not run into the
    /// neighbour's lane.
    function test_fund_neverOverflowsALane() public {
        PolicyLibrary.Fields memory fields = PolicyLibrary.defaults();
        fields.callbackGas = PolicyLibrary.CALLBACK_GAS_MAX;
        topics.setPolicy(topic, PolicyLibrary.pack(fields));
        joinWith(actor, TermsLibrary.pack(PolicyLibrary.CALLBACK_GAS_MAX, PRICE_MAX, ANY_SHARE), DEPOSIT_MAX);
        uint256 neighbour = join(new Counter());
        _fundInside(260 gwei);
        assertTrue(actor.success());
        assertGt(depositAt(0), DEPOSIT_MAX);
        uint256 before = depositAt(neighbour);
        _fundInside(500 gwei);
        assertLe(depositAt(neighbour), before);
        address[] memory creditors = new address[](2);
        (creditors[0], creditors[1]) = (payee, address(actor));
        assertBooksBalance(2, creditors);
    }

    function _fundInside(uint256 price) private {
        uint256 amount = 2 ether;
        vm.deal(address(actor), amount);
        setPrice(price);
        actor.prepare(address(topics), amount, abi.encodeCall(ITopics.fund, (topic, 0)));
        publish();
    }

    /* BY THE ONE WHO IS PAID */

    /// @dev The payment comes after everything else, so what is taken again must be there.
    function test_withdraw_againWhenPaid() public {
        Taker taker = _joinTaker();
        _take(taker, abi.encodeCall(ITopics.withdraw, (topic, 0, AMOUNT, address(taker))));
        assertTrue(taker.success());
        assertEq(address(taker).balance, 2 * AMOUNT * 1 gwei);
        assertEq(depositAt(0), DEPOSIT_GWEI - 2 * AMOUNT);

        _take(taker, abi.encodeCall(ITopics.withdraw, (topic, 0, DEPOSIT_GWEI / 2, address(taker))));
        assertFalse(taker.success());
        assertEq(bytes4(taker.returned()), ITopics.DepositTooLow.selector);
        assertEq(address(taker).balance + depositAt(0) * 1 gwei, DEPOSIT);
    }

    function test_unsubscribe_againWhenPaid() public {
        Taker taker = _joinTaker();
        _take(taker, leaving(0, address(taker)));
        assertEq(taker.returned(), abi.encodeWithSelector(ITopics.NotSubscribed.selector, topic, 0));
        assertEq(address(taker).balance, DEPOSIT);
    }

    function test_collect_againWhenPaid() public {
        Taker taker = _joinTaker();
        topics.publish(topic, KEY, 0, address(taker), PAYLOAD);
        uint256 owed = topics.getCredit(address(taker));
        _take(taker, abi.encodeCall(ITopics.collect, (address(taker))));
        assertEq(taker.returned(), abi.encodeWithSelector(ITopics.NothingToCollect.selector, taker));
        assertEq(address(taker).balance, owed * 1 gwei);
    }

    function test_collectTopic_againWhenPaid() public {
        Taker taker = new Taker();
        bytes memory creating = abi.encodeCall(ITopics.create, (DEFAULT_POLICY, "its own"));
        topic = abi.decode(taker.execute(address(topics), 0, creating), (bytes32));
        join(new Counter());
        taker.execute(address(topics), 0, abi.encodeCall(ITopics.publish, (topic, KEY, 0, address(0), PAYLOAD)));
        uint256 owed = viewOf(topic).credit;
        _take(taker, abi.encodeCall(ITopics.collectTopic, (topic, address(taker))));
        assertEq(taker.returned(), abi.encodeWithSelector(ITopics.NothingToCollect.selector, taker));
        assertEq(address(taker).balance, owed * 1 gwei);
    }

    /// @dev Paid inside a callback, and from there into the topic once more.
    function test_withdraw_insideThenAgainWhenPaid() public {
        _fillWord(0);
        Taker taker = new Taker();
        bytes memory call = abi.encodeCall(Animal.execute, (address(topics), 0, leaving(ACTOR, address(taker))));
        taker.prepare(address(actor), call);
        _reenter(0, abi.encodeCall(ITopics.withdraw, (topic, ACTOR, AMOUNT, address(taker))));
        assertTrue(taker.success());
        assertEq(holderOf(ACTOR), address(0));
        _assertBooks();
    }

    function _joinTaker() private returns (Taker taker) {
        join(taker = new Taker());
    }

    /// @dev Makes a call that pays the taker, which makes it again when it is paid.
    function _take(Taker taker, bytes memory data) private {
        taker.prepare(address(topics), data);
        taker.execute(address(topics), 0, data);
    }

    /* BY THE OWNER */

    function test_owner_changesEverythingInside() public {
        bytes memory data = abi.encodeCall(ITopics.create, (DEFAULT_POLICY, "mine"));
        topic = abi.decode(actor.execute(address(topics), 0, data), (bytes32));
        _fillWord(0);
        vm.prank(address(actor));
        topics.publish(topic, KEY, 0, address(0), PAYLOAD);

        _reenterOwned(abi.encodeCall(ITopics.setRoles, (topic, stranger, 3)));
        assertEq(rolesOf(topic, stranger), 3);
        _reenterOwned(abi.encodeCall(ITopics.setPolicy, (topic, PolicyLibrary.pack(PolicyLibrary.defaults()))));
        assertEq(viewOf(topic).sequence, 3);
        uint256 owed = viewOf(topic).credit;
        _reenterOwned(abi.encodeCall(ITopics.collectTopic, (topic, stranger)));
        assertEq(stranger.balance, 10 ether + owed * 1 gwei);
        _assertBooks();
    }

    function _reenterOwned(bytes memory data) private {
        actor.prepare(address(topics), 0, data);
        vm.prank(address(actor));
        topics.publish(topic, KEY, 0, address(0), PAYLOAD);
        assertTrue(actor.success());
    }

    /* STEPS */

    /// @dev Three kinds of word: all plain; with one that cannot pay; with two that pay less than the gas price.
    function _inEveryWord(function() internal check) private {
        for (uint256 kind; kind < 3; ++kind) {
            uint256 snapshot = vm.snapshotState();
            _fillWord(kind);
            check();
            vm.revertToState(snapshot);
        }
    }

    function _fillWord(uint256 kind) private {
        Terms thrifty = TermsLibrary.pack(200_000, 1_500, ANY_SHARE);
        for (uint256 i; i < 7; ++i) {
            animals.push(i == ACTOR ? Animal(actor) : new Counter());
            bool special = kind == 2 && (i == SERVED || i == WAITING);
            joinWith(animals[i], i == ACTOR ? termsOf(_largest()) : special ? thrifty : anyTerms(), DEPOSIT_GWEI);
        }
        animals.push(new Counter());
        joinWith(animals[7], anyTerms(), kind == 1 ? FLOOR + 5_000 : DEPOSIT_GWEI);
    }

    function _largest() private view returns (uint256) {
        return viewOf(topic).policy.callbackGas();
    }

    function _refuses(bytes memory data) private {
        _fillWord(0);
        actor.prepare(address(topics), 0, data);
        publish();
        assertFalse(actor.success());
        assertEq(actor.returned(), abi.encodeWithSelector(ITopics.Delivering.selector, topic));
        _assertEverythingComesOut();
    }

    /// @dev What an event costs the one at `index` when nobody re-enters.
    function _chargeWithout(uint256 index) private returns (uint256 charge) {
        uint256 snapshot = vm.snapshotState();
        charge = depositAt(index);
        publish();
        charge -= depositAt(index);
        vm.revertToState(snapshot);
    }

    function _reenter(uint256 value, bytes memory data) private {
        actor.prepare(address(topics), value, data);
        publish();
        assertTrue(actor.success(), "the call made inside failed");
    }

    function _reenterAs(uint256 index, uint256 value, bytes memory data) private {
        actor.prepare(address(animals[index]), value, abi.encodeCall(Animal.execute, (address(topics), value, data)));
        publish();
        assertTrue(actor.success(), "the call made inside failed");
    }

    function _assertBooks() private view {
        address[] memory creditors = new address[](9);
        for (uint256 i; i < 8; ++i) {
            creditors[i] = address(animals[i]);
        }
        creditors[8] = payee;
        assertBooksBalance(viewOf(topic).end, creditors);
    }

    /// @dev The books balance, the next event goes as usual, and when everybody has left and collected not a gwei stays behind.
    function _assertEverythingComesOut() internal {
        _assertBooks();
        actor.prepare(address(0), 0, "");
        Page memory page = publish();
        for (uint256 i; i < animals.length; ++i) {
            if (holderOf(i) == address(0)) continue;
            if (outcomeAt(page, i) != Outcome.Unfunded) assertOutcomeAt(page, i, Outcome.Delivered);
            leave(animals[i], i);
        }
        for (uint256 i; i < animals.length; ++i) {
            _collect(address(animals[i]));
        }
        _collect(payee);
        assertEq(viewOf(topic).callbackGas, 0, "somebody is still counted");
        assertEq(address(topics).balance, 0, "money stays behind");
    }

    function _collect(address account) private {
        if (topics.getCredit(account) == 0) return;
        vm.prank(account);
        topics.collect(account);
    }
}

/// @notice When it is paid, makes the call it was given before, once, and remembers how that went.
contract Taker is Animal {
    bool public success;
    bytes public returned;
    address private _target;
    bytes private _data;

    receive() external payable override {
        (address target, bytes memory data) = (_target, _data);
        delete _target;
        if (target != address(0)) (success, returned) = target.call(data);
    }

    function prepare(address target, bytes calldata data) external {
        (_target, _data) = (target, data);
    }

    function onEvent(bytes32, uint256, uint256, bytes32, bytes calldata) external returns (bytes4 acknowledgement) {}
}

/// @notice Leaves and subscribes again in one call.
contract Replacer is Counter {
    function replace(ITopics topics, bytes32 topic, uint256 index, Terms terms) external payable {
        topics.unsubscribe(topic, index, address(this));
        topics.subscribe{value: msg.value}(topic, terms, index);
    }
}
