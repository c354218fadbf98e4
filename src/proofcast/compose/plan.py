"""What `proofcast up` runs: commands of this very program, which anybody could type, in the order they start."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

CHAIN, PIPELINE, BROKER = "chain", "pipeline", "broker"
BACKFILL_START_S_MAX = 24 * 3600.0
"""The pipeline first fills its tables with what is final already, which on a long chain takes hours."""
START_S_MAX = 300.0
"""A JVM on a busy machine; everything else is up in a second."""

QUICK_START = "spark.driver.extraJavaOptions=-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"""For a chain of our own, which is small: half of what a JVM does in its first minute is to make code fast."""


@dataclass(frozen=True, slots=True)
class Component:
    name: str
    command: tuple[str, ...]
    """The words behind `proofcast`."""
    ready: re.Pattern[str]
    """Finds in a line of its output that it does its work."""
    start_s_max: float = START_S_MAX


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the user asks of `up`."""

    folder: PurePath
    host: str
    port: int
    chain_port: int
    nodes: tuple[str, ...] = ()
    """JSON-RPC addresses; none for a development chain of our own."""
    first: int | None = None
    """The block at which new tables begin; None for the one that is final when they are made."""
    trust: str = "linked"
    block_time_s: int | None = None
    master: str = "local[*]"
    topics: str = ""
    """Address of `Topics`, where it is not the usual one."""
    contracts: tuple[str, ...] = ()
    """Whose logs go to subscribers; none for all."""
    receivers: tuple[str, ...] = ()
    """Private addresses that webhooks may go to."""
    peers: tuple[str, ...] = ()
    """Folders of the overlay's peers that the dashboard shows."""


def build_plan(wishes: Wishes) -> tuple[Component, ...]:
    """In the order in which they start; they end in the opposite one, so that streams are closed first."""
    chain = () if wishes.nodes else (build_chain(wishes),)
    return (*chain, build_pipeline(wishes), build_broker(wishes))


def build_chain(wishes: Wishes) -> Component:
    pace = pick("--block-time", wishes.block_time_s)
    state = ("--state", str(wishes.folder / "chain.json"))
    words = ("chain", "dev", "--port", str(wishes.chain_port), *state, *pace)
    return Component(CHAIN, words, re.compile(r"chain \d+, Topics at 0x[0-9a-fA-F]{40}"))


def build_pipeline(wishes: Wishes) -> Component:
    source = ",".join(wishes.nodes) or f"http://127.0.0.1:{wishes.chain_port}"
    folders = ("--tables", str(wishes.folder / "tables"), "--feed", str(wishes.folder / "feed"))
    quick = pick("--conf", None if wishes.nodes else QUICK_START)
    how = ("--trust", wishes.trust, "--master", wishes.master, *quick, *repeat("--address", wishes.contracts))
    words = ("pipeline", "follow", "--source", source, *pick("--first", wishes.first), *folders, *how)
    start_s_max = BACKFILL_START_S_MAX if wishes.nodes else START_S_MAX
    return Component(PIPELINE, words, re.compile(r"following chain \d+ from block \d+"), start_s_max)


def build_broker(wishes: Wishes) -> Component:
    place = ("--host", wishes.host, "--port", str(wishes.port), *pick("--topics", wishes.topics or None))
    receivers = repeat("--allow-receiver", wishes.receivers)
    peers = repeat("--peer", wishes.peers)
    words = ("broker", "serve", "--feed", str(wishes.folder / "feed"), *place, *receivers, *peers)
    return Component(BROKER, words, re.compile(r"events at http://[^\s;]+"))


def pick(option: str, value: object) -> tuple[str, ...]:
    return () if value is None else (option, str(value))


def repeat(option: str, values: Sequence[str]) -> tuple[str, ...]:
    return tuple(word for value in values for word in (option, value))
