// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

/// @notice What a topic demands and allows, packed into one word. Zero stands for the default policy.
/// @dev From the lowest bit: callbackGas 24 | reward 32 | depositFloor 32 | baseGas 24 | publisherGas 24 | tokenGas 8 |
/// floorTokenGas 8 | tipCap 32 | dataFee 32 | publishing 2 | subscribing 2 | set 1.
type Policy is uint256;

/// @notice Who may publish, or subscribe.
/// @dev `Listed`: the owner and those it lists. `Asked`: the owner contract answers each time. `Open`: everybody.
enum Access {
    Listed,
    Asked,
    Open
}

using PolicyLibrary for Policy global;

/// @notice Builds and reads a `Policy`.
library PolicyLibrary {
    /// @dev Largest callback cap: one callback and its overhead always fit a transaction of the chain's full cap.
    uint256 internal constant CALLBACK_GAS_MAX = 8_000_000;
    /// @dev Gwei. Bounds what an owner can demand to stay listed: 0.01 ether.
    uint256 internal constant DEPOSIT_FLOOR_MAX = 10_000_000;
    /// @dev Places of the two access rules.
    uint256 internal constant PUBLISHING = 216;
    uint256 internal constant SUBSCRIBING = 218;
    uint256 private constant SET = 1 << 220;

    struct Fields {
        /// Most gas a subscriber may reserve for its callback.
        uint256 callbackGas;
        /// Gwei each served subscriber pays per event on top of gas.
        uint256 reward;
        /// Gwei below which a subscriber is removed before the next call.
        uint256 depositFloor;
        /// Gas of a publish outside the contract's sight: intrinsic gas and the fixed calldata.
        uint256 baseGas;
        /// Gas a publisher contract spends before and after it calls; not counted when an account publishes directly.
        uint256 publisherGas;
        /// Gas per token of payload calldata; 0 where the payload is made on chain.
        uint256 tokenGas;
        /// Gas per token of EIP-7623's floor; 0 where the payload is made on chain.
        uint256 floorTokenGas;
        /// Mwei (1e6 wei) above the base fee that subscribers pay at most.
        uint256 tipCap;
        /// Mwei per payload byte, shared by the served: a rollup's data fee.
        uint256 dataFee;
        Access publishing;
        Access subscribing;
    }

    /// @notice The policy of a topic that has none of its own.
    Policy internal constant DEFAULT = Policy.wrap(
        SET | 200_000 | 10_000 << 56 | 22_300 << 88 | 3_000 << 112 | 4 << 136 | 10 << 144 | 3_000 << 152
            | uint256(Access.Listed) << PUBLISHING | uint256(Access.Open) << SUBSCRIBING
    );

    /// @notice The default policy's fields, to change some of them.
    function defaults() internal pure returns (Fields memory) {
        return unpack(DEFAULT);
    }

    function unpack(Policy policy) internal pure returns (Fields memory) {
        return Fields({
            callbackGas: policy.callbackGas(),
            reward: policy.reward(),
            depositFloor: policy.depositFloor(),
            baseGas: policy.baseGas(),
            publisherGas: policy.publisherGas(),
            tokenGas: policy.tokenGas(),
            floorTokenGas: policy.floorTokenGas(),
            tipCap: policy.tipCap(),
            dataFee: policy.dataFee(),
            publishing: policy.publishing(),
            subscribing: policy.subscribing()
        });
    }

    function pack(Fields memory f) internal pure returns (Policy) {
        return Policy.wrap(
            SET | f.callbackGas | f.reward << 24 | f.depositFloor << 56 | f.baseGas << 88 | f.publisherGas << 112
                | f.tokenGas << 136 | f.floorTokenGas << 144 | f.tipCap << 152 | f.dataFee << 184
                | uint256(f.publishing) << PUBLISHING | uint256(f.subscribing) << SUBSCRIBING
        );
    }

    function isSet(Policy self) internal pure returns (bool) {
        return Policy.unwrap(self) & SET != 0;
    }

    /// @dev Every field within its stated bound, or within its bits, and no stray bit.
    function isValid(Policy self) internal pure returns (bool) {
        return Policy.unwrap(self) >> 220 == 1 && self.callbackGas() != 0 && self.callbackGas() <= CALLBACK_GAS_MAX
            && self.depositFloor() <= DEPOSIT_FLOOR_MAX
            && Policy.unwrap(self) & Policy.unwrap(self) >> 1 & 5 << PUBLISHING == 0;
    }

    function callbackGas(Policy self) internal pure returns (uint256) {
        return Policy.unwrap(self) & 0xffffff;
    }

    function reward(Policy self) internal pure returns (uint256) {
        return Policy.unwrap(self) >> 24 & 0xffffffff;
    }

    function depositFloor(Policy self) internal pure returns (uint256) {
        return Policy.unwrap(self) >> 56 & 0xffffffff;
    }

    function baseGas(Policy self) internal pure returns (uint256) {
        return Policy.unwrap(self) >> 88 & 0xffffff;
    }

    function publisherGas(Policy self) internal pure returns (uint256) {
        return Policy.unwrap(self) >> 112 & 0xffffff;
    }

    function tokenGas(Policy self) internal pure returns (uint256) {
        return Policy.unwrap(self) >> 136 & 0xff;
    }

    function floorTokenGas(Policy self) internal pure returns (uint256) {
        return Policy.unwrap(self) >> 144 & 0xff;
    }

    function tipCap(Policy self) internal pure returns (uint256) {
        return Policy.unwrap(self) >> 152 & 0xffffffff;
    }

    function dataFee(Policy self) internal pure returns (uint256) {
        return Policy.unwrap(self) >> 184 & 0xffffffff;
    }

    function publishing(Policy self) internal pure returns (Access) {
        return Access(self.accessAt(PUBLISHING));
    }

    function subscribing(Policy self) internal pure returns (Access) {
        return Access(self.accessAt(SUBSCRIBING));
    }

    /// @dev The rule at a place, as a number: a conversion to `Access` would be checked.
    function accessAt(Policy self, uint256 place) internal pure returns (uint256) {
        return Policy.unwrap(self) >> place & 3;
    }
}
