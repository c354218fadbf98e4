"""Blocks recorded in files, one to a file: `NAME-NUMBER.rlp.gz`, the gzip of `rlp([header, [tx...], [receipt...]])`.

NAME is that of the chain (`mainnet`, or `eip155_31337` where it has none): a label, as good as whoever wrote it. The
number is read from the header, not believed of the name.
"""

import glob
import gzip
import zlib
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

from proofcast.chain.profile import find_chain_id, get_profile
from proofcast.chain.segment import BlockId
from proofcast.chain.source import BlockSource
from proofcast.chain.trust import Trust
from proofcast.errors import InvalidInput, InvalidRequest, Reason, Unavailable
from proofcast.ethereum import rlp
from proofcast.ethereum.block import RawBlock, encode_recorded, parse_recorded
from proofcast.ethereum.header import compute_hash, parse_header
from proofcast.event import Finality

SUFFIX = ".rlp.gz"
GZIP = 31
"""zlib's number for its largest window inside a gzip file."""
HEAD_LENGTH = 4_096
"""Bytes in which a header surely ends: it has 600, and 32 of extra data at most on honest chains."""
BLOCK_LENGTH_MAX = 256 << 20
"""Decompressed. Real blocks have some megabytes; a bomb has none of our memory."""


class RecordedSource:
    trust = Trust.LINKED

    def __init__(self, where: str) -> None:
        self.name = where
        self._paths = find_files(where)

    @property
    def alternatives(self) -> Sequence[BlockSource]:
        return (self,)

    def get_chain_id(self) -> int:
        names = {path.name.rpartition("-")[0] for path in self._paths}
        known = {name: find_chain_id(name) for name in sorted(names)}
        chain_id = known[names.pop()] if len(names) == 1 else None
        if chain_id is None:
            raise InvalidRequest(
                Reason.WRONG_NETWORK,
                f"the files of `{self.name}` are not of one known chain but of `{', '.join(known)}`",
                hint="name those of one chain, e.g. `blocks/mainnet-*.rlp.gz`",
            )
        return chain_id

    def get_head(self, finality: Finality) -> BlockId | None:
        """The same for every finality: what is recorded is past."""
        last = max(self._files)
        return BlockId(last, compute_hash(read_header(self._files[last])))

    def get_headers(self, first: int, last: int) -> list[bytes]:
        return [read_header(self._get_file(number)) for number in range(first, last + 1)]

    def get_block_by_hash(self, block_hash: bytes) -> RawBlock:
        path = self._by_hash.get(block_hash)
        if path is None:
            raise self._refuse(f"block `0x{block_hash.hex()}`")
        return read_block(path)

    def get_blocks(
        self, first: int, last: int, *, with_receipts: bool = True, with_transactions: bool = False
    ) -> list[RawBlock]:
        blocks = [read_block(self._get_file(number)) for number in range(first, last + 1)]
        return [choose_parts(block, with_receipts, with_transactions) for block in blocks]

    @cached_property
    def _files(self) -> dict[int, Path]:
        """By the number in the header."""
        return {parse_header(read_header(path)).number: path for path in self._paths}

    @cached_property
    def _by_hash(self) -> dict[bytes, Path]:
        return {compute_hash(read_header(path)): path for path in self._paths}

    def _get_file(self, number: int) -> Path:
        if number not in self._files:
            raise self._refuse(f"block `{number}`")
        return self._files[number]

    def _refuse(self, block: str) -> Unavailable:
        numbers = f"`{min(self._files)}` to `{max(self._files)}`, `{len(self._files)}` of them"
        return Unavailable(
            Reason.NOT_YET, f"{block} is not recorded in `{self.name}`", hint=f"recorded are blocks from {numbers}"
        )


def choose_parts(block: RawBlock, with_receipts: bool, with_transactions: bool) -> RawBlock:
    transactions = block.transactions if with_transactions else None
    return RawBlock(block.header, transactions, block.receipts if with_receipts else None)


def find_files(where: str) -> list[Path]:
    pattern = f"{glob.escape(where)}/*{SUFFIX}" if Path(where).is_dir() else where
    paths = [Path(path) for path in sorted(glob.glob(pattern))]
    if not paths or not all(path.name.endswith(SUFFIX) for path in paths):
        raise InvalidRequest(
            Reason.BAD_ARGUMENT,
            f"`{where}` names no recorded blocks",
            hint=f"give a folder, a file or a pattern of files that end in `{SUFFIX}`",
        )
    return paths


def read_block(path: Path) -> RawBlock:
    inflator = zlib.decompressobj(GZIP)
    try:
        data = inflator.decompress(path.read_bytes(), BLOCK_LENGTH_MAX)
        if not inflator.eof:
            raise EOFError(f"it is cut off, or longer than `{BLOCK_LENGTH_MAX}` bytes")
        return parse_recorded(data)
    except (OSError, EOFError, zlib.error, InvalidInput) as error:
        raise refuse_file(path, error) from error


def read_header(path: Path) -> bytes:
    """The header alone, without reading the rest."""
    try:
        with path.open("rb") as file:
            head = zlib.decompressobj(GZIP).decompress(file.read(HEAD_LENGTH), HEAD_LENGTH) or b"\0"
        block = rlp.read_span(head, 0, BLOCK_LENGTH_MAX)
        span = rlp.read_span(head, block.start, len(head))
        header = head[span.position : span.end]
        parse_header(header)
    except (OSError, zlib.error, InvalidInput) as error:
        raise refuse_file(path, error) from error
    return header


def refuse_file(path: Path, error: Exception) -> InvalidInput:
    why = "it is no gzip, or damaged" if isinstance(error, zlib.error) else getattr(error, "strerror", None) or error
    return InvalidInput(
        Reason.MALFORMED, f"`{path}` is no recorded block: {why}", hint="get the file again, or leave it out"
    )


def write_blocks(folder: Path, chain_id: int, blocks: Iterable[RawBlock]) -> list[Path]:
    """Record blocks in the same format; the files are the same bytes whenever they are written."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for block in blocks:
        number = parse_header(block.header).number
        paths.append(folder / f"{get_profile(chain_id).name}-{number:08}{SUFFIX}")
        paths[-1].write_bytes(gzip.compress(encode_recorded(block), mtime=0))
    return paths
