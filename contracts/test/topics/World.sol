// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Vm} from "forge-std/Vm.sol";

import {ITopics} from "../../src/interfaces/ITopics.sol";
import {ITopicsLens} from "../../src/interfaces/ITopicsLens.sol";
import {TopicReader} from "../../src/libraries/TopicReader.sol";
import {
    Animal,
    Burner,
    Counter,
    Noop,
    Reenterer,
    ReturnBomb,
    RevertBomb,
    Selfdestructor,
    Unsubscriber,
    WrongReturn
} from "../../src/testing/Zoo.sol";
import {Outcome} from "../../src/types/Outcome.sol";
import {Access, Policy, PolicyLibrary} from "../../src/types/Policy.sol";
import {Record, RecordLibrary} from "../../src/types/Record.sol";
import {Terms, TermsLibrary} from "../../src/types/Terms.sol";
import {TopicTest} from "./TopicTest.sol";

/// @notice Two topics, a zoo of subscribers, and everything that anybody may do to them, at random but never refused. Beside it stands what
/// must be true: who was there when an event was published, and who was served since.
contract World is TopicTest {
    using TopicReader for ITopics;
    using TopicReader for bytes32;

    /// @dev Keeps a step short: beyond it only holes are filled.
    uint256 private constant END_MAX = 24;
    uint256 private constant TOPICS = 2;
    uint256 private constant PAYEES = 3;
    uint256 private constant REENTERERS = 3;

    /// @dev What is known of a topic's last event.
    struct Ghost {
        uint256 sequence;
        uint256 position;
        /// Of the list when the last page began, and the longest it ever was.
        uint256 end;
        uint256 width;
        bytes32 key;
        bytes payload;
        mapping(uint256 index => address) holder;
        mapping(uint256 index => bool) present;
        mapping(uint256 index => bool) seen;
    }

    bytes32[TOPICS] public ids;
    uint256[TOPICS] private callbackGasMax = [200_000, 2_000_000];
    Animal[] public zoo;
    Counter[] public counters;
    /// @dev How often the logs say that a callback returned.
    mapping(address subscriber => uint256) public served;
    /// @dev What a subscription of so much gas adds to what a publish must bring.
    mapping(uint256 callbackGas => uint256) private reserved;
    /// @dev Wei that reached the contract without being anybody's.
    uint256 public forced;
    /// @dev What went wrong first; stays empty.
    string public complaint;

    mapping(bytes32 topic => Ghost) private ghosts;
    /// @dev The topic whose page is called from outside; events of the other one are published inside callbacks.
    bytes32 private outer;
    uint256 private baseFee = 1 gwei;
    uint256 private gasPrice = 2 gwei;

    modifier priced() {
        vm.fee(baseFee);
        vm.txGasPrice(gasPrice);
        _;
    }

    constructor() {
        setUp();
        vm.deal(address(this), 1e9 ether);
        for (uint256 i; i < TOPICS; ++i) {
            ids[i] = topics.create(_policy(i, 0, 10_000, 3_000, 0), i == 0 ? "small" : "large");
        }
        _fillZoo();
        allowLargeCallbacks();
        for (uint256 i; i < 4; ++i) {
            _learnReserve(_gasOf(0, i));
            _learnReserve(_gasOf(1, i));
        }
    }

    /* SUBSCRIBERS */

    function subscribe(uint256 seed, uint256 who, uint256 deposit, uint256 price, uint256 share) external priced {
        (bytes32 id, uint256 which) = _topic(seed);
        uint256 hole = holeOf(id);
        if (viewOf(id).end >= END_MAX && (hole == viewOf(id).end || viewOf(id).pending)) return;
        uint256 floor = viewOf(id).policy.depositFloor();
        // One in four is poor, one in four thrifty.
        deposit = bound(deposit, floor, who % 4 == 0 ? floor + 100_000 : 0.2 ether / 1 gwei);
        price = bound(price, baseFee / 1e6 + 1, who % 4 == 1 ? baseFee / 1e6 + 100 : PRICE_MAX);
        share = bound(share, viewOf(id).policy.reward(), who % 4 == 2 ? 1_000_000 : ANY_SHARE);
        Terms terms = TermsLibrary.pack(_gasOf(which, seed / 2), price, share);
        Animal animal = _animal(who / 4);
        uint256 index = animal.join{value: deposit * 1 gwei}(topics, id, terms, hole);
        _noteHolder(ghosts[id], index, address(animal));
    }

    function fund(uint256 seed, uint256 index, uint256 amount) external priced {
        (bytes32 id,) = _topic(seed);
        index = _liveIndex(id, index);
        if (index == NO_HOLE || _depositOf(id, index) >= DEPOSIT_MAX) return;
        uint256 most = DEPOSIT_MAX - _depositOf(id, index);
        if (seed % 8 != 0 && most > 1_000_000) most = 1_000_000;
        topics.fund{value: bound(amount, 0, most) * 1 gwei}(id, index);
    }

    function withdraw(uint256 seed, uint256 index, uint256 amount) external priced {
        (bytes32 id,) = _topic(seed);
        index = _liveIndex(id, index);
        uint256 floor = viewOf(id).policy.depositFloor();
        if (index == NO_HOLE || _depositOf(id, index) < floor) return;
        amount = bound(amount, 0, _depositOf(id, index) - floor);
        vm.prank(ghosts[id].holder[index]);
        topics.withdraw(id, index, amount, stranger);
    }

    function unsubscribe(uint256 seed, uint256 index) external priced {
        (bytes32 id,) = _topic(seed);
        index = _liveIndex(id, index);
        if (index == NO_HOLE) return;
        vm.prank(ghosts[id].holder[index]);
        topics.unsubscribe(id, index, stranger);
    }

    /// @dev What an animal will do inside its next callback: anything, to anybody, allowed or not.
    function prepare(uint256 seed, uint256 who, uint256 index, uint256 value) external {
        (bytes32 id,) = _topic(seed);
        Reenterer reenterer = Reenterer(payable(address(zoo[who % REENTERERS])));
        _give(address(reenterer), 1 ether);
        index = bound(index, 0, ghosts[id].width);
        value = seed % 3 == 0 ? bound(value, 0, 1_000_000) * 1 gwei : 0;
        bytes memory call = _anyCall(id, seed / 6, index);
        address holder = ghosts[id].holder[index];
        if (who % 4 != 0 && holder.code.length != 0) {
            call = abi.encodeCall(Animal.execute, (address(topics), value, call));
            reenterer.prepare(holder, value, call);
        } else {
            reenterer.prepare(address(topics), value, call);
        }
    }

    /* EVENTS */

    function publish(uint256 seed, uint256 gas_, bytes32 key, bytes calldata payload) external priced {
        (bytes32 id,) = _topic(seed);
        if (viewOf(id).pending) return _deliver(id, seed, gas_);
        uint256[2] memory before = _beginPage(id, gas_);
        uint256 expected = seed % 3 == 0 ? ghosts[id].sequence + 1 : 0;
        topics.publish{gas: _pageGas(gas_)}(id, key, expected, _payee(seed), payload);
        _endPage(before);
    }

    function deliver(uint256 seed, uint256 gas_) external priced {
        (bytes32 id,) = _topic(seed);
        if (viewOf(id).pending) _deliver(id, seed, gas_);
    }

    function _deliver(bytes32 id, uint256 seed, uint256 gas_) private {
        uint256[2] memory before = _beginPage(id, gas_);
        topics.deliver{gas: _pageGas(gas_)}(id, ghosts[id].key, _payee(seed), ghosts[id].payload);
        _endPage(before);
    }

    function seal(uint256 seed) external priced {
        (bytes32 id,) = _topic(seed);
        // Rarely, or there would soon be nothing but tombstones.
        if (seed % 7 != 0 || viewOf(id).pending || viewOf(id).end >> 3 << 3 <= viewOf(id).sealedEnd) return;
        topics.seal(id);
    }

    /* OWNER, PAYEES, MARKET */

    function setPolicy(uint256 seed, uint256 reward, uint256 floor, uint256 tipCap, uint256 dataFee) external priced {
        (bytes32 id, uint256 which) = _topic(seed);
        if (seed % 3 != 0) return;
        reward = bound(reward, 0, 100_000);
        floor = bound(floor, 0, 100_000);
        topics.setPolicy(id, _policy(which, reward, floor, bound(tipCap, 0, 10_000), bound(dataFee, 0, 10_000)));
    }

    function collect(uint256 seed) external priced {
        address account = seed % 2 == 0 ? _payee(seed / 2) : address(zoo[seed / 2 % zoo.length]);
        if (account == address(0) || topics.getCredit(account) == 0) return;
        vm.prank(account);
        topics.collect(stranger);
    }

    function collectTopic(uint256 seed) external priced {
        (bytes32 id,) = _topic(seed);
        if (viewOf(id).credit != 0) topics.collectTopic(id, stranger);
    }

    function setPrices(uint256 base, uint256 tip) external {
        baseFee = bound(base, 0, base % 4 == 0 ? 300 gwei : 3 gwei);
        gasPrice = baseFee + bound(tip, 0, 20 gwei);
    }

    function force(uint256 amount) external {
        amount = bound(amount, 1, 1 ether);
        new Bequest{value: amount}(payable(address(topics)));
        forced += amount;
    }

    /* WHAT MUST BE TRUE */

    /// @dev Gwei of all credits.
    function credits() external view returns (uint256 sum) {
        for (uint256 i; i < zoo.length; ++i) {
            sum += topics.getCredit(address(zoo[i]));
        }
        for (uint256 i = 1; i < PAYEES; ++i) {
            sum += topics.getCredit(_payee(i));
        }
    }

    function held() external view returns (uint256) {
        return address(topics).balance;
    }

    /// @dev What is wrong with a topic: somebody does not hold the index it was given, the topic's own sums are not those of its
    /// subscriptions, an event was skipped. `owed` are the gwei of its deposits and its credit. Reads words of storage, as asking the lens
    /// for every index would take most of a step's time.
    function inspect(uint256 which) external view returns (string memory wrong, uint256 owed) {
        bytes32 id = ids[which];
        ITopicsLens.TopicView memory shown = viewOf(id);
        owed = shown.credit;
        if (shown.delivering) return ("it delivers for ever", 0);
        for (uint256 index; index < shown.end; ++index) {
            uint256 lane = _laneOf(id, index);
            if (lane == 0) continue;
            owed += lane - 1;
            Record record = _recordOf(id, index, shown.sealedEnd);
            if (record.subscriber() != ghosts[id].holder[index]) return ("somebody else holds the index", 0);
            shown.callbackGas -= reserved[record.callbackGas()];
            --shown.live;
        }
        if (shown.callbackGas != 0 || shown.live != 0) wrong = "the topic's sums are not those of its list";
        if (shown.sequence != ghosts[id].sequence) wrong = "the sequence skips";
        if (shown.pending != (ghosts[id].position != 0)) wrong = "a page is missing";
    }

    /// @dev Whether every counter was called as often as the logs say.
    function doCountersAgree() external view returns (bool agree) {
        agree = true;
        for (uint256 i; i < counters.length; ++i) {
            agree = agree && counters[i].count() == served[address(counters[i])];
        }
    }

    /* THE LOGS */

    function _beginPage(bytes32 id, uint256 seed) private returns (uint256[2] memory before) {
        outer = id;
        for (uint256 i; i < TOPICS; ++i) {
            if (!viewOf(ids[i]).pending) _notePresent(ids[i]);
        }
        for (uint256 i; i < 2; ++i) {
            address selfdestructor = address(zoo[REENTERERS + i]);
            _give(selfdestructor, seed % 5);
            before[i] = selfdestructor.balance;
        }
        vm.recordLogs();
    }

    function _endPage(uint256[2] memory before) private {
        _replay(vm.getRecordedLogs());
        for (uint256 i; i < 2; ++i) {
            forced += before[i] - address(zoo[REENTERERS + i]).balance;
        }
        for (uint256 i; i < REENTERERS; ++i) {
            Reenterer(payable(address(zoo[i]))).prepare(address(0), 0, "");
        }
    }

    /// @dev Recorded logs hold those of reverted calls too: of several that tell of the same event, the last one came true, if the topic
    /// has come so far.
    function _replay(Vm.Log[] memory logs) private {
        for (uint256 i; i < logs.length; ++i) {
            if (logs[i].emitter != address(topics) || logs[i].topics.length < 3) continue;
            Ghost storage ghost = ghosts[logs[i].topics[1]];
            bytes32 what = logs[i].topics[0];
            if (what == ITopics.Subscribed.selector) {
                (uint256 index,,) = abi.decode(logs[i].data, (uint256, Terms, uint256));
                _noteHolder(ghost, index, address(uint160(uint256(logs[i].topics[2]))));
            } else if (what == ITopics.Published.selector && _isTrue(logs, i)) {
                _replayPublished(ghost, logs[i]);
            } else if (what == ITopics.Delivered.selector && _isTrue(logs, i)) {
                _replayDelivered(ghost, parsePage(logs[i]));
            }
        }
    }

    function _isTrue(Vm.Log[] memory logs, uint256 at) private view returns (bool) {
        if (uint256(logs[at].topics[2]) > viewOf(logs[at].topics[1]).sequence) return false;
        for (uint256 i = at + 1; i < logs.length; ++i) {
            if (logs[i].emitter != address(topics) || logs[i].topics.length < 3) continue;
            if (
                logs[i].topics[0] == logs[at].topics[0] && logs[i].topics[1] == logs[at].topics[1]
                    && logs[i].topics[2] == logs[at].topics[2]
            ) return false;
        }
        return true;
    }

    function _replayPublished(Ghost storage ghost, Vm.Log memory log) private {
        _expect(uint256(log.topics[2]) == ghost.sequence + 1, "the sequence skips");
        _expect(ghost.position == 0, "the event before it has pages left");
        (ghost.sequence, ghost.key) = (uint256(log.topics[2]), log.topics[3]);
        (, ghost.payload) = abi.decode(log.data, (address, bytes));
    }

    function _replayDelivered(Ghost storage ghost, Page memory page) private {
        _expect(page.sequence == ghost.sequence, "a page of another event");
        _expect(page.first == ghost.position, "pages do not join");
        if (page.first == 0) _forgetSeen(ghost);
        uint256 end = page.first + page.outcomes.length + page.remaining;
        for (uint256 i; i < page.outcomes.length; ++i) {
            if (page.outcomes[i] == 0) continue;
            uint256 index = indexAt(page.sequence, page.first + i, end);
            bool joinedInside = page.topic != outer && index >= ghost.end;
            _expect(ghost.present[index] || joinedInside, "served an event older than itself");
            _expect(!ghost.seen[index], "served twice");
            ghost.seen[index] = true;
            if (page.outcomes[i] == bytes1(uint8(Outcome.Delivered))) ++served[ghost.holder[index]];
        }
        ghost.position = page.remaining == 0 ? 0 : page.first + page.outcomes.length;
        if (page.remaining == 0) _expectAllServed(ghost, page.topic);
    }

    /// @dev Who was there at the beginning and still is must have had its turn.
    function _expectAllServed(Ghost storage ghost, bytes32 id) private {
        for (uint256 index; index < ghost.end; ++index) {
            if (!ghost.present[index] || ghost.seen[index]) continue;
            _expect(_laneOf(id, index) == 0, "somebody was skipped");
        }
    }

    function _forgetSeen(Ghost storage ghost) private {
        for (uint256 index; index < ghost.width; ++index) {
            if (ghost.seen[index]) ghost.seen[index] = false;
        }
    }

    function _notePresent(bytes32 id) private {
        Ghost storage ghost = ghosts[id];
        ghost.end = viewOf(id).end;
        for (uint256 index; index < ghost.width; ++index) {
            bool present = index < ghost.end && _laneOf(id, index) != 0;
            if (ghost.present[index] != present) ghost.present[index] = present;
        }
    }

    function _noteHolder(Ghost storage ghost, uint256 index, address holder) private {
        ghost.holder[index] = holder;
        if (index >= ghost.width) ghost.width = index + 1;
    }

    function _give(address to, uint256 amount) private {
        (bool paid,) = to.call{value: amount}("");
        assertTrue(paid);
    }

    function _expect(bool holds, string memory otherwise) private {
        if (!holds && bytes(complaint).length == 0) complaint = otherwise;
    }

    /* CHOICES */

    /// @dev Those that re-enter first, then those that ether is forced with, then the rest.
    function _fillZoo() private {
        for (uint256 i; i < REENTERERS; ++i) {
            zoo.push(new Reenterer());
        }
        zoo.push(new Selfdestructor());
        zoo.push(new Selfdestructor());
        for (uint256 i; i < 8; ++i) {
            counters.push(new Counter());
            zoo.push(counters[i]);
        }
        zoo.push(new Noop());
        zoo.push(new Burner());
        zoo.push(new RevertBomb());
        zoo.push(new ReturnBomb());
        zoo.push(new WrongReturn());
        zoo.push(new Unsubscriber());
        zoo.push(new Unsubscriber());
    }

    /// @dev Who destroyed itself does not come back.
    function _animal(uint256 seed) private view returns (Animal animal) {
        animal = zoo[seed % zoo.length];
        if (address(animal).code.length == 0) animal = counters[seed % counters.length];
    }

    function _topic(uint256 seed) private view returns (bytes32 id, uint256 which) {
        which = seed % TOPICS;
        id = ids[which];
    }

    function _payee(uint256 seed) private pure returns (address) {
        return seed % PAYEES == 0 ? address(0) : address(uint160(0xbeef + seed % PAYEES));
    }

    function _gasOf(uint256 which, uint256 seed) private view returns (uint256) {
        return callbackGasMax[which] >> (seed % 4);
    }

    function _pageGas(uint256 seed) private pure returns (uint256) {
        return FULL_GAS + ENTRY_GAS + seed % 3_000_000;
    }

    /// @dev A live index at or after `from`, or `NO_HOLE`.
    function _liveIndex(bytes32 id, uint256 from) private view returns (uint256) {
        uint256 end = viewOf(id).end;
        for (uint256 i; i < end; ++i) {
            uint256 index = (from % end + i) % end;
            if (_laneOf(id, index) != 0) return index;
        }
        return NO_HOLE;
    }

    function _depositOf(bytes32 id, uint256 index) private view returns (uint256 deposit) {
        (,, deposit) = lens.getSubscription(id, index);
    }

    function _laneOf(bytes32 id, uint256 index) private view returns (uint256) {
        return topics.read(id.slotOf(TopicReader.LANES) + index / 8) >> (index % 8 * 32) & 0xffffffff;
    }

    function _recordOf(bytes32 id, uint256 index, uint256 sealedEnd) private view returns (Record) {
        if (index >= sealedEnd) return Record.wrap(topics.read(id.slotOf(TopicReader.RECORDS) + index));
        (address subscriber, Terms terms,) = lens.getSubscription(id, index);
        return RecordLibrary.make(subscriber, terms);
    }

    function _policy(uint256 which, uint256 reward, uint256 floor, uint256 tipCap, uint256 dataFee)
        private
        view
        returns (Policy)
    {
        PolicyLibrary.Fields memory fields = PolicyLibrary.defaults();
        (fields.callbackGas, fields.reward, fields.depositFloor) = (callbackGasMax[which], reward, floor);
        (fields.tipCap, fields.dataFee, fields.publishing) = (tipCap, dataFee, Access.Open);
        return PolicyLibrary.pack(fields);
    }

    function _anyCall(bytes32 id, uint256 seed, uint256 index) private view returns (bytes memory) {
        uint256 kind = seed % 9;
        if (kind == 0) return abi.encodeCall(ITopics.fund, (id, index));
        if (kind == 1) return abi.encodeCall(ITopics.withdraw, (id, index, seed % 100_000, stranger));
        if (kind == 2) return abi.encodeCall(ITopics.unsubscribe, (id, index, stranger));
        if (kind == 3) return abi.encodeCall(ITopics.publish, (id, bytes32(seed), 0, _payee(seed), "inside"));
        if (kind == 4) return abi.encodeCall(ITopics.deliver, (id, ghosts[id].key, _payee(seed), ghosts[id].payload));
        if (kind == 5) return abi.encodeCall(ITopics.seal, (id));
        if (kind == 6) return abi.encodeCall(ITopics.collect, (stranger));
        if (kind == 7) return abi.encodeCall(ITopics.unsubscribe, (id, index, stranger));
        if (viewOf(id).end >= END_MAX) return abi.encodeCall(ITopics.collectTopic, (id, stranger));
        return abi.encodeCall(ITopics.subscribe, (id, termsOf(_gasOf(0, seed)), NO_HOLE));
    }

    function _learnReserve(uint256 callbackGas) private {
        Noop noop = new Noop();
        uint256 index = joinWith(noop, termsOf(callbackGas), DEPOSIT_GWEI);
        reserved[callbackGas] = viewOf(topic).callbackGas;
        leave(noop, index);
    }
}

/// @notice Leaves its ether to one who cannot refuse it.
contract Bequest {
    constructor(address payable heir) payable {
        selfdestruct(heir);
    }
}
