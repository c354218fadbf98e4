"""What the server has said to this device, as long as it may be needed to hold the server to it.

Leaves of one kind form a chain without gaps; each is accepted only if it continues the last one and is about exactly
what was delivered. A statement is forgotten when every active peer has confirmed the history beyond its range.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from proofcast.errors import InvalidInput, Misbehaviour, Reason
from proofcast.groups.attestation import Attestation, Rows, parse_attestation
from proofcast.groups.evidence import find_proof
from proofcast.groups.proof import Checkpoint, Exhibit, Kind, Row, compute_name, is_in_conflict, parse_row, verify_proof
from proofcast.groups.series import SALT_BYTES, compute_blind
from proofcast.groups.wire import WireReader

Changes = dict[str, bytes | None]
Suspicion = tuple[tuple[Exhibit, ...], tuple[bytes, ...]]
"""Exhibits that may contradict each other, and blinds of names in their rows."""
PROVED = "keep the proof; `proofcast group verify-proof` shows anybody that it holds"


@dataclass(frozen=True)
class Statement:
    """One attestation and the rows it is about, each with the salt that blinds its names."""

    attestation: Attestation
    rows: tuple[tuple[Row, bytes], ...]

    @property
    def kind(self) -> Kind:
        return Kind(self.attestation.leaf.kind)

    @property
    def epoch(self) -> int:
        return self.attestation.checkpoint.epoch

    @property
    def name(self) -> str:
        return f"statement/{self.kind.name.lower()}/{self.epoch}"

    @cached_property
    def listing(self) -> Rows:
        return tuple((row.sequence, row.compute_hash()) for row, _ in self.rows)

    def covers(self, sequence: int) -> bool:
        return self.attestation.leaf.prev <= sequence < self.attestation.leaf.next

    def overlaps(self, other: "Statement") -> bool:
        own, others = self.attestation.leaf, other.attestation.leaf
        return own.prev < others.next and others.prev < own.next

    def find_row(self, sequence: int) -> tuple[Row, bytes] | None:
        return next(((row, salt) for row, salt in self.rows if row.sequence == sequence), None)

    def make_exhibit(self, *sequences: int) -> Exhibit:
        """With the rows of these sequences shown, where there are such."""
        shown = tuple(row for row, _ in self.rows if row.sequence in sequences)
        return self.attestation.make_exhibit(self.listing, shown)

    def encode(self) -> bytes:
        bodies = ((salt, row.encode()) for row, salt in self.rows)
        rows = (salt + len(body).to_bytes(4, "big") + body for salt, body in bodies)
        return self.attestation.encode() + len(self.rows).to_bytes(4, "big") + b"".join(rows)


def parse_statement(data: bytes) -> Statement:
    reader = WireReader(data, "a stored statement")
    attestation = parse_attestation(reader)
    rows = []
    for _ in range(reader.number(4)):
        salt = reader.take(SALT_BYTES)
        rows.append((parse_row(reader.take(reader.number(4))), salt))
    reader.finish()
    return Statement(attestation, tuple(rows))


@dataclass(slots=True)
class Attested:
    device: bytes
    server_key: bytes
    ends: dict[Kind, int | None] = field(default_factory=lambda: {Kind.SENT: 0, Kind.RECEIVED: 0})
    """Where the last leaf of each kind ended; None after a restored backup, when any beginning is accepted once."""
    statements: dict[tuple[Kind, int], Statement] = field(default_factory=dict)
    """By kind and epoch."""

    def accept(self, statement: Statement) -> Changes:
        """Keep a statement that holds.

        Raises `Misbehaviour` with a proof where the server contradicts what it signed before, `InvalidInput` where it
        has merely said something that cannot be accepted.
        """
        end = self.ends[statement.kind]
        prev = statement.attestation.leaf.prev if end is None else end
        try:
            statement.attestation.verify(self.server_key, (statement.kind, self.device), prev, statement.listing)
        except InvalidInput as error:
            raise self.find_misbehaviour(self.iterate_misfits(statement)) or error from None
        contradiction = self.find_misbehaviour(self.iterate_contradictions(statement))
        if contradiction is not None:
            raise contradiction
        return self.keep(statement)

    def keep(self, statement: Statement) -> Changes:
        self.ends[statement.kind] = statement.attestation.leaf.next
        self.statements[statement.kind, statement.epoch] = statement
        return {statement.name: statement.encode()}

    def find(self, kind: Kind, sequence: int) -> Statement | None:
        """The statement that covers a sequence."""
        return next((one for one in self.iterate(kind) if one.covers(sequence)), None)

    def iterate(self, kind: Kind) -> Iterator[Statement]:
        return (one for one in self.statements.values() if one.kind == kind)

    def forget_before(self, sequence: int) -> Changes:
        """Drop what speaks only of sequences that nobody will ask about."""
        gone = [key for key, one in self.statements.items() if one.attestation.leaf.next <= sequence]
        return {self.statements.pop(key).name: None for key in gone}

    def forget_all(self) -> Changes:
        """After a restored backup: any beginning is accepted once."""
        gone, self.statements, self.ends = self.statements, {}, dict.fromkeys(Kind)
        return {one.name: None for one in gone.values()}

    # --- contradictions with what is held

    def find_misbehaviour(self, suspicions: Iterator[Suspicion]) -> Misbehaviour | None:
        """The first suspicion that the verifier shares."""
        for exhibits, blinds in suspicions:
            proof = find_proof(self.server_key, exhibits, blinds)
            if proof is not None:
                sentence = verify_proof(proof, self.server_key).sentence
                return Misbehaviour(Reason.DISAGREES, sentence, hint=PROVED, evidence=proof)
        return None

    def iterate_misfits(self, statement: Statement) -> Iterator[Suspicion]:
        """A leaf that is not what it should be, against every one of its kind."""
        exhibit = statement.make_exhibit()
        yield (exhibit,), ()
        for held in self.iterate(statement.kind):
            yield (held.make_exhibit(), exhibit), ()
        yield from self.iterate_forks(statement)

    def iterate_contradictions(self, statement: Statement) -> Iterator[Suspicion]:
        yield from self.iterate_forks(statement)
        yield from iterate_torn_series(statement)
        for held in self.iterate(Kind.RECEIVED if statement.kind == Kind.SENT else Kind.SENT):
            if not held.overlaps(statement):
                continue
            sent, received = (statement, held) if statement.kind == Kind.SENT else (held, statement)
            for sequence, salt in find_differences(sent, received, self.device):
                blind = compute_blind(salt, self.device)
                yield (sent.make_exhibit(sequence), received.make_exhibit(sequence)), (blind,)

    def iterate_forks(self, statement: Statement) -> Iterator[Suspicion]:
        places = ((kind, statement.epoch + step) for kind in Kind for step in (-1, 0, 1))
        for held in filter(None, map(self.statements.get, places)):
            if not is_continued(held.attestation.checkpoint, statement.attestation.checkpoint):
                yield (held.make_exhibit(), statement.make_exhibit()), ()


def is_continued(one: Checkpoint, other: Checkpoint) -> bool:
    """Whether two checkpoints of one epoch are equal, or of two neighbours the later continues the earlier."""
    first, second = sorted((one, other), key=lambda checkpoint: checkpoint.epoch)
    return first == second or (first.epoch != second.epoch and second.previous == first.compute_digest())


def iterate_torn_series(statement: Statement) -> Iterator[Suspicion]:
    """Rows of one series that do not stand side by side, or around a stranger."""
    places: dict[bytes, Row] = {}
    last: Row | None = None
    for row, _ in statement.rows:
        for other in filter(None, (places.get(row.series), last)):
            inside = row.series == other.series or row.sequence < other.start + other.count
            if inside and get_span(row) != get_span(other):
                yield (statement.make_exhibit(other.sequence), statement.make_exhibit(row.sequence)), ()
        places[row.series] = last = row


def get_span(row: Row) -> tuple[bytes, int, int]:
    return row.series, row.start, row.count


def find_differences(sent: Statement, received: Statement, device: bytes) -> Iterator[tuple[int, bytes]]:
    """Own messages that did not come back as sent, and such as came though never sent; with the salt of their names."""
    promised = {row.sequence: (row, salt) for row, salt in sent.rows if received.covers(row.sequence)}
    for sequence, (row, salt) in promised.items():
        found = received.find_row(sequence)
        if found is None or is_in_conflict(row, found[0]):
            yield sequence, salt
    for row, salt in received.rows:
        is_strange = sent.covers(row.sequence) and row.sequence not in promised
        if is_strange and row.sender == compute_name(compute_blind(salt, device), device):
            yield row.sequence, salt
