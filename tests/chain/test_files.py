"""Blocks in files: recorded ones and era1 archives."""

import gzip
import re
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import pytest

from proofcast.chain.accumulator import compute_accumulator
from proofcast.chain.io.era1 import Era1Source
from proofcast.chain.io.fetch import fetch_block, fetch_blocks, link_range
from proofcast.chain.io.recorded import RecordedSource, write_blocks
from proofcast.chain.io.source import open_source
from proofcast.chain.profile import find_chain_id, get_profile
from proofcast.chain.verify import verify_block
from proofcast.cli.doctor import find_data
from proofcast.errors import InvalidInput, InvalidRequest, Unavailable
from proofcast.ethereum.block import RawBlock, parse_recorded
from proofcast.event import Finality
from proofcast.testing.chain import ChainSimulator
from proofcast.testing.chain.era1 import write_era1

SEED, LENGTH = 41, 12
PROFILE = get_profile(31_337)


@pytest.fixture(scope="module")
def chain() -> ChainSimulator:
    chain = ChainSimulator(SEED)
    chain.mine(LENGTH)
    return chain


@pytest.fixture(scope="module")
def blocks(chain: ChainSimulator) -> list[RawBlock]:
    return [block.raw for block in chain.canonical]


def get_recorded() -> Path:
    folder = find_data()
    assert folder
    return Path(folder, "blocks")


# --- recorded: refusals


@pytest.mark.parametrize("where", ["nowhere", "nowhere/*.rlp.gz", "."])
def test_nothing_recorded_is_refused(where: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="names no recorded blocks"):
        open_source(str(tmp_path / where))


@pytest.mark.parametrize(
    "content", [b"", b"no gzip", *(gzip.compress(rlp, mtime=0) for rlp in (b"", b"\xc0", b"\xff" * 99))]
)
def test_corrupt_file_is_refused_by_its_name(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "anvil-00000001.rlp.gz"
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match=re.escape(f"`{path}` is no recorded block")):
        RecordedSource(str(tmp_path)).get_blocks(1, 1)


def test_truncated_file_is_refused(blocks: list[RawBlock], tmp_path: Path) -> None:
    (path,) = write_blocks(tmp_path, 31_337, blocks[1:2])
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InvalidInput, match="is no recorded block"):
        RecordedSource(str(tmp_path)).get_blocks(1, 1)


def test_block_that_is_not_recorded_is_named(blocks: list[RawBlock], tmp_path: Path) -> None:
    write_blocks(tmp_path, 31_337, blocks[3:6])
    with pytest.raises(Unavailable, match="block `6` is not recorded") as refused:
        open_source(str(tmp_path)).get_headers(3, 9)
    assert refused.value.hint == "recorded are blocks from `3` to `5`, `3` of them"


def test_files_of_two_chains_are_refused(blocks: list[RawBlock], tmp_path: Path) -> None:
    write_blocks(tmp_path, 31_337, blocks[:1])
    write_blocks(tmp_path, 1, blocks[1:2])
    with pytest.raises(InvalidRequest, match="of `anvil, mainnet`"):
        open_source(str(tmp_path)).get_chain_id()


# --- recorded: what is there


@pytest.mark.parametrize("chain_id", [1, 31_337, 424_242])
def test_chain_is_known_by_the_files_names(chain_id: int, blocks: list[RawBlock], tmp_path: Path) -> None:
    write_blocks(tmp_path, chain_id, blocks)
    assert open_source(str(tmp_path)).get_chain_id() == chain_id
    assert find_chain_id(get_profile(chain_id).name) == chain_id


def test_written_blocks_are_read_again(chain: ChainSimulator, blocks: list[RawBlock], tmp_path: Path) -> None:
    write_blocks(tmp_path, 31_337, blocks)
    source = open_source(str(tmp_path))
    assert source.get_head(Finality.FINALIZED) == chain.head.id
    assert source.get_blocks(1, LENGTH, with_transactions=True) == blocks[1:]
    assert fetch_block(source, chain.canonical[3].hash, PROFILE).header == chain.canonical[3].header


@pytest.mark.needs("data")
def test_every_recorded_block_is_verified() -> None:
    logs = 0
    for path in sorted(get_recorded().glob("*.rlp.gz")):
        profile = get_profile(find_chain_id(path.name.partition("-")[0]) or 0)
        block = verify_block(parse_recorded(gzip.decompress(path.read_bytes())), profile)
        logs += block.columns.logs if block.columns else 0
    assert logs == 13_842


@pytest.mark.needs("data")
def test_recorded_run_links() -> None:
    source = open_source(f"{get_recorded()}/mainnet-*.rlp.gz")
    segments = link_range(source, 17_686_110, 17_686_132, length=8)
    read = [block for segment in segments for block in fetch_blocks(source, segment, get_profile(1))]
    assert [block.header.number for block in read] == list(range(17_686_110, 17_686_133))
    assert len(segments) == 3


# --- era1: refusals


def test_absent_archive_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="cannot be read"):
        open_source(str(tmp_path / "mainnet-00000-00000000.era1"))


def test_one_bad_block_refuses_the_archive(chain: ChainSimulator, blocks: list[RawBlock], tmp_path: Path) -> None:
    bad = RawBlock(blocks[5].header, blocks[5].transactions, blocks[6].receipts)
    path = write_era1(tmp_path, "anvil", 0, [*blocks[:5], bad, *blocks[6:]])
    with pytest.raises(InvalidInput, match=re.escape(f"the archive `{path}` is refused: block `5`")):
        Era1Source(path)


def test_archive_with_a_missing_block_is_refused(blocks: list[RawBlock], tmp_path: Path) -> None:
    path = write_era1(tmp_path, "anvil", 0, [*blocks[:5], *blocks[6:]])
    with pytest.raises(InvalidInput, match="names the parent"):
        Era1Source(path)


def test_archive_with_another_accumulator_in_its_name_is_refused(blocks: list[RawBlock], tmp_path: Path) -> None:
    path = write_era1(tmp_path, "anvil", 0, blocks).rename(tmp_path / "anvil-00000-5ec1ffb8.era1")
    with pytest.raises(InvalidInput, match="its name `5ec1ffb8`"):
        Era1Source(path)


def test_archive_with_wrong_total_difficulty_is_refused(blocks: list[RawBlock], tmp_path: Path) -> None:
    path = write_era1(tmp_path, "anvil", 0, blocks)
    data = path.read_bytes()
    last = data.rindex(b"\x06\x00\x20\x00\x00\x00\x00\x00")
    path.write_bytes(data[: last + 8] + b"\x01" + data[last + 9 :])
    with pytest.raises(InvalidInput, match="the total difficulty `1`, not `0`"):
        Era1Source(path)


@pytest.mark.slow
def test_flipped_byte_of_an_archive_never_changes_a_block(blocks: list[RawBlock], tmp_path: Path) -> None:
    """It is refused, except where snappy has two ways to say the same bytes."""
    path = write_era1(tmp_path, "anvil", 0, blocks[:2])
    data, accepted = path.read_bytes(), 0
    for position in range(0, len(data), 11):
        path.write_bytes(data[:position] + bytes((data[position] ^ 1,)) + data[position + 1 :])
        with suppress(InvalidInput):
            assert Era1Source(path).get_blocks(0, 1, with_transactions=True) == blocks[:2], f"byte {position}"
            accepted += 1
    assert accepted < len(data) / 1_000


@pytest.mark.parametrize("length", [0, 1, 8, 100, 2_000])
def test_truncated_archive_is_refused(length: int, blocks: list[RawBlock], tmp_path: Path) -> None:
    path = write_era1(tmp_path, "anvil", 0, blocks)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises((InvalidInput, InvalidRequest)):
        Era1Source(path)


# --- era1: what is there


def test_archive_is_verified_again_when_the_file_changes(blocks: list[RawBlock], tmp_path: Path) -> None:
    path = write_era1(tmp_path, "anvil", 0, blocks)
    assert open_source(str(path)) is open_source(str(path))
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(InvalidInput, match="cut off"):
        open_source(str(path))


def test_archive_is_read(chain: ChainSimulator, blocks: list[RawBlock], tmp_path: Path) -> None:
    source = open_source(str(write_era1(tmp_path, "anvil", 0, blocks)))
    assert source.get_chain_id() == 31_337
    assert source.get_head(Finality.LATEST) == chain.head.id
    assert source.get_blocks(0, LENGTH, with_transactions=True) == blocks
    (segment,) = link_range(source, 1, LENGTH, length=LENGTH)
    assert [block.hash for block in fetch_blocks(source, segment, PROFILE)] == [b.hash for b in chain.canonical[1:]]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 100])
def test_accumulator_is_the_root_of_the_whole_tree(count: int) -> None:
    """By SSZ's definition, with all 8,192 leaves written out."""
    records = [(sha256(bytes((at,))).digest(), at * 10**18) for at in range(count)]
    level = [sha256(block_hash + total.to_bytes(32, "little")).digest() for block_hash, total in records]
    level += [bytes(32)] * (8_192 - count)
    while len(level) > 1:
        level = [sha256(level[at] + level[at + 1]).digest() for at in range(0, len(level), 2)]
    assert compute_accumulator(records) == sha256(level[0] + count.to_bytes(32, "little")).digest()


@pytest.mark.needs("data")
def test_archive_of_real_blocks_is_read(tmp_path: Path) -> None:
    source = open_source(f"{get_recorded()}/mainnet-01000*.rlp.gz")
    blocks = source.get_blocks(1_000_001, 1_000_003, with_transactions=True)
    path = write_era1(tmp_path, "mainnet", 122, blocks, total_difficulty=7 * 10**18)
    assert open_source(str(path)).get_blocks(1_000_001, 1_000_003, with_transactions=True) == blocks
