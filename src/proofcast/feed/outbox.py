"""Logs on their way to subscribers: each is applied once, and undone once if its block is."""

from collections.abc import Iterator
from typing import NamedTuple

from proofcast.chain.trust import Trust
from proofcast.errors import InvalidRequest, Reason
from proofcast.ethereum.bloom import LogFilter
from proofcast.ethereum.header import parse_header
from proofcast.ethereum.receipt import TOPIC_LENGTH, Log, parse_receipt
from proofcast.event import Position, Step
from proofcast.feed.journal import JournalEntry

STEPS, TRUSTS = {step.value: step for step in Step}, {trust.value: trust for trust in Trust}
"""By their words: looked up for every row."""


class Row(NamedTuple):
    """A log as it is stored."""

    sequence: int
    log_index: int
    step: str
    trust: str
    number: int
    block_hash: bytes
    timestamp: int
    transaction_index: int
    transaction_hash: bytes | None
    address: bytes
    topics: bytes
    """One after the other."""
    data: bytes


class OutboxRow(NamedTuple):
    """A log that is applied or undone; known by (sequence, log index), so that writing it twice changes nothing."""

    sequence: int
    step: Step
    trust: Trust
    timestamp: int
    """Of the block, in seconds since 1970."""
    position: Position
    transaction_hash: bytes | None
    """None where no transactions were fetched; the position names the log without it."""
    log: Log


def build_rows(entry: JournalEntry, chain_id: int, log_filter: LogFilter) -> list[OutboxRow]:
    """The rows of one step: what any faster way of making them must equal."""
    if entry.step.step is Step.FINAL:
        return []
    block = entry.block
    if block is None or block.receipts is None:
        raise InvalidRequest(
            Reason.BAD_ARGUMENT,
            f"the bytes of block `{entry.step.number}`, step `{entry.step.sequence}`, are no longer journalled",
            hint="acknowledge as a reader from the start, or get the block by its hash",
        )
    timestamp = parse_header(block.header).timestamp
    return [
        OutboxRow(entry.step.sequence, entry.step.step, entry.step.trust, timestamp, position, None, log)
        for position, log in iterate_logs(entry, chain_id, block.receipts)
        if log_filter.matches(log)
    ]


def iterate_logs(entry: JournalEntry, chain_id: int, receipts: tuple[bytes, ...]) -> Iterator[tuple[Position, Log]]:
    """Every log of the block with its position."""
    log_index = 0
    for transaction_index, raw in enumerate(receipts):
        for log in parse_receipt(raw).logs:
            yield Position(chain_id, entry.step.number, entry.step.hash, transaction_index, log_index), log
            log_index += 1


# --- as it is stored


def encode_row(row: OutboxRow) -> Row:
    at, log = row.position, row.log
    return Row(
        row.sequence,
        at.log_index,
        str(row.step),
        str(row.trust),
        at.block_number,
        at.block_hash,
        row.timestamp,
        at.transaction_index,
        row.transaction_hash,
        log.address,
        b"".join(log.topics),
        log.data,
    )


def parse_row(row: Row, chain_id: int) -> OutboxRow:
    sequence, log_index, step, trust, number, block_hash, timestamp, index, transaction_hash, address, topics, data = (
        row
    )
    words = tuple(topics[at : at + TOPIC_LENGTH] for at in range(0, len(topics), TOPIC_LENGTH))
    position = Position(chain_id, number, block_hash, index, log_index)
    log = Log(address, words, data)
    return OutboxRow(sequence, STEPS[step], TRUSTS[trust], timestamp, position, transaction_hash, log)
