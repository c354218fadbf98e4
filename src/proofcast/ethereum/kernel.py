"""The hot part of `ethereum/`, compiled where the kernel is built, else by its definition in Python.

The kernel only says no; why is said by the definition, which then runs over the same bytes. So a refusal has one
wording and one position whichever way it was found, and a kernel that refuses what the definition accepts is noticed.
"""

from collections.abc import Sequence

from proofcast.ethereum import bloom as bloom_definition
from proofcast.ethereum import columns as columns_definition
from proofcast.ethereum import header as header_definition
from proofcast.ethereum import trie as trie_definition
from proofcast.ethereum.bloom import LogFilter, compute_bits
from proofcast.ethereum.columns import LogColumns
from proofcast.ethereum.header import Header

# Only mypy minds: it runs where the kernel is not built, too.
try:
    from proofcast_native import (  # type: ignore[import-not-found,import-untyped,unused-ignore]
        check_receipts as check_natively,
    )
    from proofcast_native import compute_ordered_root as compute_natively
    from proofcast_native import get_widths
    from proofcast_native import match_blooms as match_natively
    from proofcast_native import parse_header as parse_natively

    WIDTHS: tuple[int, ...] = tuple(get_widths())
except ImportError:
    WIDTHS = ()

IS_NATIVE = bool(WIDTHS)
"""`WIDTHS` are the numbers of hashes that this machine can compute side by side; the kernel uses the greatest."""


def check_receipts(receipts: Sequence[bytes], root: bytes, bloom: bytes | None) -> LogColumns:
    """The columns of receipts whose root is `root`; where a bloom is given, checked against their logs too."""
    columns = check_natively(receipts, root, bloom) if IS_NATIVE else None
    if columns is not None:
        return LogColumns(*columns)
    definition = columns_definition.check_receipts(receipts, root, bloom)
    assert not IS_NATIVE, f"the kernel refuses `{len(receipts)}` receipts of the root `{root.hex()}`"
    return definition


def parse_header(data: bytes) -> Header:
    fields = parse_natively(data) if IS_NATIVE else None
    if fields is not None:
        return Header(*fields)
    definition = header_definition.parse_header(data)
    assert not IS_NATIVE, f"the kernel refuses the header `{data.hex()}`"
    return definition


def compute_ordered_root(items: Sequence[bytes]) -> bytes:
    """The root of a list, as of a block's transactions."""
    root: bytes = compute_natively(items) if IS_NATIVE else trie_definition.compute_ordered_root(items)
    return root


def match_blooms(blooms: bytes, filters: Sequence[LogFilter]) -> list[bytes]:
    """For each filter a bitmap, lowest bit first, of the blooms that may match; `blooms` is one after the other."""
    if not IS_NATIVE:
        return bloom_definition.match_blooms(blooms, filters)
    clauses = [[list(map(compute_bits, clause)) for clause in wanted.clauses] for wanted in filters]
    bitmaps: list[bytes] = match_natively(blooms, clauses)
    return bitmaps
