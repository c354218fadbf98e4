"""`proofcast block`: recorded blocks, checked against their own headers."""

import json
from dataclasses import dataclass
from pathlib import Path

import click

from proofcast.chain.io.recorded import read_block
from proofcast.chain.profile import ChainProfile, find_chain_id, get_profile
from proofcast.chain.verify import verify_block
from proofcast.cli.output import encode_json
from proofcast.errors import InvalidInput, Reason
from proofcast.ethereum.block import RawBlock
from proofcast.ethereum.header import compute_hash, parse_header

ETHEREUM = 1
"""Whose rules apply where neither the user nor the file's name says."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """One line; what could not be read is null."""

    file: str
    number: int | None
    hash: bytes | None
    root: bytes | None
    """The header's receipts root."""
    receipts: int | None
    logs: int | None
    verdict: bool
    reason: str | None


@click.group()
def block() -> None:
    """Check recorded blocks."""


@block.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(exists=True, dir_okay=False))
@click.option("--chain-id", type=int, help="Whose rules apply; else the file's name says, as in `mainnet-17.rlp.gz`.")
def verify(files: tuple[str, ...], chain_id: int | None) -> None:
    """Recompute what the headers in FILE... commit to; print a line of JSON for each, exit with 1 if any is false."""
    false = 0
    for file in files:
        judgement = judge_file(Path(file), chain_id)
        click.echo(json.dumps(encode_json(judgement)))
        false += not judgement.verdict
    if false:
        raise InvalidInput(
            Reason.DISAGREES, f"`{false}` of `{len(files)}` blocks are false", hint="each line's `reason` says why"
        )


def judge_file(path: Path, chain_id: int | None) -> Judgement:
    named = find_chain_id(path.name.rpartition("-")[0])
    try:
        return judge_block(str(path), read_block(path), get_profile(chain_id or named or ETHEREUM))
    except InvalidInput as error:
        return Judgement(str(path), None, None, None, None, None, False, str(error))


def judge_block(file: str, raw: RawBlock, profile: ChainProfile) -> Judgement:
    header = parse_header(raw.header)
    logs, reason = None, None
    try:
        columns = verify_block(raw, profile).columns
        logs, reason = (columns.logs, None) if columns else (None, "the recording has no receipts")
    except InvalidInput as error:
        reason = str(error)
    receipts = None if raw.receipts is None else len(raw.receipts)
    block_hash = compute_hash(raw.header)
    return Judgement(file, header.number, block_hash, header.receipts_root, receipts, logs, reason is None, reason)
