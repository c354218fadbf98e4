"""What a reader of the data source `evm` may ask for, out of the texts that Spark hands over."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from proofcast.chain.segment import BlockId
from proofcast.chain.trust import Trust
from proofcast.errors import InvalidRequest, Reason
from proofcast.ethereum.bloom import LogFilter
from proofcast.ethereum.receipt import ADDRESS_LENGTH, TOPIC_LENGTH
from proofcast.event import Finality
from proofcast.pipeline.schemas import ARROW, CHANGES, TASKS, TOPICS, Table

Parsed = TypeVar("Parsed")

READABLE = (TASKS, CHANGES, Table.BLOCKS, Table.RECEIPTS, Table.LOGS, Table.TRANSACTIONS)
"""Events are decoded from logs, so they are not read from a chain."""
BLOCKS_PER_PARTITION = 256
"""Some 60 MB of a busy chain, which a worker holds: files worth opening, and little enough to begin again."""
BLOCKS_PER_BATCH = 2_048
"""Of a stream: what is committed at once. A commit costs as much as verifying some hundred blocks."""

NAMES = frozenset(
    {"source", "journal", "table", "columns", "first", "last", "finality", "checkpoint", "addresses", *TOPICS}
    | {"bodies", "chain_id", "trust", "blocks_per_partition", "blocks_per_batch", "reader", "after"}
)
ALIASES = {"path": "source"}
CHECKPOINT_FORM = re.compile(r"(\d{1,18}):0x([0-9a-fA-F]{64})")


@dataclass(frozen=True, slots=True)
class ReadOptions:
    source: str
    """As `proofcast.chain.io.source.open_source` understands it; empty where a journal is read."""
    journal: str = ""
    table: str = Table.LOGS
    columns: tuple[str, ...] = ()
    """All of the table's, unless named: Spark does not tell a Python source which ones a query needs."""
    first: int | None = None
    last: int | None = None
    finality: Finality = Finality.FINALIZED
    checkpoint: BlockId | None = None
    """A block that the user trusts; it ends the range, or stands above it."""
    log_filter: LogFilter = field(default_factory=LogFilter)
    bodies: bool = True
    """Of tasks: whether transactions are fetched, which are most of what a node has to send."""
    chain_id: int | None = None
    trust: Trust = Trust.LINKED
    blocks_per_partition: int = BLOCKS_PER_PARTITION
    blocks_per_batch: int = BLOCKS_PER_BATCH
    reader: str = ""
    """Of a journal: the name under which the stream's progress is kept there, so that what it needs is not trimmed."""
    after: str = ""
    """Of a stream: the offset behind which it begins, as JSON; where a sink stands, for example."""

    def narrow(self, first: int | None, last: int | None) -> "ReadOptions":
        """The same, of no more than these blocks."""
        firsts = [number for number in (self.first, first) if number is not None]
        lasts = [number for number in (self.last, last) if number is not None]
        return replace(self, first=max(firsts, default=None), last=min(lasts, default=None))


def parse_options(texts: Mapping[str, str]) -> ReadOptions:
    """Spark's options; names in any case, `path` (of `.load(path)`) is the source."""
    given = {ALIASES.get(name.lower(), name.lower()): text for name, text in texts.items() if text}
    unknown = given.keys() - NAMES
    if unknown:
        raise refuse(f"the data source `evm` has no option `{min(unknown)}`", f"it has {', '.join(sorted(NAMES))}")

    def read(name: str, parse: Callable[[str], Parsed], default: Parsed) -> Parsed:
        return parse(given[name]) if name in given else default

    options = ReadOptions(
        source=given.get("source", ""),
        journal=given.get("journal", ""),
        table=read("table", parse_table, str(Table.LOGS)),
        columns=read("columns", parse_words, ()),
        first=read("first", parse_number, None),
        last=read("last", parse_number, None),
        finality=read("finality", parse_finality, Finality.FINALIZED),
        checkpoint=read("checkpoint", parse_checkpoint, None),
        log_filter=parse_filter(given),
        bodies=read("bodies", parse_flag, True),
        chain_id=read("chain_id", parse_number, None),
        trust=read("trust", parse_trust, Trust.LINKED),
        blocks_per_partition=read("blocks_per_partition", parse_positive, BLOCKS_PER_PARTITION),
        blocks_per_batch=read("blocks_per_batch", parse_positive, BLOCKS_PER_BATCH),
        reader=given.get("reader", ""),
        after=given.get("after", ""),
    )
    return verify_options(options)


def parse_filter(given: Mapping[str, str]) -> LogFilter:
    topics = [parse_values(given.get(name, ""), TOPIC_LENGTH) for name in TOPICS]
    while topics and not topics[-1]:
        topics.pop()
    return LogFilter(parse_values(given.get("addresses", ""), ADDRESS_LENGTH), tuple(topics))


def verify_options(options: ReadOptions) -> ReadOptions:
    if bool(options.source) == bool(options.journal):
        raise refuse("neither or both of a source and a journal are named", 'give `.option("source", ...)`')
    unknown = set(options.columns) - set(ARROW[options.table].names)
    if unknown:
        names = ", ".join(ARROW[options.table].names)
        raise refuse(f"`{options.table}` has no column `{min(unknown)}`", f"it has {names}")
    if options.log_filter.clauses and options.table not in (Table.LOGS, CHANGES):
        raise refuse(
            f"addresses and topics choose logs, not rows of `{options.table}`",
            'give `.option("table", "logs")`, or filter in Spark',
        )
    return options


def refuse(message: str, hint: str) -> InvalidRequest:
    return InvalidRequest(Reason.BAD_ARGUMENT, message, hint=hint)


# --- one option each


def parse_table(text: str) -> str:
    return parse_choice(text, tuple(str(name) for name in READABLE))


def parse_finality(text: str) -> Finality:
    return Finality(parse_choice(text, tuple(Finality)))


def parse_trust(text: str) -> Trust:
    return Trust(parse_choice(text, tuple(Trust)))


def parse_choice(text: str, choices: tuple[str, ...]) -> str:
    if text not in choices:
        raise refuse(f"`{text}` is none of the choices", f"they are {', '.join(choices)}")
    return text


def parse_flag(text: str) -> bool:
    return parse_choice(text, ("true", "false")) == "true"


def parse_number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise refuse(f"`{text}` is no number", "write decimal digits")
    return int(text)


def parse_positive(text: str) -> int:
    number = parse_number(text)
    if number == 0:
        raise refuse("`0` blocks at a time never get anywhere", "write 1 or more")
    return number


def parse_checkpoint(text: str) -> BlockId:
    match = CHECKPOINT_FORM.fullmatch(text)
    if not match:
        raise refuse(f"`{text}` is no checkpoint", "write a block's number, `:` and its hash (0x and 64 digits)")
    return BlockId(int(match[1]), bytes.fromhex(match[2]))


def parse_words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def parse_values(text: str, length: int) -> frozenset[bytes]:
    """Hexadecimal values separated by commas."""
    return frozenset(parse_bytes(word, length) for word in parse_words(text))


def parse_bytes(text: str, length: int) -> bytes:
    if not re.fullmatch(rf"(0x)?[0-9a-fA-F]{{{2 * length}}}", text):
        raise refuse(f"`{text}` is not `{length}` bytes", f"write 0x and {2 * length} hexadecimal digits")
    return bytes.fromhex(text.removeprefix("0x"))
