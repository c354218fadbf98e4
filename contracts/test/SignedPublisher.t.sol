// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";

import {ISignedPublisher} from "../src/interfaces/ISignedPublisher.sol";
import {ITopics} from "../src/interfaces/ITopics.sol";
import {Counter, Reenterer} from "../src/testing/Zoo.sol";
import {Access, Policy, PolicyLibrary} from "../src/types/Policy.sol";
import {Shipped, ShippedTopics} from "./Shipped.sol";

/// @notice A signer that is a contract and approves one digest, by the rule or in a way that only looks like it.
contract ContractSigner is IERC1271 {
    bytes32 public approved;
    bytes public answer = abi.encode(IERC1271.isValidSignature.selector);

    function approve(bytes32 digest) external {
        approved = digest;
    }

    function answerWith(bytes calldata answer_) external {
        answer = answer_;
    }

    function isValidSignature(bytes32 digest, bytes calldata) external view returns (bytes4) {
        require(digest == approved);
        bytes memory raw = answer;
        assembly {
            return(add(raw, 32), mload(raw))
        }
    }
}

/// @notice Carries a publication and does not take its value back.
contract Unreceptive {
    function carry(ISignedPublisher publisher, bytes calldata data) external payable {
        (bool success, bytes memory returned) = address(publisher).call{value: msg.value}(data);
        if (!success) {
            assembly {
                revert(add(returned, 32), mload(returned))
            }
        }
    }
}

contract SignedPublisherTest is ShippedTopics {
    /// @dev Order of secp256k1.
    uint256 private constant N = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141;

    struct Publication {
        bytes32 key;
        bytes payload;
        uint256 sequence;
        uint256 deadline;
        address payee;
    }

    struct Domain {
        string name;
        string version;
        uint256 chainId;
        address verifyingContract;
    }

    struct TypedPublication {
        bytes32 topic;
        uint256 sequence;
        bytes32 key;
        bytes payload;
        uint256 deadline;
        address payee;
    }

    address private carrier = makeAddr("carrier");
    address private signer;
    uint256 private signerKey;
    ISignedPublisher private publisher;
    bytes32 private topic;
    Counter private counter;

    function setUp() public override {
        super.setUp();
        (signer, signerKey) = makeAddrAndKey("signer");
        publisher = Shipped.signedPublisher(topics, signer, "weather", "(int16 celsius)", DEFAULT_POLICY);
        topic = publisher.topic();
        counter = new Counter();
        counter.join{value: DEPOSIT}(topics, topic, anyTerms(), NO_HOLE);
        vm.deal(carrier, 1 ether);
    }

    /* REFUSALS */

    function test_constructor_zeroSignerRefused() public {
        vm.expectRevert(ISignedPublisher.ZeroSigner.selector);
        Shipped.signedPublisher(topics, address(0), "weather", "", DEFAULT_POLICY);
    }

    function test_constructor_unusablePolicyRefused() public {
        _expectUnusable(_policy(Access.Open, Access.Open));
        _expectUnusable(_policy(Access.Asked, Access.Open));
        _expectUnusable(_policy(Access.Listed, Access.Listed));
        _expectUnusable(_policy(Access.Listed, Access.Asked));
        _expectUnusable(Policy.wrap(1));
    }

    function test_relay_sequenceInFutureRefused() public {
        Publication memory p = _publication();
        p.sequence = 2;
        _expectRefusal(p, _sign(p), abi.encodeWithSelector(ISignedPublisher.SequenceInFuture.selector, 2, 1));
    }

    function test_relay_expiredRefused() public {
        Publication memory p = _publication();
        vm.warp(p.deadline + 1);
        _expectRefusal(
            p, _sign(p), abi.encodeWithSelector(ISignedPublisher.Expired.selector, p.deadline + 1, p.deadline)
        );
    }

    function test_relay_wrongSignerRefused() public {
        Publication memory p = _publication();
        (address other, uint256 otherKey) = makeAddrAndKey("other");
        _expectWrongSigner(p, _sign(p, otherKey), other);
    }

    function test_relay_changedPublicationRefused(uint256 field, bytes32 key, bytes calldata payload, address payee)
        public
    {
        Publication memory p = _publication();
        bytes memory signature = _sign(p);
        field = bound(field, 0, 3);
        if (field == 0) p.key ^= key | bytes32(uint256(1));
        if (field == 1) p.payload = bytes.concat(p.payload, hex"00", payload);
        if (field == 2) p.deadline += 1;
        if (field == 3) p.payee = payee == address(0) ? carrier : payee;
        _expectWrongSigner(p, signature, _recover(p, signature));
    }

    /// @dev Trap E1: without a domain, what was signed for one place speaks in every other.
    function test_relay_otherChainRefused() public {
        Publication memory p = _publication();
        bytes memory signature = _sign(p);
        vm.chainId(block.chainid + 1);
        _expectWrongSigner(p, signature, _recover(p, signature));
    }

    function test_relay_otherContractRefused() public {
        Publication memory p = _publication();
        bytes memory signature = _sign(p);
        publisher = Shipped.signedPublisher(topics, signer, "weather", "(int16 celsius)", DEFAULT_POLICY);
        _expectWrongSigner(p, signature, _recover(p, signature));
    }

    function test_relay_otherTopicRefused() public {
        Publication memory p = _publication();
        bytes memory signature = _signDigest(_digest(p, topics.topicOf(address(publisher), "tides")), signerKey);
        _expectWrongSigner(p, signature, _recover(p, signature));
    }

    function test_relay_highSRefused() public {
        Publication memory p = _publication();
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(signerKey, _digest(p, topic));
        bytes memory twin = abi.encodePacked(r, bytes32(N - uint256(s)), v == 27 ? uint8(28) : uint8(27));
        assertEq(ecrecover(_digest(p, topic), v == 27 ? 28 : 27, r, bytes32(N - uint256(s))), signer, "a true twin");
        _expectWrongSigner(p, twin, address(0));
    }

    /// @dev Trap B11: a failed ecrecover answers 0, which must be nobody's signature.
    function test_relay_zeroRecoveredRefused() public {
        _expectWrongSigner(_publication(), new bytes(65), address(0));
    }

    function test_relay_otherLengthsRefused(uint256 length) public {
        length = bound(length, 0, 200);
        vm.assume(length != 65);
        bytes memory signature = new bytes(length);
        bytes memory genuine = _sign(_publication());
        for (uint256 i; i < length && i < 65; ++i) {
            signature[i] = genuine[i];
        }
        _expectWrongSigner(_publication(), signature, address(0));
    }

    function test_relay_contractSignerRefusals() public {
        ContractSigner contractSigner = _useContractSigner();
        Publication memory p = _publication();
        _expectWrongSigner(p, "not approved: it reverts", address(0));

        contractSigner.approve(_digest(p, topic));
        contractSigner.answerWith(abi.encode(bytes4(0xffffffff)));
        _expectWrongSigner(p, "no magic value", address(0));
        contractSigner.answerWith(hex"1626ba7e");
        _expectWrongSigner(p, "a magic value that is too short", address(0));
        contractSigner.answerWith(abi.encode(uint256(0x1626ba7e)));
        _expectWrongSigner(p, "a magic value in the wrong place", address(0));
        contractSigner.answerWith(new bytes(100_000));
        _expectWrongSigner(p, "a bomb", address(0));
    }

    function test_relay_tooLittleGasRefused() public {
        Publication memory p = _publication();
        bytes memory data = _relayCall(p, _sign(p));
        vm.prank(carrier);
        (bool success, bytes memory returned) = address(publisher).call{gas: 200_000}(data);
        assertFalse(success);
        assertEq(bytes4(returned), ITopics.NotEnoughGas.selector);
        assertEq(lens.getTopic(topic).sequence, 0);
    }

    function test_relay_valueNotTakenBackRefused() public {
        Publication memory p = _publication();
        Unreceptive unreceptive = new Unreceptive();
        bytes memory data = _relayCall(p, _sign(p));
        vm.expectRevert(abi.encodeWithSelector(ISignedPublisher.PaymentFailed.selector, unreceptive, 1 wei));
        unreceptive.carry{value: 1 wei}(publisher, data);

        unreceptive.carry(publisher, data);
        assertEq(counter.count(), 1, "it hindered nobody but itself");
    }

    /// @dev Carried again from inside its own delivery, a publication is a late copy; the next one has to wait.
    function test_relay_reentryRefused() public {
        Publication memory p = _publication();
        Publication memory next = _publication();
        next.sequence = 2;
        Reenterer copyist = _joinReenterer(_relayCall(p, _sign(p)));
        Reenterer hasty = _joinReenterer(_relayCall(next, _sign(next)));

        assertTrue(_relay(p, _sign(p), 0));

        assertTrue(copyist.success());
        assertFalse(abi.decode(copyist.returned(), (bool)), "a late copy");
        assertFalse(hasty.success());
        assertEq(hasty.returned(), abi.encodeWithSelector(ITopics.Delivering.selector, topic));
        assertEq(lens.getTopic(topic).sequence, 1);
        assertEq(counter.count(), 1);
    }

    /* LATE COPIES */

    /// @dev "Pub_C may choose to reward the first successfully committed transaction with the proceeds of notifying the subscribers;
    /// remaining successfully committed transactions are refunded minus transaction fees without notifying subscribers." (IV-C)
    function test_relay_laterCopyNotifiesNobodyAndReturnsValue() public {
        Publication memory p = _publication();
        address late = makeAddr("late");
        vm.deal(late, 1 ether);
        assertTrue(_relay(p, _sign(p), 0));
        uint256 paid = topics.getCredit(carrier);
        assertGt(paid, 0);

        vm.recordLogs();
        bytes memory data = _relayCall(p, _sign(p));
        vm.prank(late);
        (bool success, bytes memory returned) = address(publisher).call{value: 1 ether}(data);

        assertTrue(success);
        assertFalse(abi.decode(returned, (bool)));
        assertEq(vm.getRecordedLogs().length, 0);
        assertEq(counter.count(), 1);
        assertEq(late.balance, 1 ether);
        assertEq(topics.getCredit(late), 0);
        assertEq(topics.getCredit(carrier), paid);
    }

    function test_relay_laterCopyIsFalseAlsoAfterDeadlineOrWithoutSignature() public {
        Publication memory p = _publication();
        assertTrue(_relay(p, _sign(p), 0));
        vm.warp(p.deadline + 1);
        assertFalse(_relay(p, _sign(p), 0));
        assertFalse(_relay(p, "", 0));
    }

    /// @dev The first of two that the signer signed for one number stands.
    function test_relay_secondPublicationOfOneNumberIsLate() public {
        Publication memory p = _publication();
        Publication memory rival = _publication();
        rival.payload = "rival";
        assertTrue(_relay(p, _sign(p), 0));
        assertFalse(_relay(rival, _sign(rival), 0));
        assertEq(counter.payloadHash(), keccak256(p.payload));
    }

    /* PUBLICATIONS */

    function test_relay_publishes(bytes32 key, bytes calldata payload, uint64 delay) public {
        Publication memory p = Publication(key, payload, 1, block.timestamp + delay, address(0));
        bytes memory signature = _sign(p);
        vm.warp(p.deadline); // the last second

        vm.expectEmit(address(topics));
        emit ITopics.Published(topic, 1, key, address(publisher), payload);
        assertTrue(_relay(p, signature, 0));

        assertEq(counter.count(), 1);
        assertEq(counter.topic(), topic);
        assertEq(counter.key(), key);
        assertEq(counter.payloadHash(), keccak256(payload));
    }

    function test_relay_numbersFollowEachOther() public {
        Publication memory p = _publication();
        for (p.sequence = 1; p.sequence <= 3; ++p.sequence) {
            assertTrue(_relay(p, _sign(p), 0));
            assertEq(counter.sequence(), p.sequence);
        }
    }

    function test_relay_creditsCarrierWhereNoPayeeIsNamed() public {
        Publication memory p = _publication();
        _relay(p, _sign(p), 0);
        assertGt(topics.getCredit(carrier), 0);
        assertEq(lens.getTopic(topic).credit, 0, "nothing is left where nobody could collect it");
    }

    function test_relay_creditsNamedPayee() public {
        Publication memory p = _publication();
        p.payee = makeAddr("payee");
        _relay(p, _sign(p), 0);
        assertGt(topics.getCredit(p.payee), 0);
        assertEq(topics.getCredit(carrier), 0);
    }

    function test_relay_returnsValueOfFirstCopy(uint256 value) public {
        value = bound(value, 1, carrier.balance);
        Publication memory p = _publication();
        uint256 before = carrier.balance;
        assertTrue(_relay(p, _sign(p), value));
        assertEq(carrier.balance, before);
        assertEq(address(publisher).balance, 0);
    }

    function test_relay_contractSigner() public {
        ContractSigner contractSigner = _useContractSigner();
        Publication memory p = _publication();
        contractSigner.approve(_digest(p, topic));
        assertTrue(_relay(p, "anything it takes", 0));
        assertEq(lens.getTopic(topic).sequence, 1);
    }

    /// @dev An account may carry code (EIP-7702); its own signature still counts, and comes first.
    function test_relay_accountWithCode() public {
        Publication memory p = _publication();
        vm.etch(signer, address(counter).code);
        assertTrue(_relay(p, _sign(p), 0));
    }

    /* DIGEST */

    function test_computeDigest_isEip712(Publication memory p) public view {
        assertEq(publisher.computeDigest(p.key, p.payload, p.sequence, p.deadline, p.payee), _digest(p, topic));
    }

    /* HELP */

    function _publication() private view returns (Publication memory) {
        return Publication("home", abi.encode(int16(-4)), 1, block.timestamp + 1 hours, address(0));
    }

    function _useContractSigner() private returns (ContractSigner contractSigner) {
        contractSigner = new ContractSigner();
        signer = address(contractSigner);
        publisher = Shipped.signedPublisher(topics, signer, "weather", "", DEFAULT_POLICY);
        topic = publisher.topic();
    }

    function _policy(Access publishing, Access subscribing) private pure returns (Policy) {
        PolicyLibrary.Fields memory fields = PolicyLibrary.defaults();
        (fields.publishing, fields.subscribing) = (publishing, subscribing);
        return PolicyLibrary.pack(fields);
    }

    function _joinReenterer(bytes memory data) private returns (Reenterer reenterer) {
        reenterer = new Reenterer();
        reenterer.prepare(address(publisher), 0, data);
        reenterer.join{value: DEPOSIT}(topics, topic, anyTerms(), NO_HOLE);
    }

    /// @dev By Foundry's own EIP-712 encoder, so that the contract is not its own witness.
    function _digest(Publication memory p, bytes32 topic_) private view returns (bytes32) {
        bytes32 domain = vm.eip712HashStruct(
            "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)",
            abi.encode(Domain("Proofcast SignedPublisher", "1", block.chainid, address(publisher)))
        );
        bytes32 publication = vm.eip712HashStruct(
            "Publication(bytes32 topic,uint256 sequence,bytes32 key,bytes payload,uint256 deadline,address payee)",
            abi.encode(TypedPublication(topic_, p.sequence, p.key, p.payload, p.deadline, p.payee))
        );
        return keccak256(abi.encodePacked(hex"1901", domain, publication));
    }

    function _sign(Publication memory p) private view returns (bytes memory) {
        return _sign(p, signerKey);
    }

    function _sign(Publication memory p, uint256 privateKey) private view returns (bytes memory) {
        return _signDigest(_digest(p, topic), privateKey);
    }

    function _signDigest(bytes32 digest, uint256 privateKey) private pure returns (bytes memory) {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(privateKey, digest);
        return abi.encodePacked(r, s, v);
    }

    /// @dev Whom the contract must take a genuine signature over something else for.
    function _recover(Publication memory p, bytes memory signature) private view returns (address) {
        bytes32 digest = _digest(p, publisher.topic());
        (bytes32 r, bytes32 s) = abi.decode(signature, (bytes32, bytes32));
        return ecrecover(digest, uint8(signature[64]), r, s);
    }

    function _relayCall(Publication memory p, bytes memory signature) private pure returns (bytes memory) {
        return abi.encodeCall(ISignedPublisher.relay, (p.key, p.payload, p.sequence, p.deadline, p.payee, signature));
    }

    function _relay(Publication memory p, bytes memory signature, uint256 value) private returns (bool) {
        vm.prank(carrier);
        return publisher.relay{value: value}(p.key, p.payload, p.sequence, p.deadline, p.payee, signature);
    }

    function _expectUnusable(Policy policy) private {
        vm.expectRevert(abi.encodeWithSelector(ISignedPublisher.UnusablePolicy.selector, policy));
        Shipped.signedPublisher(topics, signer, "weather", "", policy);
    }

    function _expectWrongSigner(Publication memory p, bytes memory signature, address have) private {
        _expectRefusal(p, signature, abi.encodeWithSelector(ISignedPublisher.WrongSigner.selector, have, signer));
    }

    /// @dev With value, which a refusal must leave with the carrier.
    function _expectRefusal(Publication memory p, bytes memory signature, bytes memory reason) private {
        uint256 before = carrier.balance;
        vm.expectRevert(reason);
        _relay(p, signature, 1 gwei);
        assertEq(carrier.balance, before);
        assertEq(lens.getTopic(publisher.topic()).sequence, 0);
        assertEq(counter.count(), 0);
    }
}
