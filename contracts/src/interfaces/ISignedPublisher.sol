// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.28;

import {Policy} from "../types/Policy.sol";
import {ITopics} from "./ITopics.sol";

/// @title SignedPublisher: a topic whose events carry their author's signature
/// @notice One topic and the one signer who speaks in it. The signer needs no ether and no node: it signs a publication and hands it to
/// anybody; whoever brings the first valid copy to the chain publishes it, and is paid by the subscribers.
///
/// Theory of operation
/// - The signature is EIP-712 over `Publication(bytes32 topic,uint256 sequence,bytes32 key,bytes payload,uint256 deadline,address
///   payee)` in the domain ("Proofcast SignedPublisher", "1", chain id, this contract): it says nothing on another chain, in
///   another contract or under another topic.
/// - The signature covers the sequence, the topic gives each number once and only this contract publishes in it, so a publication is
///   published once at most, and where the signer signed two for one number the first to arrive stands.
/// - A signer may be an account or a contract (ERC-1271). 65 bytes are first tried as an account's signature, because an account
///   may carry code too (EIP-7702).
/// - Nobody administers this contract: signer and policy stay. A signer that must be replaceable is a contract.
interface ISignedPublisher {
    /* ERRORS */

    error ZeroSigner();
    /// @notice Only a topic that this contract alone publishes in and that everybody may subscribe to makes sense: nobody could list
    /// accounts or answer for it later.
    error UnusablePolicy(Policy policy);
    /// @notice An earlier publication is still missing.
    error SequenceInFuture(uint256 have, uint256 need);
    /// @param have this block's time
    /// @param need the latest time the signer allowed
    error Expired(uint256 have, uint256 need);
    /// @param have the account that made the signature; 0 where it is no account's signature
    /// @param need the signer
    error WrongSigner(address have, address need);
    error PaymentFailed(address to, uint256 amount);

    /* PUBLICATION */

    /// @notice Publishes what the signer signed; anybody may. A copy that comes too late notifies nobody, costs no more than its own
    /// gas and does not revert.
    /// @dev Any value sent comes back to the caller in every case. A late copy is not looked at further, so its signature may be bad.
    /// @param key the routing key, or 0
    /// @param sequence the number the event must get in its topic
    /// @param deadline the last second at which it may be published
    /// @param payee who is credited what the subscribers pay; 0 for the caller
    /// @param signature 65 bytes of an account, or whatever the signer contract takes
    /// @return published whether this copy was the one
    function relay(
        bytes32 key,
        bytes calldata payload,
        uint256 sequence,
        uint256 deadline,
        address payee,
        bytes calldata signature
    ) external payable returns (bool published);

    /* VIEWS */

    function topics() external view returns (ITopics);

    function topic() external view returns (bytes32);

    function signer() external view returns (address);

    /// @notice The EIP-712 digest that the signer signs.
    function computeDigest(bytes32 key, bytes calldata payload, uint256 sequence, uint256 deadline, address payee)
        external
        view
        returns (bytes32);
}
