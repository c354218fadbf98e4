// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Calldata} from "./libraries/Calldata.sol";
import {Lanes} from "./libraries/Lanes.sol";
import {Policy} from "./types/Policy.sol";
import {Record} from "./types/Record.sol";
import {TopicState} from "./types/TopicState.sol";

/// @notice What a delivery costs, and who is called at that price. Knows no storage: `Topics` decides by it, `TopicsLens` predicts by it.
abstract contract Pricing {
    /// @dev Gas beyond the callback that a delivery can need: two cold reads, the debit, the call, its bill and settlement.
    uint256 internal constant DELIVERY_GAS = 12_000;

    /// @dev EIP-7825: no transaction may bring more.
    uint256 internal constant TRANSACTION_GAS_MAX = 1 << 24;
    /// @dev Sixteenths of that cap that must arrive where not all callbacks can be paid for; the rest is for calldata and the publisher.
    uint256 internal constant FULL_SIXTEENTHS = 13;
    /// @dev Kept back before every callback: two fresh words for a pending page, two fresh credits, the hash of the longest payload, the log,
    /// the topic's word.
    uint256 internal constant FINISH_RESERVE_GAS = 125_000;
    /// @dev That, and what a page does before its first callback.
    uint256 internal constant RESERVE_GAS = 145_000;
    /// @dev Kept back per position for its settlement and its byte in the log.
    uint256 internal constant RESERVE_GAS_PER_POSITION = 130;
    /// @dev What crediting one that left during the delivery costs.
    uint256 internal constant LEAVER_GAS = 6_000;
    /// @dev What looking at one costs that is then not called: reading its record, judging it.
    uint256 internal constant LOOK_GAS = 5_000;
    /// @dev What removing a subscriber costs: its record, a fresh credit, a log.
    uint256 internal constant REMOVAL_GAS = 45_000;
    /// @dev Gas of finishing a page after its last measurement: the log, the topic's word, the return.
    uint256 internal constant FINISH_GAS = 5_600;
    /// @dev Gas between pricing a page and finishing it that is nobody's own.
    uint256 internal constant BASE_MARGIN_GAS = 10_000;
    /// @dev What one removal, and passing over a few that may follow later, costs those who are served.
    uint256 internal constant REMOVAL_SHARE_GAS = 46_000;
    /// @dev Gas of settling one word of eight.
    uint256 internal constant SETTLE_GAS = 850;
    /// @dev Gas of one empty lane: an eighth of a cold read, and its byte in the log.
    uint256 internal constant HOLE_GAS = 350;
    /// @dev Gas of writing a storage word that was read before: a fresh one, and one that is not zero.
    uint256 internal constant FRESH_WRITE_GAS = 20_000;
    uint256 internal constant WRITE_GAS = 2_900;
    /// @dev Calldata tokens of a publish besides its payload, for EIP-7623's floor.
    uint256 internal constant FIXED_TOKENS = 325;
    /// @dev Tokens that a routing key adds.
    uint256 internal constant KEY_TOKENS = 96;
    /// @dev Bounds the memory of one page.
    uint256 internal constant POSITIONS_MAX = 8_192;

    /// @dev Gas of one lane outside of what is measured: its part of reading, debiting and settling its word.
    uint256 internal constant LANE_GAS = 800;

    uint256 internal constant DELIVERED = 1;
    uint256 internal constant FAILED = 2;
    uint256 internal constant UNFUNDED = 3;
    uint256 internal constant PRICE_TOO_HIGH = 4;
    uint256 internal constant NO_CODE = 5;
    uint256 internal constant REMOVED = 6;

    uint256 internal constant GWEI = 1000000000;
    uint256 internal constant MWEI = 1000000;
    /// @dev Wei; what a record can hold.
    uint256 internal constant PRICE_MAX = ((1 << 31) - 1) * MWEI;
    uint256 internal constant SHARE_MAX = (1 << 39) - 1;
    uint256 internal constant LANE_ONES = 0x0000000100000001000000010000000100000001000000010000000100000001;
    /// @dev Bits above the greatest price and share of a record, where a subtraction shows that they were less.
    uint256 internal constant GUARDS = 0x800000000080000000000000;
    uint256 internal constant LANE_TOPS = LANE_ONES << 31;

    /// @dev Where the one page that a call works on stands in memory, and its bytes there; then the callback's calldata.
    uint256 internal constant PAGE = 0x200;
    uint256 internal constant PAGE_SIZE = 0x520;
    uint256 internal constant INPUT = 0x720;

    /// @dev What holds for a whole page of deliveries. Amounts in gwei, prices in wei.
    struct Page {
        // Who is served.
        bytes32 topic;
        uint256 from; // positions
        uint256 end; // of the list when the event was published
        uint256 live; // subscribers in it
        uint256 words;
        uint256 startWord;
        uint256 sealedEnd;
        uint256 lanesSlot;
        uint256 recordsSlot;
        // Who is paid; 0 leaves it with the topic.
        address payee;
        address rewardPayee;
        // At which price.
        uint256 gasAtEntry;
        uint256 outsideGas; // declared: intrinsic gas, calldata, the publisher's own work
        uint256 floorGas; // the least the transaction costs by EIP-7623
        uint256 finishGas;
        uint256 reward; // per served subscriber
        uint256 dataFee; // shared
        uint256 base; // gas that is nobody's own, at most
        uint256 floor;
        uint256 look; // what it costs at the least to be looked at
        // Terms of the callbacks.
        uint256 price;
        uint256 limits; // price and share, as a record holds what its subscriber accepts
        uint256 gasDebit; // for the callback
        uint256 share; // debited for the base, the reward and the data fee
        uint256 laneGas; // that a delivery costs besides what is measured
        uint256 callbackGas; // the most that any subscriber has reserved
        uint256 reserve; // gas to keep back
        uint256 enough; // gas for one more callback and everything after
        // The word being served.
        uint256 source; // of its first record: storage, or memory where it is sealed
        uint256 indexes; // its first index
        uint256 outcomesAt; // memory: the outcome of that index
        // Memory.
        uint256 inputSize; // of the callback's calldata, at INPUT
        uint256 outcomes;
        uint256 settlements; // per word: a 1 in the lane of everyone that a share was debited from, and what else each gets back
        uint256 records; // of one sealed page
        uint256 recordsPage;
        // What happened.
        uint256 billed;
        uint256 apart; // of these, at a price of their own and with nothing to settle
        uint256 billedGas;
        uint256 gasPaid;
        uint256 removed;
    }

    /// @dev The page: `_page()()`. It stands at a fixed place, so that reading a field takes one instruction with a constant; the detour over a
    /// function's type makes a reference of the constant, where Solidity would allocate and clear a struct.
    function _page() internal pure returns (function() pure returns (Page memory) page) {
        function() pure returns (uint256) place = _placeOfPage;
        assembly ("memory-safe") {
            page := place
        }
    }

    function _placeOfPage() internal pure returns (uint256) {
        return PAGE;
    }

    /// @dev Clears the page and allocates everything up to its end; before it, first of all, only the compiler may have put something.
    function _openPage() internal pure {
        assembly ("memory-safe") {
            if gt(mload(0x40), PAGE) { invalid() }
            calldatacopy(PAGE, calldatasize(), PAGE_SIZE)
            mstore(0x40, INPUT)
        }
    }

    /// @dev Prices a page: what the transaction costs outside of our sight, and the most of it that one subscriber may have to bear alone.
    function _price(Policy policy, TopicState state, uint256 tokens, uint256 length, uint256 gasPrice) internal view {
        unchecked {
            Page memory page = _page()();
            page.outsideGas += policy.baseGas() + tokens * policy.tokenGas();
            page.live = state.live();
            page.reward = policy.reward();
            page.dataFee = (length * policy.dataFee() + 999) / 1000;
            page.floor = policy.depositFloor();
            uint256 base = page.outsideGas + page.gasAtEntry - gasleft() + page.finishGas + BASE_MARGIN_GAS + HOLE_GAS
                * (state.end() - page.live);
            uint256 floorGas = 21_000 + (tokens + FIXED_TOKENS) * policy.floorTokenGas();
            if (floorGas > base && Calldata.hasFloor()) page.floorGas = base = floorGas;
            page.base = base + REMOVAL_SHARE_GAS;
            page.callbackGas = state.callbackGasMax();

            uint256 price = _least(gasPrice, block.basefee + policy.tipCap() * MWEI);
            page.look = _cost(LOOK_GAS, _least(price, block.basefee));
            _setTerms(_least(price, PRICE_MAX), page.callbackGas);
        }
    }

    /// @dev What to debit at a price for a callback of at most `callbackGas`.
    function _setTerms(uint256 price, uint256 callbackGas) internal pure {
        unchecked {
            Page memory page = _page()();
            uint256 share = _shareAt(price);
            page.price = price;
            page.limits = (price + MWEI - 1) / MWEI << 24 | _least(share, SHARE_MAX) << 56;
            page.share = share;
            page.gasDebit = _cost(callbackGas + DELIVERY_GAS, price);
        }
    }

    /// @dev What becomes of one that is not even looked at, as it could not pay for that; 0 for all others. A page removes one, or as many as share
    /// its base so far: more than that they cannot pay for.
    function _dismiss(uint256 deposit) internal pure returns (uint256) {
        Page memory page = _page()();
        unchecked {
            if (deposit < page.floor && (page.removed == 0 || page.removed < page.billed - page.apart)) return REMOVED;
        }
        return deposit < page.floor || deposit < page.look ? UNFUNDED : 0;
    }

    /// @dev Whether to call, and what to debit before. Decides, and predicts.
    function _judge(Record record, uint256 deposit) internal view returns (uint256 outcome, uint256 debit) {
        unchecked {
            uint256 price = _priceFor(record);
            uint256 share = _shareAt(price);
            if (record.maxPrice() < block.basefee || share > record.maxShare()) return (PRICE_TOO_HIGH, 0);
            debit = _cost(record.callbackGas() + DELIVERY_GAS, price) + share;
            outcome = debit > deposit || debit > Lanes.DEPOSIT_MAX ? UNFUNDED : DELIVERED;
        }
    }

    /// @dev The most that one subscriber pays besides its own gas at a price.
    function _shareAt(uint256 price) internal pure returns (uint256) {
        unchecked {
            Page memory page = _page()();
            return _cost(page.base, price) + page.reward + page.dataFee;
        }
    }

    /// @dev The page's price or, where that is less, the subscriber's own maximum.
    function _priceFor(Record record) internal pure returns (uint256) {
        return _least(_page()().price, record.maxPrice());
    }

    function _least(uint256 a, uint256 b) internal pure returns (uint256) {
        return a < b ? a : b;
    }

    /// @dev Gwei for `gas_` at `price` wei, rounded up.
    function _cost(uint256 gas_, uint256 price) internal pure returns (uint256) {
        unchecked {
            return (gas_ * price + GWEI - 1) / GWEI;
        }
    }

    /// @dev 0 where `b` is 0.
    function _ceilDiv(uint256 a, uint256 b) internal pure returns (uint256 quotient) {
        assembly ("memory-safe") {
            quotient := div(add(a, sub(b, 1)), b)
        }
    }

    function _fullGas() internal view returns (uint256) {
        return _least(block.gaslimit, TRANSACTION_GAS_MAX);
    }

    /// @dev Gas that one subscriber adds to what a publish must bring.
    function _reservedGas(uint256 callbackGas) internal pure returns (uint256) {
        unchecked {
            return callbackGas + callbackGas / 63 + DELIVERY_GAS;
        }
    }
}
