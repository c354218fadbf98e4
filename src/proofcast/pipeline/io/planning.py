"""What is decided before anything is read: which chain, up to which block, and in which segments."""

import importlib
from functools import lru_cache

from proofcast.chain.io.fetch import link_range
from proofcast.chain.io.source import open_source
from proofcast.chain.profile import FINALIZED_DEPTH, SAFE_DEPTH, ChainProfile, get_profile
from proofcast.chain.segment import Segment
from proofcast.chain.source import BlockSource
from proofcast.chain.trust import verify_trust
from proofcast.errors import InvalidRequest, Reason, Unavailable
from proofcast.event import Finality
from proofcast.pipeline.options import ReadOptions

OWN_SOURCE = "python:"
DEPTHS = {Finality.LATEST: 0, Finality.SAFE: SAFE_DEPTH, Finality.FINALIZED: FINALIZED_DEPTH}


@lru_cache(maxsize=8)
def open_cached(description: str) -> BlockSource:
    """A process keeps its connections between the ranges it reads.

    Besides what `open_source` knows, `python:MODULE:FUNCTION:ARGUMENT` calls a function of the user's own, in every
    process that reads: whatever has the methods of `BlockSource` can be read in Spark, and is checked like all others.
    """
    if not description.startswith(OWN_SOURCE):
        return open_source(description)
    module, name, argument = description.removeprefix(OWN_SOURCE).split(":", 2)
    opened: BlockSource = getattr(importlib.import_module(module), name)(argument)
    return opened


def open_checked(options: ReadOptions) -> tuple[BlockSource, ChainProfile]:
    """The source, which must be of the demanded chain and worth the demanded trust."""
    source = open_cached(options.source)
    chain_id = source.get_chain_id()
    if options.chain_id is not None and chain_id != options.chain_id:
        raise InvalidRequest(
            Reason.WRONG_NETWORK,
            f"`{source.name}` serves the chain `{chain_id}`, not `{options.chain_id}`",
            hint="check the address, or the chain id you demand",
            have=chain_id,
            need=options.chain_id,
        )
    verify_trust(source.trust, options.trust)
    return source, get_profile(chain_id)


def get_last(source: BlockSource, options: ReadOptions) -> int:
    """The highest block to read now: what was asked for, as far as it is settled."""
    head = get_settled_number(source, options.finality)
    return head if options.last is None else min(options.last, head)


def get_settled_number(source: BlockSource, finality: Finality) -> int:
    """The highest block that is so settled: as the source says, else by depth below its head."""
    named = source.get_head(finality)
    if named is not None:
        return named.number
    latest = source.get_head(Finality.LATEST)
    return latest.number - DEPTHS[finality] if latest else -1


def plan_segments(options: ReadOptions) -> list[Segment]:
    """The whole range, linked, in segments for one worker each; nothing where no block is settled yet."""
    source, _ = open_checked(options)
    first, last = get_first(options), get_last(source, options)
    if options.last is not None and last < options.last:
        raise Unavailable(
            Reason.NOT_YET,
            f"block `{options.last}` is not `{options.finality}` at `{source.name}` yet: that is block `{last}`",
            hint="wait, ask for less, or accept less finality",
            have=last,
            need=options.last,
        )
    if last < first:
        return []
    return link_range(source, first, last, options.blocks_per_partition, options.checkpoint)


def get_first(options: ReadOptions) -> int:
    if options.first is None:
        raise InvalidRequest(
            Reason.BAD_ARGUMENT, "no first block is named", hint='give `.option("first", ...)` or filter by `number`'
        )
    return options.first
