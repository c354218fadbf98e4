// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";

import {ISignedPublisher} from "./interfaces/ISignedPublisher.sol";
import {Calldata} from "./libraries/Calldata.sol";
import {TopicReader} from "./libraries/TopicReader.sol";
import {ITopics} from "./interfaces/ITopics.sol";
import {Access, Policy, PolicyLibrary} from "./types/Policy.sol";

/// @title SignedPublisher
/// @dev Read `ISignedPublisher` first. The domain and the ERC-1271 call are written out because OpenZeppelin's `EIP712` and `SignatureChecker` need MCOPY, which
/// Shanghai lacks.
contract SignedPublisher is ISignedPublisher {
    using TopicReader for ITopics;

    bytes32 private constant DOMAIN_TYPE =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
    bytes32 private constant DOMAIN_NAME = keccak256("Proofcast SignedPublisher");
    bytes32 private constant DOMAIN_VERSION = keccak256("1");
    bytes32 private constant PUBLICATION_TYPE = keccak256(
        "Publication(bytes32 topic,uint256 sequence,bytes32 key,bytes payload,uint256 deadline,address payee)"
    );

    /// @dev So that a carrier is made whole: intrinsic gas and calldata of a relay without its key and payload, and the gas
    /// spent here before and after `publish` (15,500 measured, and half a gas per byte of payload).
    uint256 private constant RELAY_BASE_GAS = 23_300;
    uint256 private constant RELAY_PUBLISHER_GAS = 17_000;

    /// @inheritdoc ISignedPublisher
    ITopics public immutable topics;
    /// @inheritdoc ISignedPublisher
    address public immutable signer;
    /// @inheritdoc ISignedPublisher
    bytes32 public immutable topic;

    /// @param policy 0 for the default policy with the gas that a relay takes
    constructor(ITopics topics_, address signer_, string memory name, string memory payloadType, Policy policy) {
        require(signer_ != address(0), ZeroSigner());
        if (Policy.unwrap(policy) == 0) policy = _defaultPolicy();
        require(_isUsable(policy), UnusablePolicy(policy));

        (topics, signer) = (topics_, signer_);
        topic = topics_.create(policy, name);
        if (bytes(payloadType).length != 0) topics_.setPayloadType(topic, payloadType);
    }

    /* PUBLICATION */

    /// @inheritdoc ISignedPublisher
    function relay(
        bytes32 key,
        bytes calldata payload,
        uint256 sequence,
        uint256 deadline,
        address payee,
        bytes calldata signature
    ) external payable returns (bool published) {
        uint256 next = topics.stateOf(topic).sequence() + 1;
        require(sequence <= next, SequenceInFuture(sequence, next));
        published = sequence == next;

        if (published) {
            require(block.timestamp <= deadline, Expired(block.timestamp, deadline));
            _verify(computeDigest(key, payload, sequence, deadline, payee), signature);
            topics.publish(topic, key, sequence, payee == address(0) ? msg.sender : payee, payload);
        }

        if (msg.value != 0) _giveBack();
    }

    /* VIEWS */

    /// @inheritdoc ISignedPublisher
    function computeDigest(bytes32 key, bytes calldata payload, uint256 sequence, uint256 deadline, address payee)
        public
        view
        returns (bytes32)
    {
        bytes32 domain = keccak256(abi.encode(DOMAIN_TYPE, DOMAIN_NAME, DOMAIN_VERSION, block.chainid, address(this)));
        bytes32 publication =
            keccak256(abi.encode(PUBLICATION_TYPE, topic, sequence, key, Calldata.hash(payload), deadline, payee));
        return keccak256(abi.encodePacked(hex"1901", domain, publication));
    }

    /* INTERNAL */

    /// @dev Refuses high s and other lengths than 65 (`ECDSA`), then asks the signer if it is a contract.
    function _verify(bytes32 digest, bytes calldata signature) private view {
        (address recovered,,) = ECDSA.tryRecoverCalldata(digest, signature);
        if (recovered == signer) return;
        require(_isApproved(digest, signature), WrongSigner(recovered, signer));
    }

    function _isApproved(bytes32 digest, bytes calldata signature) private view returns (bool) {
        (bool success, bytes memory answer) =
            signer.staticcall(abi.encodeCall(IERC1271.isValidSignature, (digest, signature)));
        return success && answer.length == 32 && bytes32(answer) == bytes32(IERC1271.isValidSignature.selector);
    }

    /// @dev Last, and to the caller itself: a caller that does not take its value back stops nobody but itself.
    function _giveBack() private {
        (bool success,) = msg.sender.call{value: msg.value}("");
        require(success, PaymentFailed(msg.sender, msg.value));
    }

    function _isUsable(Policy policy) private pure returns (bool) {
        return policy.isValid() && policy.publishing() == Access.Listed && policy.subscribing() == Access.Open;
    }

    function _defaultPolicy() private pure returns (Policy) {
        PolicyLibrary.Fields memory fields = PolicyLibrary.defaults();
        (fields.baseGas, fields.publisherGas) = (RELAY_BASE_GAS, RELAY_PUBLISHER_GAS);
        return PolicyLibrary.pack(fields);
    }
}
