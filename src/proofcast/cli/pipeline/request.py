"""What a command line of the pipeline asks for."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Request:
    folder: str
    """Of the tables."""
    master: str
    settings: tuple[str, ...]
    as_json: bool


@dataclass(frozen=True, slots=True)
class ReadRequest(Request):
    """Of what reads a chain."""

    source: str
    chain_id: int | None
    first: int | None
    abi_files: tuple[Path, ...]
    trust: str


@dataclass(frozen=True, slots=True)
class BackfillRequest(ReadRequest):
    last: int | None
    checkpoint: str | None
    blocks_per_batch: int


@dataclass(frozen=True, slots=True)
class FollowRequest(ReadRequest):
    feed: Path | None
    addresses: tuple[bytes, ...]
    topics: tuple[str, ...]
    poll_s: float
    tables_every_s: float
    until: int | None


@dataclass(frozen=True, slots=True)
class DecodeRequest(Request):
    abi_file: Path
    addresses: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class MatchRequest(Request):
    subscriptions: Path
    finality: str
