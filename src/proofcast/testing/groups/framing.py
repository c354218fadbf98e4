"""Clients that try to frame an honest server: random histories, then random attempts at a proof.

The clients collude: they know every leaf, row and blind that the server gave to any of them. They send each other what
might confuse it: equal ciphertexts, equal series, empty ones of demanded leaves. Then they show exhibits as they got
them, or changed: rows cut otherwise, leaves under other checkpoints, kinds and ranges altered, names opened with the
blinds of others. The verifier must refuse every one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from random import Random

from nacl.signing import SigningKey

from proofcast.groups.attested import Statement
from proofcast.groups.evidence import encode_proof
from proofcast.groups.packet import InboxPacket, ReceiptPacket
from proofcast.groups.proof import (
    Exhibit,
    Lie,
    Proof,
    Refused,
    Row,
    Verdict,
    compute_name,
    compute_rows_digest,
    verify_proof,
)
from proofcast.groups.series import Envelope, Form, Message, Series, compute_blind, get_salt
from proofcast.testing.groups.server import LyingServer

EPOCHS_MAX = 4
SERIES_MAX = 3
"""Per epoch."""


@dataclass(slots=True)
class Conspiracy:
    """One history of lying clients with an honest server, by its seed."""

    seed: int
    random: Random = field(init=False)
    server: LyingServer = field(init=False)
    clients: list[bytes] = field(init=False)
    sent: list[Series] = field(default_factory=list)
    exhibits: list[Exhibit] = field(default_factory=list)
    blinds: dict[bytes, bytes] = field(default_factory=dict)
    """Of every name of every client in every message."""

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.server = LyingServer(SigningKey(self.random.randbytes(32)), self.random)
        self.clients = sorted(self.random.randbytes(32) for _ in range(self.random.randint(2, 4)))
        for _ in range(self.random.randint(1, EPOCHS_MAX)):
            self.run_epoch()
        for packets in self.server.history.values():
            self.exhibits += map(self.make_exhibit, packets)

    # --- a history

    def run_epoch(self) -> None:
        self.server.demands |= {client for client in self.clients if self.random.random() < 0.2}
        for _ in range(self.random.randint(0, SERIES_MAX)):
            sender = self.random.choice(self.clients)
            counter = self.server.counters.get(sender, 0) + 1
            count = self.random.choice((1, 1, 2, 3))
            series = Series(sender, counter, tuple(self.make_message(sender) for _ in range(count)))
            self.sent.append(series)
            self.server.submit(series.encode())
        self.server.close()

    def make_message(self, sender: bytes) -> Message:
        """New, or the very one of before."""
        old = [message for series in self.sent if series.sender == sender for message in series.messages]
        if old and self.random.random() < 0.3:
            return self.random.choice(old)
        common = self.random.choice([one.common for one in old] or [b""]) if self.random.random() < 0.3 else b""
        others = self.random.sample(self.clients, self.random.randint(1, len(self.clients)))
        envelopes = (
            Envelope(one, Form.NORMAL, self.random.choice((b"", self.random.randbytes(8))))
            for one in sorted({sender, *others})
        )
        return Message(sender, common or self.random.randbytes(40), tuple(envelopes))

    def make_exhibit(self, packet: InboxPacket | ReceiptPacket) -> Exhibit:
        """What the client that got this packet can show of it, with every row and blind at hand."""
        rows = list(self.iterate_rows(packet))
        blinds = ((compute_blind(salt, client), client) for _, salt in rows for client in self.clients)
        self.blinds |= {compute_name(blind, client): blind for blind, client in blinds}
        statement = Statement(packet.attestation, tuple(rows))
        return statement.make_exhibit(*(row.sequence for row, _ in rows))

    def iterate_rows(self, packet: InboxPacket | ReceiptPacket) -> Iterator[tuple[Row, bytes]]:
        client = packet.attestation.leaf.client
        if isinstance(packet, InboxPacket):
            yield from ((one.make_row(client), get_salt(one.common)) for one in packet.deliveries)
            return
        by_counter = {one.counter: one for one in self.sent if one.sender == client}
        for counter, first in packet.receipts:
            series = by_counter[counter]
            salts = (get_salt(message.common) for message in series.messages)
            yield from zip(series.make_rows(first), salts, strict=True)

    # --- attempts

    def attempt(self) -> Verdict | None:
        """One random proof; the verdict if it is believed."""
        lie = self.random.choice(list(Lie))
        first = self.pick_exhibit(self.exhibits)
        exhibits: tuple[Exhibit, ...] = (
            (first,) if lie is Lie.MALFORMED else (first, self.pick_exhibit(self.find_related(first)))
        )
        checkpoints = tuple((one.checkpoint, one.signature) for one in exhibits)
        exhibits = self.adapt(lie, exhibits)
        if lie is Lie.FORK:
            proof = Proof(lie, checkpoints, (), b"")
        else:
            opening = self.pick_blind(exhibits[0]) if lie in (Lie.MISSING, Lie.INJECTED) else b""
            proof = Proof(lie, (), exhibits, opening)
        try:
            return verify_proof(encode_proof(proof), self.server.server_key)
        except Refused:
            return None

    def pick_blind(self, exhibit: Exhibit) -> bytes:
        """Mostly of a name in the row that is shown."""
        names = [name for row in exhibit.shown for name in (row.sender, *(name for name, _ in row.recipients))]
        if not names or self.random.random() < 0.1:
            return self.random.choice([bytes(32), *self.blinds.values()])
        return self.blinds[self.random.choice(names)]

    def find_related(self, exhibit: Exhibit) -> list[Exhibit]:
        """Mostly such as speak of the same message."""
        if not exhibit.rows or self.random.random() < 0.3:
            return self.exhibits
        sequence, _ = self.random.choice(exhibit.rows)
        return [one for one in self.exhibits if one.covers(sequence)] or self.exhibits

    def pick_exhibit(self, exhibits: list[Exhibit]) -> Exhibit:
        exhibit = self.random.choice(exhibits)
        return self.random.choice(MUTATIONS)(self, exhibit) if self.random.random() < 0.5 else exhibit

    def adapt(self, lie: Lie, exhibits: tuple[Exhibit, ...]) -> tuple[Exhibit, ...]:
        """As many rows shown as the rule wants."""
        wanted = {
            Lie.CONFLICT: (1, 1),
            Lie.SPLIT: (1, 1),
            Lie.MISSING: (1, 0),
            Lie.INJECTED: (1, 0),
            Lie.OVERLAP: (0, 0),
        }
        return tuple(
            replace(one, shown=self.sample(one.shown, count))
            for one, count in zip(exhibits, wanted.get(lie, (9, 9)), strict=False)
        )

    def sample(self, rows: tuple[Row, ...], count: int) -> tuple[Row, ...]:
        return tuple(self.random.sample(rows, min(count, len(rows))))


# --- what conspirators change


def move_to_other_checkpoint(plot: Conspiracy, exhibit: Exhibit) -> Exhibit:
    other = plot.random.choice(plot.exhibits)
    return replace(exhibit, checkpoint=other.checkpoint, signature=other.signature)


def swap_leaf_fields(plot: Conspiracy, exhibit: Exhibit) -> Exhibit:
    other = plot.random.choice(plot.exhibits).leaf
    name = plot.random.choice(["kind", "client", "prev", "next", "salt"])
    match name:
        case "kind":
            leaf = replace(exhibit.leaf, kind=1 - exhibit.leaf.kind)
        case "client":
            leaf = replace(exhibit.leaf, client=other.client)
        case "prev":
            leaf = replace(exhibit.leaf, prev=other.prev)
        case "next":
            leaf = replace(exhibit.leaf, next=other.next)
        case _:
            leaf = replace(exhibit.leaf, salt=other.salt)
    return replace(exhibit, leaf=leaf)


def drop_row(plot: Conspiracy, exhibit: Exhibit) -> Exhibit:
    """And pretend that the leaf is about the rest."""
    if not exhibit.rows:
        return exhibit
    gone = plot.random.randrange(len(exhibit.rows))
    rows = exhibit.rows[:gone] + exhibit.rows[gone + 1 :]
    shown = tuple(row for row in exhibit.shown if row.sequence != exhibit.rows[gone][0])
    digest = plot.random.choice((exhibit.leaf.rows_digest, compute_rows_digest(list(rows))))
    return replace(exhibit, rows=rows, shown=shown, leaf=replace(exhibit.leaf, rows_digest=digest))


def recut_rows(plot: Conspiracy, exhibit: Exhibit) -> Exhibit:
    """Move a recipient from one row to the next, as if the list had been cut there: flaw S1 of the reference."""
    if len(exhibit.shown) < 2:
        return exhibit
    first, second, *rest = exhibit.shown
    moved = first.recipients[-1:]
    cut = replace(first, recipients=first.recipients[:-1]), replace(second, recipients=moved + second.recipients)
    shown = (*cut, *rest)
    return replace(exhibit, shown=shown, rows=tuple((row.sequence, row.compute_hash()) for row in shown))


def change_row(plot: Conspiracy, exhibit: Exhibit) -> Exhibit:
    if not exhibit.shown:
        return exhibit
    row = plot.random.choice(exhibit.shown)
    other = plot.random.choice([row for one in plot.exhibits for row in one.shown])
    changed = plot.random.choice(
        (
            replace(row, common=other.common),
            replace(row, sender=other.sender),
            replace(row, recipients=other.recipients),
            replace(row, sequence=other.sequence),
            replace(row, series=other.series, index=other.index, count=other.count),
        )
    )
    shown = tuple(changed if one is row else one for one in exhibit.shown)
    return replace(exhibit, shown=shown)


def take_other_path(plot: Conspiracy, exhibit: Exhibit) -> Exhibit:
    return replace(exhibit, path=plot.random.choice(plot.exhibits).path)


MUTATIONS: tuple[Callable[[Conspiracy, Exhibit], Exhibit], ...] = (
    move_to_other_checkpoint,
    swap_leaf_fields,
    drop_row,
    recut_rows,
    change_row,
    take_other_path,
)


def iterate_framings(seed: int, attempts: int) -> Iterator[Verdict]:
    """The verdicts against an honest server that a history's conspirators obtain: none, if proofs are sound."""
    plot = Conspiracy(seed)
    if plot.exhibits:
        yield from filter(None, (plot.attempt() for _ in range(attempts)))
