"""Open questions, ours and those of our peers, from when they arise until they are settled."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from struct import Struct

from proofcast.groups.attested import Attested, Changes
from proofcast.groups.dispute import (
    Answer,
    Question,
    SentQuestion,
    Verdict,
    compute_question_digest,
    judge_answer,
    make_answer,
    parse_answer,
    parse_question,
)
from proofcast.groups.histories import Histories
from proofcast.groups.outputs import Culprit
from proofcast.groups.proof import Kind

HEAD = Struct(">Qd")


@dataclass(frozen=True, slots=True)
class Doubt:
    question: Question
    sequence: int
    """Of the message that did not fit."""
    asked_at: float

    def encode(self) -> bytes:
        return HEAD.pack(self.sequence, self.asked_at) + self.question.encode()


def parse_doubt(data: bytes) -> Doubt:
    sequence, asked_at = HEAD.unpack(data[: HEAD.size])
    return Doubt(parse_question(data[HEAD.size :]), sequence, asked_at)


@dataclass(slots=True)
class Doubts:
    answer_s_max: float
    asked: dict[bytes, Doubt] = field(default_factory=dict)
    """Ours, by the peer that was asked; one at a time."""
    questions: dict[int, tuple[bytes, Question]] = field(default_factory=dict)
    """Of peers, by the sequence at which they asked."""
    changes: Changes = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.asked or self.questions)

    def open(self, peer: bytes, doubt: Doubt) -> None:
        self.asked[peer] = doubt
        self.changes[f"doubt/{peer.hex()}"] = doubt.encode()

    def close(self, peer: bytes) -> None:
        del self.asked[peer]
        self.changes[f"doubt/{peer.hex()}"] = None

    def close_all(self) -> None:
        for peer in list(self.asked):
            self.close(peer)

    def find_overdue(self, now: float) -> list[tuple[bytes, Verdict]]:
        return [
            (peer, Verdict(Culprit.SILENT_PEER, doubt.sequence, f"`{peer.hex()}` does not answer for what it sent"))
            for peer, doubt in self.asked.items()
            if now >= doubt.asked_at + self.answer_s_max
        ]

    def get_deadlines(self) -> Iterator[float]:
        return (doubt.asked_at + self.answer_s_max for doubt in self.asked.values())

    def judge(self, peer: bytes, body: bytes, attested: Attested) -> Verdict | None:
        """What an answer amounts to; None where nothing like it was asked."""
        answer, doubt = parse_answer(body), self.asked.get(peer)
        if doubt is None or answer.question != compute_question_digest(doubt.question):
            return None
        return judge_answer(doubt.question, answer, peer, attested)

    def note_question(self, sequence: int, peer: bytes, body: bytes) -> None:
        self.questions[sequence] = peer, parse_question(body)
        self.changes[f"question/{sequence}"] = peer + body

    def is_waiting(self, attested: Attested) -> bool:
        """Whether some question needs the server's word about a range it has not attested yet."""
        return any(needs_leaf(question, attested) for _, question in self.questions.values())

    def take_answers(self, histories: Histories, attested: Attested) -> Iterator[tuple[bytes, Answer]]:
        for sequence, (peer, question) in list(self.questions.items()):
            if not needs_leaf(question, attested):
                del self.questions[sequence]
                self.changes[f"question/{sequence}"] = None
                yield peer, make_answer(question, peer, histories.get(peer), attested)

    def take_changes(self) -> Changes:
        changes, self.changes = self.changes, {}
        return changes

    def load(self, name: str, value: bytes) -> None:
        kind, _, rest = name.partition("/")
        if kind == "doubt":
            self.asked[bytes.fromhex(rest)] = parse_doubt(value)
        else:
            self.questions[int(rest)] = value[:32], parse_question(value[32:])


def needs_leaf(question: Question, attested: Attested) -> bool:
    end = attested.ends[Kind.SENT]
    return isinstance(question, SentQuestion) and end is not None and end <= question.sequence
