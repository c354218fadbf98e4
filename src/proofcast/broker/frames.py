"""Server-sent events made straight from stored logs: the same bytes that `cloudevents` makes of the event.

Who is far behind reads a hundred thousand of them and wants nothing else. What the publications of one block have in
common is written once, into a template; a log fills in the rest.
"""

from binascii import hexlify
from dataclasses import dataclass
from functools import lru_cache

from pybase64 import b64encode

from proofcast.chain.segment import BlockId
from proofcast.cloudevents import PAYLOAD_TYPE, TYPE_PREFIX, format_time
from proofcast.cursor import LAYOUT, LOG_INDEX, VERSION, seal_body
from proofcast.event import Finality, Step
from proofcast.feed.outbox import Row
from proofcast.feed.publication import NO_KEY, format_source
from proofcast.onchain.events import PayloadTypeChanged, TopicCreated, compute_type_hash
from proofcast.onchain.published import NO_BYTES, PAYLOAD_AT, PAYLOAD_PLACE, PUBLISHED, WORD

TELLING = frozenset({PUBLISHED, compute_type_hash(TopicCreated), compute_type_hash(PayloadTypeChanged)})
TOPICS_LENGTH = 4 * WORD
TEMPLATES_KEPT = 256
"""Blocks whose events are asked for at about the same time."""


def is_telling(record: Row) -> bool:
    """Of a log of our contract: is it a publication, or something that names are learnt from?"""
    return record.topics[:WORD] in TELLING


def is_published(record: Row) -> bool:
    """Is it a publication in the one form in which the contract writes it? Any other form is read more slowly."""
    topics, data = record.topics, record.data
    return (
        len(topics) == TOPICS_LENGTH
        and topics.startswith(PUBLISHED)
        and data.startswith(NO_BYTES)
        and data[WORD : 2 * WORD] == PAYLOAD_PLACE
        and len(data) == (end := PAYLOAD_AT + int.from_bytes(data[2 * WORD : PAYLOAD_AT])) + (filling := -end % WORD)
        and data[end:] == bytes(filling)
    )


@dataclass(frozen=True, slots=True)
class Template:
    """The frame of a publication, with gaps for what tells it from others of its block."""

    text: bytes
    cursor_head: bytes
    cursor_tail: bytes

    def write(self, record: Row) -> bytes:
        """The frame of a log that `is_published`."""
        log_index, topics, data = record.log_index, record.topics, record.data
        cursor = seal_body(self.cursor_head + log_index.to_bytes(4) + self.cursor_tail)
        key = topics[96:]
        return self.text % (
            cursor,
            log_index,
            hexlify(topics[32:64]),
            int.from_bytes(topics[64:96]),
            hexlify(key) if key != NO_KEY else b"",
            hexlify(data[12:32]),
            record.transaction_index,
            log_index,
            cursor,
            b64encode(data[96 : 96 + int.from_bytes(data[64:96])]),
        )


def get_template(record: Row, step: Step, turn: int, chain_id: int, level: Finality, finalized: BlockId) -> Template:
    """Of the block in which a log is."""
    block = record.trust, record.number, record.block_hash, record.timestamp
    return build_template(step, turn, chain_id, level, finalized, *block, record.address)


@lru_cache(maxsize=TEMPLATES_KEPT)
def build_template(
    step: Step,
    turn: int,
    chain_id: int,
    level: Finality,
    finalized: BlockId,
    trust: str,
    number: int,
    block_hash: bytes,
    timestamp: int,
    address: bytes,
) -> Template:
    word, block = step.value, block_hash.hex()
    mark, again = (f"-{turn}", f'"turn":{turn},') if turn > 1 else ("", "")
    text = (
        f'id: %b\nevent: {word}\ndata: {{"specversion":"1.0","id":"{chain_id}/{number:012}/%06d/{block}/{word}{mark}",'
        f'"source":"{format_source(chain_id, address)}","type":"{TYPE_PREFIX}{word}","time":"{format_time(timestamp)}",'
        f'"datacontenttype":"{PAYLOAD_TYPE}","topic":"0x%b","sequence":"%020d","eventkey":"0x%b","publisher":"0x%b",'
        f'"blocknumber":"{number}","blockhash":"0x{block}","transactionindex":%d,"logindex":%d,"trust":"{trust}",'
        f'"finality":"{level.value}","cursor":"%b",{again}"data_base64":"%b"}}\n\n'
    )
    body = LAYOUT.pack(VERSION, chain_id, number, block_hash, 0, step is not Step.UNDO, *finalized)
    return Template(text.encode(), body[: LOG_INDEX.start], body[LOG_INDEX.stop :])
