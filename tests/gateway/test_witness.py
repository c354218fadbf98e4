"""What gateways carry, checked by a peer that trusts one block hash: what is changed, invented or out of place."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from proofcast.client.checking import Wanted
from proofcast.client.lineage import TRUSTED
from proofcast.errors import InvalidInput
from proofcast.event import Event
from proofcast.gateway.envelope import Envelope, encode_envelope, parse_envelope
from proofcast.gateway.witness import Witness
from proofcast.overlay.settings import PAYLOAD_BYTES_MAX
from proofcast.testing.broker.running import ChainFeed, run_broker
from proofcast.testing.feed.publishing import TOPICS_ADDRESS, PublishingChain
from proofcast.testing.gateway import read_envelopes

BLOCKS = 40


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[PublishingChain, str]]:
    chain = PublishingChain(7, topics=1, transactions=1, events_each=1, finalized_depth=4)
    chain.mine(BLOCKS)
    with ChainFeed(chain, tmp_path_factory.mktemp("gateway")) as feed, run_broker(feed.folder) as broker:
        feed.follow()
        yield chain, broker.url


@pytest.fixture(scope="module")
def envelopes(chain: tuple[PublishingChain, str]) -> list[Envelope]:
    """Of a gateway that trusts block 20: events of blocks 2 to 20 lead to it, later ones stand on it."""
    return read_envelopes(chain[1], chain[0].canonical[20].hash)


def make_witness(block_hash: bytes, topic: bytes = b"") -> Witness:
    return Witness(block_hash, Wanted(contract=TOPICS_ADDRESS, topic=topic))


def verify(witness: Witness, envelope: Envelope) -> Event:
    return witness.verify(encode_envelope(envelope))


@pytest.fixture
def witness(chain: tuple[PublishingChain, str]) -> Witness:
    return make_witness(chain[0].canonical[20].hash)


# --- what is refused


@pytest.mark.parametrize("payload", [b"", b"\x80", b"news", encode_envelope(Envelope(b"", b"", ()))[:-1], b"\x9f" * 99])
def test_what_is_no_envelope_is_refused(payload: bytes, witness: Witness) -> None:
    with pytest.raises(InvalidInput, match="the payload"):
        witness.verify(payload)


def test_headers_beyond_the_bound_are_refused() -> None:
    with pytest.raises(InvalidInput, match="at most `512` headers"):
        parse_envelope(encode_envelope(Envelope(b"", b"", (b"\xc0",) * 513)))


def test_changed_payload_is_refused(envelopes: list[Envelope], witness: Witness) -> None:
    found = orjson.loads(envelopes[0].event)
    changed = replace(envelopes[0], event=orjson.dumps(found | {"data_base64": "bGllcw=="}))
    with pytest.raises(InvalidInput, match="payload is"):
        verify(witness, changed)


def test_evidence_of_another_event_is_refused(envelopes: list[Envelope], witness: Witness) -> None:
    with pytest.raises(InvalidInput):
        verify(witness, replace(envelopes[0], evidence=envelopes[1].evidence))


def test_changed_evidence_is_refused(envelopes: list[Envelope], witness: Witness) -> None:
    for place in range(0, len(envelopes[0].evidence), 37):
        data = bytearray(envelopes[0].evidence)
        data[place] ^= 1
        changed = replace(envelopes[0], evidence=bytes(data))
        if place > 40:  # before it stand the format and the maker's word of trust, which nobody relies on
            with pytest.raises(InvalidInput):
                verify(witness, changed)


def test_headers_with_a_gap_are_refused(envelopes: list[Envelope], witness: Witness) -> None:
    first, _, *others = envelopes[0].headers
    with pytest.raises(InvalidInput):
        verify(witness, replace(envelopes[0], headers=(first, *others)))


def test_block_that_is_not_among_the_headers_is_refused(envelopes: list[Envelope], witness: Witness) -> None:
    with pytest.raises(InvalidInput, match="is not among the"):
        verify(witness, replace(envelopes[0], headers=envelopes[0].headers[1:]))


def test_chain_that_leads_to_nothing_trusted_is_refused(envelopes: list[Envelope]) -> None:
    for envelope in envelopes:
        with pytest.raises(InvalidInput, match="lead to no block that you trust"):
            verify(make_witness(b"\7" * 32), envelope)


def test_chain_of_another_branch_is_refused(
    chain: tuple[PublishingChain, str], envelopes: list[Envelope], tmp_path: Path
) -> None:
    """Somebody made up a chain of his own: it is as long and as well-formed, and leads nowhere."""
    made_up = PublishingChain(8, topics=1, transactions=1, events_each=1, finalized_depth=4)
    made_up.mine(BLOCKS)
    with ChainFeed(made_up, tmp_path) as feed, run_broker(feed.folder) as broker:
        feed.follow()
        forged = read_envelopes(broker.url, made_up.canonical[20].hash)
    witness = make_witness(chain[0].canonical[20].hash)
    for envelope in envelopes:
        verify(witness, envelope)
    for envelope in forged:
        with pytest.raises(InvalidInput, match="lead to no block that you trust"):
            verify(witness, envelope)


def test_other_topics_and_contracts_are_refused(chain: tuple[PublishingChain, str], envelopes: list[Envelope]) -> None:
    trusted = chain[0].canonical[20].hash
    with pytest.raises(InvalidInput, match="topic is"):
        verify(make_witness(trusted, b"\7" * 32), envelopes[0])
    with pytest.raises(InvalidInput, match="nothing that was subscribed to"):
        verify(Witness(trusted, Wanted(b"\7" * 20)), envelopes[0])


# --- what is accepted


def test_events_before_the_trusted_block_are_proven_and_later_ones_linked(
    chain: tuple[PublishingChain, str], envelopes: list[Envelope], witness: Witness
) -> None:
    words = {event.position.block_number: event.trust for event in (verify(witness, one) for one in envelopes)}
    assert words == {number: TRUSTED if number <= 20 else "linked" for number in range(2, BLOCKS + 1)}


def test_order_does_not_matter(envelopes: list[Envelope], witness: Witness) -> None:
    for envelope in envelopes[::-1]:
        verify(witness, envelope)


def test_witness_needs_not_every_event(chain: tuple[PublishingChain, str], envelopes: list[Envelope]) -> None:
    """It trusts block 21, which no gateway knows of: headers before the event reach back so far."""
    witness = make_witness(chain[0].canonical[21].hash)
    assert verify(witness, envelopes[-1]).trust == "linked"


def test_envelope_fits_the_overlay(envelopes: list[Envelope]) -> None:
    assert max(len(encode_envelope(one)) for one in envelopes) < PAYLOAD_BYTES_MAX / 4
