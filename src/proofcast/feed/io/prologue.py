"""What happened before a feed began, put before its beginning: so a broker that came late has what an early one has.

From the checkpoint backwards, stretch by stretch: headers that lead to what is there already, so every block is proven
to be an ancestor of the checkpoint; and where a header's bloom says that a wanted log may be in it, the whole block.
Steps are numbered by their distance from the checkpoint: 0 for it, -1 for its parent. A stretch is written all or
nothing, and whoever is interrupted goes on below.
"""

from collections.abc import Sequence
from pathlib import Path

from proofcast.chain.io.alternatives import ask_in_turn
from proofcast.chain.profile import Blooms, get_profile
from proofcast.chain.segment import BlockId
from proofcast.chain.source import BlockSource
from proofcast.chain.steps import ChainStep
from proofcast.chain.trust import Trust
from proofcast.chain.verify import VerifiedBlock, VerifiedHeader, disagree, verify_block, verify_linked
from proofcast.errors import InvalidRequest, Reason
from proofcast.ethereum.bloom import LogFilter, may_match
from proofcast.event import Finality, Step
from proofcast.feed.io.database import Database
from proofcast.feed.io.history import read_beginning, read_chain
from proofcast.feed.io.sqlite import encode_step, pack_block
from proofcast.feed.journal import JournalEntry
from proofcast.feed.outbox import OutboxRow, build_rows, encode_row

STRETCH = 256
"""Blocks at a time."""


class Prologue:
    def __init__(self, source: BlockSource, folder: Path, wanted: LogFilter) -> None:
        self._source, self._wanted, self._database = source, wanted, Database(folder)
        with self._database.snapshot() as connection:
            self.chain_id, self._checkpoint = read_chain(connection)
            self.oldest = read_beginning(connection)[0]
        if source.get_chain_id() != self.chain_id:
            raise InvalidRequest(
                Reason.WRONG_NETWORK,
                f"`{source.name}` is on chain `{source.get_chain_id()}`, the feed on `{self.chain_id}`",
                hint="give a node of the feed's chain",
            )
        self._profile = get_profile(self.chain_id)

    def fill_stretch(self, first: int) -> bool:
        """Go at most one stretch further back, down to a block; says whether there is more to do."""
        last = self.oldest
        if not max(first, 1) <= last.number <= self._checkpoint.number:
            return False  # it is there already, or was forgotten on purpose
        begin = max(first, 1, last.number - STRETCH + 1)
        headers = ask_in_turn(self._source, lambda one: verify_stretch(one, begin, last, self._source.trust))
        blocks = [block for header in headers if (block := self._find_block(header))]
        self._write(headers, blocks)
        return begin > max(first, 1)

    def _find_block(self, header: VerifiedHeader) -> VerifiedBlock | None:
        """The block, where a wanted log may be in it."""
        if self._profile.blooms is Blooms.CONSENSUS and not may_match(header.header.logs_bloom, self._wanted):
            return None
        return ask_in_turn(
            self._source,
            lambda one: verify_block(
                one.get_block_by_hash(header.hash), self._profile, header.hash, None, header.trust
            ),
        )

    def _write(self, headers: Sequence[VerifiedHeader], blocks: Sequence[VerifiedBlock]) -> None:
        steps = {header.hash: self._build_step(header) for header in headers}
        rows = [row for block in blocks for row in self._build_rows(block, steps[block.hash])]
        matched = {row.position.block_hash for row in rows}
        kept = [block for block in blocks if block.hash in matched]
        parent = BlockId(headers[0].header.number - 1, headers[0].header.parent_hash)
        with self._database.transaction() as connection:
            connection.executemany("INSERT INTO step VALUES (?, ?, ?, ?, ?, ?, ?)", map(encode_step, steps.values()))
            connection.executemany(
                "INSERT OR IGNORE INTO header VALUES (?, ?, ?, ?, ?)",
                [
                    (one.hash, one.header.number, one.header.parent_hash, one.header.timestamp, one.raw)
                    for one in headers
                ],
            )
            connection.executemany(
                "INSERT OR IGNORE INTO block VALUES (?, ?, ?, ?)",
                [(one.hash, one.header.number, steps[one.hash].sequence, pack_block(one.raw)) for one in kept],
            )
            connection.executemany(
                "INSERT INTO outbox VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", map(encode_row, rows)
            )
            sequence = parent.number - self._checkpoint.number
            connection.execute("INSERT OR REPLACE INTO beginning VALUES (1, ?, ?, ?)", (*parent, sequence))
        self.oldest = parent

    def _build_step(self, header: VerifiedHeader) -> ChainStep:
        link = header.link
        sequence = link.number - self._checkpoint.number
        return ChainStep(sequence, Step.APPLY, link.number, link.hash, link.parent_hash, link.trust, Finality.LATEST)

    def _build_rows(self, block: VerifiedBlock, step: ChainStep) -> list[OutboxRow]:
        return build_rows(JournalEntry(step, block.raw), self.chain_id, self._wanted)


def verify_stretch(source: BlockSource, first: int, last: BlockId, trust: Trust) -> list[VerifiedHeader]:
    """The headers from a number to a block that is known, each the parent of the next."""
    headers = verify_linked(source.get_headers(first, last.number), first, last.number, None, trust)
    if headers[-1].hash != last.hash:
        raise disagree(f"the hash of block `{last.number}`", headers[-1].hash, last.hash)
    return headers
