// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Calldata} from "./libraries/Calldata.sol";
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
    /// @dev What removing a subscriber costs: its record, a fresh credit, a log.
    uint256 internal constant REMOVAL_GAS = 45_000;
    /// @dev Gas of finishing a page after its last measurement: the log, the topic's word, the return.
    uint256 internal constant FINISH_GAS = 5_600;
    /// @dev Gas between pricing a page and finishing it that is nobody's own.
    uint256 internal constant BASE_MARGIN_GAS = 10_000;
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

    /// @dev Bytes of a `Page` in memory.
    uint256 internal constant PAGE_SIZE = 0x4c0;

    struct Page {
        // What the loop over lanes needs; read there by their places, 0x00 to 0x120.
        uint256 input; // memory: the callback's calldata
        uint256 inputSize;
        uint256 price; // wei; 0x40
        uint256 limits; // price and share, as a record holds what its subscriber accepts
        uint256 gasDebit; // gwei debited for the callback; 0x80
        uint256 laneGas; // that a delivery costs besides what is measured
        uint256 source; // of the first record of the word being served: storage, or memory where it is sealed; 0xc0
        uint256 indexes; // the first index of that word
        uint256 outcomesAt; // memory: the outcome of that index; 0x100
        uint256 enough; // gas for one more callback and everything after
        // Terms of the page.
        uint256 share; // gwei debited for the base, the reward and the data fee
        uint256 callbackGas; // the most that any subscriber has reserved
        uint256 reserve; // gas to keep back
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
        // At which price.
        uint256 gasAtEntry;
        uint256 outsideGas; // declared: intrinsic gas, calldata, the publisher's own work
        uint256 floorGas; // the least the transaction costs by EIP-7623
        uint256 finishGas;
        uint256 reward; // gwei per served subscriber
        uint256 dataFee; // gwei, shared
        uint256 base; // gas that is nobody's own, at most
        uint256 floor; // gwei
        // Memory.
        uint256 outcomes;
        uint256 settlements; // per word: a 1 in the lane of everyone that a share was debited from, and what else each gets back
        uint256 records; // of one sealed page
        uint256 recordsPage;
        // What happened.
        uint256 billed;
        uint256 apart; // of these, at a price of their own and with nothing to settle
        uint256 billedGas;
        uint256 gasPaid; // gwei
    }

    /// @dev Makes a page of zeros: `_pageMaker()()`. Solidity would write every field of a new struct, one by one; a copy from behind the
    /// calldata is a tenth of that.
    function _pageMaker() internal pure returns (function() pure returns (Page memory) maker) {
        function() pure returns (uint256) allocate = _allocatePage;
        assembly ("memory-safe") {
            maker := allocate
        }
    }

    function _allocatePage() internal pure returns (uint256 page) {
        assembly ("memory-safe") {
            page := mload(0x40)
            calldatacopy(page, calldatasize(), PAGE_SIZE)
            mstore(0x40, add(page, PAGE_SIZE))
        }
    }

    /// @dev Prices a page: what the transaction costs outside of our sight, and the most of it that one subscriber may have to bear alone.
    function _price(Page memory page, Policy policy, TopicState state, uint256 tokens, uint256 length, uint256 gasPrice)
        internal
        view
    {
        unchecked {
            page.outsideGas += policy.baseGas() + tokens * policy.tokenGas();
            page.live = state.live();
            page.reward = policy.reward();
            page.dataFee = (length * policy.dataFee() + 999) / 1000;
            page.floor = policy.depositFloor();
            uint256 price = block.basefee + policy.tipCap() * MWEI;
            if (gasPrice < price) price = gasPrice;
            page.price = price < PRICE_MAX ? price : PRICE_MAX;
            uint256 base = page.outsideGas + page.gasAtEntry - gasleft() + page.finishGas + BASE_MARGIN_GAS + HOLE_GAS
                * (state.end() - page.live);
            uint256 floorGas = 21_000 + (tokens + FIXED_TOKENS) * policy.floorTokenGas();
            if (floorGas > base && Calldata.hasFloor()) page.floorGas = base = floorGas;
            page.base = base;
            page.callbackGas = state.callbackGasMax();
            _setTerms(page, page.price, page.callbackGas);
        }
    }

    /// @dev What to debit at a price for a callback of at most `callbackGas`.
    function _setTerms(Page memory page, uint256 price, uint256 callbackGas) internal pure {
        unchecked {
            uint256 share = _shareAt(page, price);
            page.price = price;
            page.limits = (price + MWEI - 1) / MWEI << 24 | (share < SHARE_MAX ? share : SHARE_MAX) << 56;
            page.share = share;
            page.gasDebit = _cost(callbackGas + DELIVERY_GAS, price);
        }
    }

    /// @dev Whether to call, and what to debit before. Decides, and predicts.
    function _judge(Page memory page, Record record, uint256 deposit)
        internal
        view
        returns (uint256 outcome, uint256 debit)
    {
        unchecked {
            if (deposit < page.floor) return (REMOVED, 0);
            uint256 price = _priceFor(page, record);
            if (record.maxPrice() < block.basefee) return (PRICE_TOO_HIGH, 0);
            uint256 share = _shareAt(page, price);
            if (share > record.maxShare()) return (PRICE_TOO_HIGH, 0);
            debit = _cost(record.callbackGas() + DELIVERY_GAS, price) + share;
            outcome = debit > deposit ? UNFUNDED : DELIVERED;
        }
    }

    /// @dev The most that one subscriber pays besides its own gas at a price.
    function _shareAt(Page memory page, uint256 price) internal pure returns (uint256) {
        unchecked {
            return _cost(page.base, price) + page.reward + page.dataFee;
        }
    }

    /// @dev The page's price or, where that is less, the subscriber's own maximum.
    function _priceFor(Page memory page, Record record) internal pure returns (uint256 price) {
        price = record.maxPrice();
        if (page.price < price) price = page.price;
    }

    /// @dev Gwei for `gas_` at `price` wei, rounded up.
    function _cost(uint256 gas_, uint256 price) internal pure returns (uint256) {
        unchecked {
            return (gas_ * price + GWEI - 1) / GWEI;
        }
    }

    function _fullGas() internal view returns (uint256) {
        return block.gaslimit < TRANSACTION_GAS_MAX ? block.gaslimit : TRANSACTION_GAS_MAX;
    }

    /// @dev Gas that one subscriber adds to what a publish must bring.
    function _reservedGas(uint256 callbackGas) internal pure returns (uint256) {
        unchecked {
            return callbackGas + callbackGas / 63 + DELIVERY_GAS;
        }
    }
}
