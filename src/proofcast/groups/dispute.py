"""Whose fault is it? What a device asks a peer when something does not fit, and how it judges the answer.

    question = 1 u8 | your index u64 | first index u64 | u32 n | n x (sequence u64 | digest 32)
                                                       "up to the index you named, our history as I have it is this"
             | 2 u8 | sequence u64                     "I cannot read what you sent there"
    answer   = question digest 32 | found u8 | sequence u64 | blind 32 | exhibit

To the first question the peer answers with its RECEIVED leaf at the first place where the histories differ, to the
second with its SENT leaf; or that the histories agree, or that it has not kept what it should have. The verdict: two
exhibits that contradict each other convict the server. Two that agree, an answer that is wrong, or that there is no
difference after all, convict the peer, whose message could not be right then.
"""

from dataclasses import dataclass
from hashlib import sha256

from proofcast.groups.attested import Attested
from proofcast.groups.evidence import encode_exhibit, find_proof
from proofcast.groups.outputs import Culprit
from proofcast.groups.proof import (
    Exhibit,
    Kind,
    Reader,
    Refused,
    parse_exhibit,
    verify_exhibit,
    verify_proof,
    verify_signature,
)
from proofcast.groups.series import compute_blind
from proofcast.groups.transcript import Transcript
from proofcast.groups.wire import WireReader, refuse

ENTRIES_MAX = 16_384
"""Of a question: 640 kB."""
DIFFERENT, AGREEING, FORGOTTEN = 0, 1, 2


@dataclass(frozen=True, slots=True)
class HistoryQuestion:
    last: int
    """Index that the peer's payload named."""
    first: int
    """Index of the first entry."""
    entries: tuple[tuple[int, bytes], ...]

    def encode(self) -> bytes:
        entries = (sequence.to_bytes(8, "big") + digest for sequence, digest in self.entries)
        head = b"\x01" + self.last.to_bytes(8, "big") + self.first.to_bytes(8, "big")
        return head + len(self.entries).to_bytes(4, "big") + b"".join(entries)


@dataclass(frozen=True, slots=True)
class SentQuestion:
    sequence: int

    def encode(self) -> bytes:
        return b"\x02" + self.sequence.to_bytes(8, "big")


Question = HistoryQuestion | SentQuestion


def make_history_question(transcript: Transcript, last: int) -> HistoryQuestion:
    entries = tuple(zip(transcript.sequences, transcript.digests, strict=True))[:ENTRIES_MAX]
    return HistoryQuestion(last, transcript.offset, entries)


def parse_question(data: bytes) -> Question:
    reader = WireReader(data, "a question")
    question: Question
    number = reader.number(1)
    if number == 1:
        last, first = reader.number(8), reader.number(8)
        entries = tuple((reader.number(8), reader.take(32)) for _ in range(reader.count(4, ENTRIES_MAX)))
        question = HistoryQuestion(last, first, entries)
    elif number == 2:
        question = SentQuestion(reader.number(8))
    else:
        raise refuse(f"a question of the unknown kind `{number}`")
    reader.finish()
    return question


@dataclass(frozen=True, slots=True)
class Answer:
    question: bytes
    """Digest of what was asked."""
    found: int
    sequence: int = 0
    blind: bytes = bytes(32)
    """Of the asker's name in the row shown."""
    exhibit: bytes = b""

    def encode(self) -> bytes:
        return self.question + bytes([self.found]) + self.sequence.to_bytes(8, "big") + self.blind + self.exhibit


def parse_answer(data: bytes) -> Answer:
    reader = WireReader(data, "an answer")
    question, found, sequence, blind = reader.take(32), reader.count(1, FORGOTTEN), reader.number(8), reader.take(32)
    return Answer(question, found, sequence, blind, reader.take(len(data) - reader.at))


def compute_question_digest(question: Question) -> bytes:
    return sha256(b"pcg1/qst" + question.encode()).digest()


# --- the one who is asked


def find_difference(question: HistoryQuestion, transcript: Transcript) -> int | None:
    """Sequence of the first entry that only one of the two has, up to the index in question."""
    own = dict(enumerate(zip(transcript.sequences, transcript.digests, strict=True), start=transcript.offset))
    theirs = dict(enumerate(question.entries, start=question.first))
    first = max(transcript.offset, question.first)
    for index in range(first, min(question.last, max([first, *own, *theirs])) + 1):
        if own.get(index) != theirs.get(index):
            return min(entry[0] for entry in (own.get(index), theirs.get(index)) if entry is not None)
    return None


def make_answer(question: Question, peer: bytes, transcript: Transcript, attested: Attested) -> Answer:
    """One row, blinded: whatever the peer asks, it can read no other name in it than its own."""
    digest = compute_question_digest(question)
    sequence: int | None
    if isinstance(question, SentQuestion):
        kind, sequence = Kind.SENT, question.sequence
    else:
        kind, sequence = Kind.RECEIVED, find_difference(question, transcript)
    if sequence is None:
        return Answer(digest, AGREEING)
    statement = attested.find(kind, sequence)
    if statement is None:
        return Answer(digest, FORGOTTEN)
    found = statement.find_row(sequence)
    if found is None:
        return Answer(digest, DIFFERENT, sequence, exhibit=encode_exhibit(statement.make_exhibit()))
    blind = compute_blind(found[1], peer)
    return Answer(digest, DIFFERENT, sequence, blind, encode_exhibit(statement.make_exhibit(sequence)))


# --- the one who asked


@dataclass(frozen=True, slots=True)
class Verdict:
    culprit: Culprit
    sequence: int
    sentence: str
    proof: bytes | None = None


def judge_answer(question: Question, answer: Answer, peer: bytes, attested: Attested) -> Verdict:
    name = f"`{peer.hex()}`"
    sequence = question.sequence if isinstance(question, SentQuestion) else answer.sequence
    if answer.found == FORGOTTEN:
        return Verdict(Culprit.SILENT_PEER, sequence, f"{name} has not kept the server's word about it")
    if answer.found == AGREEING:
        return Verdict(Culprit.PEER, sequence, f"{name} sent a false payload: its own history is ours")
    own = attested.find(Kind.RECEIVED, sequence)
    if own is None:
        return Verdict(Culprit.PEER, sequence, f"{name} answered about `{sequence}`, which was not asked")
    exhibit = read_exhibit(answer.exhibit, attested.server_key)
    kind = Kind.SENT if isinstance(question, SentQuestion) else Kind.RECEIVED
    if exhibit is None or exhibit.leaf.client != peer or exhibit.leaf.kind != kind or not exhibit.covers(sequence):
        return Verdict(Culprit.PEER, sequence, f"{name} answered with something the server did not sign")
    found = own.find_row(sequence)
    blinds = [answer.blind, *([compute_blind(found[1], peer)] if found else [])]
    proof = find_proof(attested.server_key, (own.make_exhibit(sequence), exhibit), blinds)
    if proof is not None:
        return Verdict(Culprit.SERVER, sequence, verify_proof(proof, attested.server_key).sentence, proof)
    return Verdict(Culprit.PEER, sequence, f"{name} is at fault: the server said the same to both of us")


def read_exhibit(data: bytes, server_key: bytes) -> Exhibit | None:
    """None where it is not what the server signed."""
    reader = Reader(data)
    try:
        exhibit = parse_exhibit(reader)
        reader.finish()
        verify_exhibit(exhibit)
        verify_signature(exhibit.checkpoint, exhibit.signature)
    except Refused:
        return None
    return exhibit if exhibit.checkpoint.server_key == server_key else None
