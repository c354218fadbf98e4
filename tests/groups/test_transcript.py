"""Shared histories, without any network."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofcast.groups.histories import Histories
from proofcast.groups.sealing import Payload
from proofcast.groups.transcript import (
    Comparison,
    Transcript,
    compute_base,
    compute_shared,
    parse_transcript,
)

A, B = b"a" * 32, b"b" * 32
KEY = bytes(32)


def make_transcript(count: int) -> Transcript:
    transcript = Transcript((0, 0), [compute_base(A, B, (0, 0))])
    for sequence in range(1, count + 1):
        transcript.append(sequence, compute_shared(sequence, A, bytes(32), (A, B)))
    return transcript


def test_drop_at_vector_end_is_detected() -> None:
    """Flaw S3 of the reference: an index one beyond the end was accepted, and the look-up failed."""
    ours, theirs = make_transcript(3), make_transcript(4)
    assert ours.compare(theirs.index, theirs.head) is Comparison.BEYOND
    assert theirs.compare(ours.index, ours.head) is Comparison.AGREES


@pytest.mark.parametrize(
    "changed",
    [
        compute_shared(2, A, bytes(32), (A, B)),
        compute_shared(1, B, bytes(32), (A, B)),
        compute_shared(1, A, b"c" * 32, (A, B)),
        compute_shared(1, A, bytes(32), (A, B, b"c" * 32)),
    ],
    ids=["sequence", "sender", "common ciphertext", "recipients"],
)
def test_any_difference_of_a_message_is_found(changed: bytes) -> None:
    ours, theirs = make_transcript(1), make_transcript(0)
    theirs.append(1, changed)
    assert ours.compare(theirs.index, theirs.head) is Comparison.DIFFERS


def test_forgotten_entry_is_not_judged() -> None:
    ours = make_transcript(5)
    ours.trim(3)
    assert ours.compare(2, bytes(32)) is Comparison.UNKNOWN
    assert ours.compare(3, bytes(32)) is Comparison.DIFFERS


def test_old_generation_is_a_lie() -> None:
    histories = Histories(A)
    base = compute_base(A, B, (0, 5))
    assert histories.judge(B, Payload(KEY, base, 0, 5, 0)) is Comparison.AGREES
    assert histories.judge(B, Payload(KEY, base, 0, 4, 0)) is Comparison.DIFFERS


def test_payload_for_another_generation_is_not_judged() -> None:
    assert Histories(A).judge(B, Payload(KEY, bytes(32), 9, 0, 7)) is Comparison.UNKNOWN


@settings(max_examples=30)
@given(st.lists(st.binary(min_size=32, max_size=32), max_size=20), st.data())
def test_both_ends_agree_at_every_index_whatever_was_trimmed(messages: list[bytes], data: st.DataObject) -> None:
    ours, theirs = make_transcript(0), make_transcript(0)
    for sequence, digest in enumerate(messages, start=1):
        shared = compute_shared(sequence, A, digest, (A, B))
        ours.append(sequence, shared)
        theirs.append(sequence, shared)
    index = data.draw(st.integers(0, len(messages)))
    ours.validate(index)
    for place in range(index, len(messages) + 1):
        assert ours.compare(place, theirs.digests[place]) is Comparison.AGREES
    assert parse_transcript(ours.encode()) == ours
