"""Shared histories, without any network."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proofcast.errors import InvalidInput
from proofcast.groups.histories import Histories
from proofcast.groups.sealing import Payload
from proofcast.groups.transcript import CHUNK_ENTRIES, Comparison, Transcript, compute_base, compute_shared

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


# --- what is stored


def store(histories: Histories, records: dict[str, bytes]) -> int:
    """Keep what has changed; its bytes."""
    size = 0
    for name, value in histories.take_changes():
        size += len(value or b"")
        if value is None:
            records.pop(name)
        else:
            records[name] = value
    return size


def load(records: dict[str, bytes]) -> Histories:
    histories = Histories(A)
    for name in sorted(records):
        histories.load(name, records[name])
    return histories


def test_transcript_without_all_its_entries_is_refused() -> None:
    histories, records = Histories(A), {}
    for sequence in range(CHUNK_ENTRIES + 1):
        histories.append((A, B), sequence, bytes(32))
    store(histories, records)
    del records[f"entries/{B.hex()}/0"]
    with pytest.raises(InvalidInput, match="lacks some of its `18` entries"):
        load(records)


@pytest.mark.parametrize("seed", range(20))
def test_stored_transcript_comes_back_whatever_happened(seed: int) -> None:
    dice, records = random.Random(seed), {}
    histories = Histories(A)
    for sequence in range(1, 200):
        histories.append((A, B), sequence, dice.randbytes(32))
        transcript = histories.get(B)
        if dice.random() < 0.05:
            transcript.validate(dice.randint(transcript.offset, transcript.index))
        elif dice.random() < 0.02:
            histories.pause(B)
        elif dice.random() < 0.02:
            transcript.restart(dice.randbytes(32), (0, sequence))
        if dice.random() < 0.5:
            store(histories, records)
            assert load(records).transcripts == histories.transcripts
        if dice.random() < 0.1:
            store(histories, records)
            histories = load(records)
    transcript = histories.get(B)
    kept = range(transcript.offset // CHUNK_ENTRIES, transcript.index // CHUNK_ENTRIES + 1)
    store(histories, records)
    assert {name for name in records if "entries" in name} == {f"entries/{B.hex()}/{chunk}" for chunk in kept}


def test_silent_peer_makes_no_message_dearer_to_store() -> None:
    histories, records = Histories(A), {}
    sizes = []
    for sequence in range(1_000):
        histories.append((A, B), sequence, bytes(32))
        sizes.append(store(histories, records))
    assert max(sizes[100:]) == max(sizes[:100]) < 1_000
