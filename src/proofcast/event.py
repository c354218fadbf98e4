"""The nouns everybody shares: where something happened, what happened, and how sure we are of it.

Read this file first. Everything here is immutable and made of `int`, `bytes` and `str`; hexadecimal, JSON and wall
clocks exist only at the doors (`io/`, `cli/`).
"""

from dataclasses import dataclass
from enum import StrEnum


class Finality(StrEnum):
    """How settled a block is, as a node asserts it; on ledgers with instant finality all three coincide."""

    LATEST = "latest"
    SAFE = "safe"
    FINALIZED = "finalized"


class Step(StrEnum):
    """What to do with an event: a reorg is a list of `undo` steps, newest first, then `apply` steps."""

    APPLY = "apply"
    UNDO = "undo"
    FINAL = "final"


@dataclass(frozen=True, slots=True)
class Position:
    """A place on one chain. A block's identity is its hash: two blocks may share a number, never a hash."""

    chain_id: int
    block_number: int
    block_hash: bytes
    transaction_index: int
    log_index: int


@dataclass(frozen=True, slots=True)
class Event:
    """Something published to a topic, the same noun on every ledger.

    A log of any other contract is an event too: its topic is the log's first topic, its key the further ones joined,
    its payload the log's data; a ledger does not count such, so their sequence is 0.
    """

    source: str
    """The ledger and the contract holding the topic, as CAIP-10: `eip155:<chain id>:<address>`."""
    topic: bytes
    """32 bytes given by the contract that holds the topic; unique within `source` only."""
    sequence: int
    """Counted per topic by the ledger, from 1 and without gaps, so that absence can be proved."""
    key: bytes
    """Routing key chosen by the publisher; empty where none was given."""
    publisher: bytes
    """Account or contract that published it; empty where the ledger does not say."""
    payload: bytes
    timestamp: int
    """Of the block, in seconds since 1970."""
    position: Position
    trust: str
    """`linked`, `agreed` or `sealed`: why the block is believed, see `chain/trust.py`."""
    finality: Finality
    step: Step
