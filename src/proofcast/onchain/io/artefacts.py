"""The compiled contracts, shipped as package data; `tools/artefacts.py` makes them."""

import json
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

from proofcast.onchain.abi import encode_values
from proofcast.onchain.deployment import Contracts, compute_address


@dataclass(frozen=True, slots=True)
class Artefact:
    name: str
    abi: list[dict[str, Any]]
    creation_code: bytes
    runtime_code: bytes
    """Immutable variables are zero in it."""
    compiler: str


@lru_cache(maxsize=32)
def load_artefact(name: str) -> Artefact:
    file = resources.files("proofcast.onchain") / "artefacts" / f"{name}.json"
    kept = json.loads(file.read_text())
    creation, runtime = (bytes.fromhex(kept[code].removeprefix("0x")) for code in ("creation_code", "runtime_code"))
    return Artefact(kept["name"], kept["abi"], creation, runtime, kept["compiler"])


def get_lens_code(topics: bytes) -> bytes:
    """Creation code of the lens for one `Topics`."""
    return load_artefact("TopicsLens").creation_code + encode_values("(address)", (topics,))


def get_exchanges_code(topics: bytes) -> bytes:
    """Creation code of `Exchanges` beside one `Topics`."""
    return load_artefact("Exchanges").creation_code + encode_values("(address)", (topics,))


@lru_cache(maxsize=32)
def get_exchanges(topics: bytes) -> bytes:
    """Where `Exchanges` is on every chain, beside one `Topics`."""
    return compute_address(get_exchanges_code(topics))


def get_contracts(topics: bytes | None = None) -> Contracts:
    """Where our contracts are on every chain; or `Topics` as named, and its lens."""
    topics = topics or compute_address(load_artefact("Topics").creation_code)
    return Contracts(topics, compute_address(get_lens_code(topics)))
