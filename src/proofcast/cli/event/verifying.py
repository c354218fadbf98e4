"""`proofcast event verify`: what a file of evidence proves, and what it only says."""

from pathlib import Path

import click

from proofcast.chain.evidence import ProvenLog, parse_evidence, verify_evidence
from proofcast.cli.output import emit, format_record
from proofcast.client.values import HASH_LENGTH, parse_hex
from proofcast.onchain.published import Published, find_published
from proofcast.onchain.routed import Routed, find_routed

NOT_PROVEN = "that the maker calls the block `{}`; the log's number within the whole block"


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--trust", "trusted", required=True, metavar="HASH", help="Hash of a block that you trust.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def verify(file: Path, trusted: str, as_json: bool) -> None:
    """Check the evidence in FILE, offline: does it lead from the block you trust to a log?"""
    data = file.read_bytes()
    proven = verify_evidence(data, parse_hex("block hash", trusted, HASH_LENGTH))
    record = describe_proven(proven, len(parse_evidence(data).headers))
    emit(as_json, record, format_record({name: show(value) for name, value in record.items()}))


def describe_proven(proven: ProvenLog, headers: int) -> dict[str, object]:
    path = f"an ancestor of the block you trust, {headers - 1} blocks before it" if headers > 1 else "which you trust"
    return {
        "proven": f"this log is in this block, {path}",
        "contract": proven.log.address,
        "block": proven.header.number,
        "block_hash": proven.block_hash,
        "time": proven.header.timestamp,
        "transaction_index": proven.transaction_index,
        "transaction_hash": proven.transaction_hash,
        "log_position": proven.log_position,
        "topics": proven.log.topics,
        "data": proven.log.data,
        "publication": find_published(proven.log.topics, proven.log.data)
        or find_routed(proven.log.topics, proven.log.data),
        "claimed_trust": str(proven.claimed_trust),
        "not_proven": NOT_PROVEN.format(proven.claimed_trust),
    }


def show(value: object) -> str:
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    if isinstance(value, tuple):
        return " ".join(map(show, value))
    if isinstance(value, Published):
        return f"event {value.sequence} of topic {show(value.topic)}: {show_payload(value.payload)}"
    if isinstance(value, Routed):
        return f"message {value.sequence} of exchange {show(value.exchange)}: {show_payload(value.payload)}"
    return "-" if value is None else str(value)


def show_payload(payload: bytes) -> str:
    """As text where it is some, else as digits; on one line."""
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        return f"0x{payload.hex()}"
    return f'"{text}"' if text.isprintable() else f"0x{payload.hex()}"
