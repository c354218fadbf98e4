"""Series, packets, attestations, addresses and bundles: strict in what they accept."""

from collections.abc import Callable
from contextlib import suppress
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nacl.signing import SigningKey

from proofcast.errors import InvalidInput, InvalidRequest, ProofcastError
from proofcast.groups.identity import (
    BUNDLE_BYTES,
    KeyBundle,
    compute_fingerprint,
    compute_safety_number,
    encode_address,
    parse_address,
    parse_bundle,
)
from proofcast.groups.packet import parse_packet
from proofcast.groups.prefix_tree import PrefixTree
from proofcast.groups.proof import EMPTY_ROOT, Refused, compute_root
from proofcast.groups.series import Series, parse_series
from proofcast.testing.groups.framing import Conspiracy

PLOT = Conspiracy(5)
SERIES = PLOT.sent[0]
PACKETS = [packet for packets in PLOT.server.history.values() for packet in packets]
IDENTITY = SigningKey(b"i" * 32)
DEVICE = bytes(IDENTITY.verify_key)


def make_bundle() -> KeyBundle:
    unsigned = KeyBundle(DEVICE, b"c" * 32, False, b"o" * 32, b"")
    return KeyBundle(DEVICE, b"c" * 32, False, b"o" * 32, IDENTITY.sign(unsigned.get_signed_bytes()).signature)


# --- refusals


@pytest.mark.parametrize(
    ("parse", "data"),
    [(parse_series, SERIES.encode()), (parse_packet, PACKETS[0].encode()), (parse_bundle, make_bundle().encode())],
    ids=["series", "packet", "bundle"],
)
def test_every_length_but_the_right_one_is_refused(parse: Callable[[bytes], object], data: bytes) -> None:
    for size in range(len(data)):
        with pytest.raises(InvalidInput):
            parse(data[:size])
    with pytest.raises(InvalidInput):
        parse(data + b"\0")


@settings(max_examples=30)
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for parse in (parse_series, parse_packet, parse_bundle):
        for prefix in (b"", SERIES.encode()[:43], PACKETS[0].encode()[:400]):
            with suppress(ProofcastError):
                parse(prefix + data)


def test_recipients_must_be_canonical() -> None:
    message = next(message for series in PLOT.sent for message in series.messages if len(message.envelopes) > 1)
    one, other = message.envelopes[:2]
    sender = message.sender
    for envelopes in ((other, one), (one, one), ()):
        wrong = type(message)(sender, message.common, envelopes)
        with pytest.raises(InvalidInput, match=r"sorted|include its sender"):
            parse_series(Series(sender, 1, (wrong,)).encode())


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[:-1],
        lambda text: text + "A",
        lambda text: text.replace("PCG1", "PCG2"),
        lambda text: text[:10] + ("A" if text[10] != "A" else "B") + text[11:],
        lambda text: "",
    ],
    ids=["short", "long", "prefix", "letter", "empty"],
)
def test_wrong_address_is_refused(change: Callable[[str], str]) -> None:
    with pytest.raises(InvalidRequest, match="address"):
        parse_address(change(encode_address(DEVICE)))


def test_bundle_of_another_device_is_refused() -> None:
    """Man in the middle: the signature is checked against the device that was asked for."""
    with pytest.raises(InvalidInput, match="not signed by"):
        make_bundle().verify(bytes(SigningKey(b"x" * 32).verify_key))


def test_path_whose_bits_do_not_fall_is_refused() -> None:
    with pytest.raises(Refused, match="decided below"):
        compute_root(bytes(32), 0, ((3, bytes(32)), (3, bytes(32))))


# --- what is right


def test_series_and_packets_are_read_as_written() -> None:
    assert [parse_series(one.encode()) for one in PLOT.sent] == PLOT.sent
    assert [parse_packet(one.encode()) for one in PACKETS] == PACKETS


def test_address_survives_people() -> None:
    text = encode_address(DEVICE)
    assert len(text) == 60
    assert parse_address(f" {text[:20].lower()} {text[20:]}\n") == DEVICE


def test_bundle_is_read_as_written() -> None:
    bundle = parse_bundle(make_bundle().encode())
    bundle.verify(DEVICE)
    assert bundle == make_bundle()
    assert len(bundle.encode()) == BUNDLE_BYTES


def test_safety_number_is_the_same_on_both_screens() -> None:
    other = bytes(SigningKey(b"x" * 32).verify_key)
    assert compute_safety_number(DEVICE, other) == compute_safety_number(other, DEVICE)
    assert len(compute_safety_number(DEVICE, other).replace(" ", "")) == 60
    assert compute_fingerprint(DEVICE) != compute_fingerprint(other)


@settings(max_examples=30)
@given(st.dictionaries(st.integers(0, 2**256 - 1), st.binary(min_size=32, max_size=32), max_size=40))
def test_every_leaf_leads_to_the_root_and_no_other_does(leaves: dict[int, bytes]) -> None:
    tree = PrefixTree(leaves)
    for position, leaf in leaves.items():
        path = tree.get_path(position)
        assert compute_root(leaf, position, path) == tree.root
        assert compute_root(bytes(31) + b"\1", position, path) != tree.root
    assert leaves or tree.root == EMPTY_ROOT


@settings(max_examples=30)
@given(st.integers(1, 2**32), st.integers(2, 30))
def test_a_leaf_at_another_position_does_not_lead_to_the_root(seed: int, size: int) -> None:
    """One position, one leaf: where a path decides a bit, another position would turn the other way."""
    random = Random(seed)
    leaves = {random.getrandbits(256): random.randbytes(32) for _ in range(size)}
    tree = PrefixTree(leaves)
    one, other = random.sample(sorted(leaves), 2)
    assert compute_root(leaves[one], other, tree.get_path(one)) != tree.root
