"""The contract `SignedPublisher`: publications that carry their author's EIP-712 signature."""

from dataclasses import dataclass

from proofcast.onchain.abi import NOBODY, Call, encode_call, encode_values, format_value, reading
from proofcast.onchain.policy import Policy
from proofcast.onchain.topics import NO_KEY, READ_WORD

DOMAIN_NAME = "Proofcast SignedPublisher"
DOMAIN_VERSION = "1"
PUBLICATION_TYPE = (
    ("topic", "bytes32"),
    ("sequence", "uint256"),
    ("key", "bytes32"),
    ("payload", "bytes"),
    ("deadline", "uint256"),
    ("payee", "address"),
)

READ_ADDRESS = reading(bytes, "(address)")

TypedData = tuple[dict[str, object], dict[str, list[dict[str, str]]], dict[str, object]]
"""Of EIP-712: domain, types, message."""


@dataclass(frozen=True, slots=True)
class Publication:
    """What a signer says; where and in which words it may be said is part of it."""

    chain_id: int
    contract: bytes
    """The `SignedPublisher` it is for."""
    topic: bytes
    sequence: int
    payload: bytes
    deadline: int
    """Last second, as Unix time, at which it may be published."""
    key: bytes = NO_KEY
    payee: bytes = NOBODY
    """Who is credited; the zero address for whoever carries it."""


def encode_creation(
    creation_code: bytes, topics: bytes, signer: bytes, name: str, payload_type: str = "", policy: Policy | None = None
) -> bytes:
    """What a transaction that creates a `SignedPublisher` carries."""
    arguments = (topics, signer, name, payload_type, policy.pack() if policy else 0)
    return creation_code + encode_values("(address,address,string,string,uint256)", arguments)


def make_typed_data(publication: Publication) -> TypedData:
    """What the signer signs."""
    domain: dict[str, object] = {
        "name": DOMAIN_NAME,
        "version": DOMAIN_VERSION,
        "chainId": publication.chain_id,
        "verifyingContract": format_value(publication.contract),
    }
    types = {"Publication": [{"name": name, "type": kind} for name, kind in PUBLICATION_TYPE]}
    message = {name: getattr(publication, name) for name, _ in PUBLICATION_TYPE}
    return domain, types, message | {"payee": format_value(publication.payee)}


def relay(publication: Publication, signature: bytes) -> Call[bool]:
    data = encode_call(
        "relay(bytes32,bytes,uint256,uint256,address,bytes)",
        publication.key,
        publication.payload,
        publication.sequence,
        publication.deadline,
        publication.payee,
        signature,
    )
    return Call(data, reading(bool, "(bool)"))


def compute_digest(publication: Publication) -> Call[bytes]:
    """The contract's own opinion of what was signed."""
    data = encode_call(
        "computeDigest(bytes32,bytes,uint256,uint256,address)",
        publication.key,
        publication.payload,
        publication.sequence,
        publication.deadline,
        publication.payee,
    )
    return Call(data, READ_WORD)


def get_topics() -> Call[bytes]:
    return Call(encode_call("topics()"), READ_ADDRESS)


def get_topic_id() -> Call[bytes]:
    return Call(encode_call("topic()"), READ_WORD)


def get_signer() -> Call[bytes]:
    return Call(encode_call("signer()"), READ_ADDRESS)
