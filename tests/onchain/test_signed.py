"""Signed publications: our typed data is the contract's, and what must be refused is."""

from dataclasses import replace

import pytest
from eth_account import Account
from eth_account.messages import _hash_eip191_message, encode_typed_data

from proofcast.errors import InvalidRequest, Reason, Unavailable
from proofcast.onchain import lens, signed, topics
from proofcast.onchain.abi import encode_values
from proofcast.onchain.events import Published
from proofcast.onchain.io.artefacts import load_artefact
from proofcast.onchain.io.publishing import relay_publication
from proofcast.onchain.io.reading import read
from proofcast.onchain.io.receipts import Receipt
from proofcast.onchain.request import Request
from proofcast.testing.onchain import Playground

pytestmark = pytest.mark.needs("anvil")

SIGNER = Account.from_key("5e" * 32)
FAR_FUTURE = 1 << 40


@pytest.fixture
def publication(playground: Playground) -> signed.Publication:
    code = load_artefact("SignedPublisher").creation_code
    address = bytes.fromhex(SIGNER.address[2:])
    creation = signed.encode_creation(code, playground.topics, address, "signed", "(uint8 x)")
    contract = playground.send(Request(None, creation)).contract_address
    assert contract
    topic = read(playground.rpc, contract, signed.get_topic_id())
    assert topic == topics.compute_topic(contract, "signed")
    assert read(playground.rpc, contract, signed.get_signer()) == address
    assert read(playground.rpc, contract, signed.get_topics()) == playground.topics
    return signed.Publication(31337, contract, topic, 1, b"payload", FAR_FUTURE, b"\x07" * 32)


def sign(publication: signed.Publication) -> bytes:
    return bytes(SIGNER.sign_typed_data(*signed.make_typed_data(publication)).signature)


def relay(playground: Playground, publication: signed.Publication, signature: bytes, key: str = "r") -> Receipt:
    sender = playground.open_sender(1)
    return relay_publication(sender, playground.contracts, publication, signature, idempotency_key=key)


@pytest.mark.parametrize(
    "change", [{"payload": b"other"}, {"key": bytes(32)}, {"payee": b"\x01" * 20}, {"deadline": FAR_FUTURE - 1}]
)
def test_changed_publication_is_refused(
    playground: Playground, publication: signed.Publication, change: dict[str, bytes]
) -> None:
    signature = sign(publication)
    with pytest.raises(InvalidRequest, match="the signature is by") as raised:
        relay(playground, replace(publication, **change), signature)
    assert raised.value.reason is Reason.NOT_ALLOWED


@pytest.mark.parametrize("change", [{"chain_id": 1}, {"contract": b"\x01" * 20}, {"topic": bytes(32)}])
def test_signature_for_elsewhere_is_refused(
    playground: Playground, publication: signed.Publication, change: dict[str, int]
) -> None:
    with pytest.raises(InvalidRequest, match="the signature is by"):
        relay(playground, publication, sign(replace(publication, **change)))


def test_expired_publication_is_refused(playground: Playground, publication: signed.Publication) -> None:
    late = replace(publication, deadline=1)
    with pytest.raises(InvalidRequest, match="but the publication had to be relayed by `1`") as raised:
        relay(playground, late, sign(late))
    assert raised.value.need == 1


def test_early_publication_must_wait(playground: Playground, publication: signed.Publication) -> None:
    early = replace(publication, sequence=2)
    with pytest.raises(Unavailable, match="is number `2` but the next event is number `1`"):
        relay(playground, early, sign(early))


def test_digest_is_the_contracts(playground: Playground, publication: signed.Publication) -> None:
    ours = _hash_eip191_message(encode_typed_data(*signed.make_typed_data(publication)))
    assert read(playground.rpc, publication.contract, signed.compute_digest(publication)) == ours


def test_first_copy_publishes_and_the_second_notifies_nobody(
    playground: Playground, publication: signed.Publication
) -> None:
    counter = playground.create("Counter")
    playground.join(counter, publication.topic)
    signature = sign(publication)
    first = relay(playground, publication, signature, "first")
    event = first.get_event(playground.topics, Published)
    assert (event.sequence, event.key, event.payload) == (1, publication.key, b"payload")
    second = relay(playground, publication, signature, "second")
    assert list(second.find_events(playground.topics, Published)) == []
    assert read(playground.rpc, playground.lens, lens.get_topic(publication.topic)).sequence == 1


def test_creation_code_ends_with_its_arguments() -> None:
    arguments = encode_values("(address,address,string,string,uint256)", (b"\1" * 20, b"\2" * 20, "n", "", 0))
    assert signed.encode_creation(b"code", b"\1" * 20, b"\2" * 20, "n") == b"code" + arguments
