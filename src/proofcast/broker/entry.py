"""One log on its way to subscribers, made into what they need when the first of them needs it.

Who is far behind reads a hundred thousand of them and wants nothing but their bytes: `write_publication` makes those of
the stored log in one go, the same that `cloudevents` would make of the event.
"""

from binascii import b2a_base64

from proofcast.chain.segment import BlockId
from proofcast.cloudevents import (
    PAYLOAD_TYPE,
    TYPE_PREFIX,
    Delivery,
    encode_structured,
    format_time,
)
from proofcast.cursor import write_cursor
from proofcast.event import Event, Finality, Step
from proofcast.feed.outbox import Row
from proofcast.feed.publication import NO_KEY, build_event, format_source, read_log
from proofcast.feed.view import Move, View
from proofcast.onchain.published import NO_BYTES, PAYLOAD_AT, PAYLOAD_PLACE, PUBLISHED, WORD

ID, DATA, END = b"id: ", b"\ndata: ", b"\n\n"
TOPICS_LENGTH = 4 * WORD
NO_KEY_DIGITS = NO_KEY.hex()


class Entry:
    __slots__ = ("_delivery", "_frame", "finalized", "is_plain", "level", "move", "topic")

    def __init__(self, move: Move, level: Finality, finalized: BlockId, topic: bytes, *, is_plain: bool) -> None:
        self.move, self.level, self.finalized = move, level, finalized
        self.topic = topic
        """Of a publication; empty for a raw log."""
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
        found = read_log(row.log, row.log.address) if self.topic else None
        event = build_event(found, row.log, row.position, row.timestamp, row.trust.value, self.level, self.move.step)
        assert event is not None, "an entry is a publication or a raw log"
        return event

    def _build_frame(self) -> bytes:
        step, cursor = self.move.step.value, write_place(self.move, self.finalized)
        body = write_publication(self.move, self.level, cursor) if self.is_plain else encode_structured(self.delivery)
        return b"id: %b\nevent: %b\ndata: %b\n\n" % (cursor.encode(), step.encode(), body)


def write_place(move: Move, finalized: BlockId) -> str:
    """The cursor of whoever has this."""
    record = move.record
    return write_cursor(move.chain_id, record[4], record[5], record[1], move.step is not Step.UNDO, *finalized)


def is_published(record: Row) -> bool:
    """Is it a publication in the one form in which the contract writes it? Any other form is read more slowly."""
    topics, data = record[10], record[11]
    return (
        len(topics) == TOPICS_LENGTH
        and topics.startswith(PUBLISHED)
        and data.startswith(NO_BYTES)
        and data[WORD : 2 * WORD] == PAYLOAD_PLACE
        and len(data) == (end := PAYLOAD_AT + int.from_bytes(data[2 * WORD : PAYLOAD_AT])) + (filling := -end % WORD)
        and data[end:] == bytes(filling)
    )


def write_publication(move: Move, level: Finality, cursor: str) -> bytes:
    """What `encode_structured` writes of a log that `is_published`."""
    _, log_index, _, trust, number, block_hash, timestamp, index, _, address, topics, data = move.record
    turn, mark = (f'"turn":{move.turn},', f"-{move.turn}") if move.turn > 1 else ("", "")
    block, step, words, payload_end = block_hash.hex(), move.step.value, topics.hex(), int.from_bytes(data[64:96]) + 96
    key = words[192:]
    head = (
        f'{{"specversion":"1.0","id":"{move.chain_id}/{number:012}/{log_index:06}/{block}/{step}{mark}",'
        f'"source":"{format_source(move.chain_id, address)}","type":"{TYPE_PREFIX}{step}",'
        f'"time":"{format_time(timestamp)}","datacontenttype":"{PAYLOAD_TYPE}","topic":"0x{words[64:128]}",'
        f'"sequence":"{int(words[128:192], 16):020}","eventkey":"0x{key if key != NO_KEY_DIGITS else ""}",'
        f'"publisher":"0x{data[12:32].hex()}","blocknumber":"{number}","blockhash":"0x{block}",'
        f'"transactionindex":{index},"logindex":{log_index},"trust":"{trust}","finality":"{level.value}",'
        f'"cursor":"{cursor}",{turn}"data_base64":"'
    )
    return b'%b%b"}' % (head.encode(), b2a_base64(data[96:payload_end], newline=False))
