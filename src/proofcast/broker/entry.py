"""One log on its way to subscribers, made into what they need when the first of them needs it."""

from proofcast.broker.frames import get_template
from proofcast.chain.segment import BlockId
from proofcast.cloudevents import Delivery, encode_structured
from proofcast.cursor import write_cursor
from proofcast.event import Event, Finality, Step
from proofcast.feed.publication import build_event, read_log, read_message
from proofcast.feed.view import Move, View

MESSAGE = b"exchange/"
"""Before the id of an exchange, which may be that of a topic as well."""
NO_QUEUES: frozenset[bytes] = frozenset()
ID, DATA, END = b"id: ", b"\ndata: ", b"\n\n"


class Entry:
    __slots__ = ("_delivery", "_frame", "finalized", "is_plain", "level", "move", "queues", "topic")

    def __init__(
        self,
        move: Move,
        level: Finality,
        finalized: BlockId,
        topic: bytes,
        *,
        is_plain: bool,
        queues: frozenset[bytes] = NO_QUEUES,
    ) -> None:
        self.move, self.level, self.finalized = move, level, finalized
        self.topic = topic
        """Of a publication, `MESSAGE` and the exchange's id of a message; empty for a raw log."""
        self.queues = queues
        """That a message reached."""
        self.is_plain = is_plain
        """Is it a publication in the one form in which the contract writes it?"""
        self._delivery: Delivery | None = None
        self._frame = b""

    @property
    def view(self) -> View:
        """What a subscriber holds that has this."""
        return self.move.view

    @property
    def delivery(self) -> Delivery:
        if self._delivery is None:
            self._delivery = Delivery(self._build_event(), write_place(self.move, self.finalized), self.move.turn)
        return self._delivery

    @property
    def frame(self) -> bytes:
        """As one server-sent event; the same bytes for everybody."""
        if not self._frame:
            self._frame = self._build_frame()
        return self._frame

    @property
    def cursor(self) -> str:
        """What a subscriber holds that has this, as text: the frame's id."""
        return self.frame[len(ID) : self.frame.index(b"\n")].decode()

    @property
    def json(self) -> bytes:
        """The CloudEvents object within the frame."""
        return self.frame[self.frame.index(DATA) + len(DATA) : -len(END)]

    def _build_event(self) -> Event:
        row = self.move.row
        log, address = row.log, row.log.address
        found = (read_log(log, address) or read_message(log, address)) if self.topic else None
        event = build_event(found, row.log, row.position, row.timestamp, row.trust.value, self.level, self.move.step)
        assert event is not None, "an entry is a publication or a raw log"
        return event

    def _build_frame(self) -> bytes:
        step, record, chain_id, turn, _ = self.move
        if self.is_plain:
            return get_template(record, step, turn, chain_id, self.level, self.finalized).write(record)
        cursor, body = write_place(self.move, self.finalized), encode_structured(self.delivery)
        return b"id: %b\nevent: %b\ndata: %b\n\n" % (cursor.encode(), step.value.encode(), body)


def write_place(move: Move, finalized: BlockId) -> str:
    """The cursor of whoever has this."""
    record = move.record
    return write_cursor(
        move.chain_id, record.number, record.block_hash, record.log_index, move.step is not Step.UNDO, *finalized
    )
