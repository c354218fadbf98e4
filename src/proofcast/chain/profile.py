"""What differs from chain to chain: blooms, finality, kinds of receipts."""

from dataclasses import dataclass
from enum import StrEnum


class Blooms(StrEnum):
    CONSENSUS = "consensus"
    """Part of what every node checks: a bloom without an entry proves that no log has it."""
    NONE = "none"
    """Empty or of another meaning: never looked at."""


class FinalityRule(StrEnum):
    TAGS = "tags"
    """Nodes name their safe and their finalized block."""
    DEPTH = "depth"
    """They do not: a block is settled when enough others stand on it."""


SAFE_DEPTH = 32
FINALIZED_DEPTH = 64
"""Blocks behind the head where a chain has no tags: what two epochs of Ethereum take at most."""

DEPOSIT_TYPE = 0x7E
"""Of an OP Stack rollup: a transaction that the other chain demanded."""


@dataclass(frozen=True, slots=True)
class ReceiptType:
    """A kind of receipt with more fields than the four that all have."""

    number: int
    further: tuple[str, ...]
    """The names, in a node's JSON, of the integers behind the four; one that is absent ends the list."""


@dataclass(frozen=True, slots=True)
class ChainProfile:
    chain_id: int
    name: str
    blooms: Blooms = Blooms.CONSENSUS
    finality: FinalityRule = FinalityRule.TAGS
    receipt_types: tuple[ReceiptType, ...] = ()


OP_STACK = (ReceiptType(DEPOSIT_TYPE, ("depositNonce", "depositReceiptVersion")),)

PROFILES = (
    ChainProfile(1, "mainnet"),
    ChainProfile(5, "goerli"),
    ChainProfile(17_000, "holesky"),
    ChainProfile(560_048, "hoodi"),
    ChainProfile(11_155_111, "sepolia"),
    ChainProfile(31_337, "anvil"),
    ChainProfile(10, "optimism", receipt_types=OP_STACK),
    ChainProfile(8_453, "base", receipt_types=OP_STACK),
    ChainProfile(42_161, "arbitrum", blooms=Blooms.NONE),
    ChainProfile(61, "classic", finality=FinalityRule.DEPTH),
)


def get_profile(chain_id: int) -> ChainProfile:
    """The known one, or for any other chain what Ethereum itself does."""
    known = (profile for profile in PROFILES if profile.chain_id == chain_id)
    return next(known, ChainProfile(chain_id, f"eip155_{chain_id}"))


def find_chain_id(name: str) -> int | None:
    """The chain that `get_profile` gives this name."""
    prefix, _, digits = name.partition("_")
    if prefix == "eip155" and digits.isascii() and digits.isdigit():
        return int(digits)
    return next((profile.chain_id for profile in PROFILES if profile.name == name), None)
