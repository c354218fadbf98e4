"""A million damaged inputs to everything that parses, by both paths: no crash, no disagreement.

An input is a real or made-up receipt, header, trie node or bare RLP item with some faults in it. Whatever happens to it
must be a value or an `InvalidInput`; what is accepted must be written back to the same bytes; and the kernel, in every
width, must accept exactly what the definition accepts and make the same columns of it.
"""

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from matplotlib.figure import Figure

from bench.gethbed import read_run
from bench.report import RESULTS, Row, write_report
from proofcast.errors import InvalidInput
from proofcast.ethereum import columns, kernel, rlp
from proofcast.ethereum.columns import LogColumns
from proofcast.ethereum.header import Header, encode_header, parse_header
from proofcast.ethereum.keccak import keccak256
from proofcast.ethereum.receipt import encode_receipt, parse_receipt
from proofcast.ethereum.trie import build_proof, verify_proof
from proofcast.testing.ethereum import damage, draw_receipt

INPUTS = int(os.environ.get("PROOFCAST_FUZZ_INPUTS", "1_000_000"))
SEED = 20_260_101
RECEIPT_BYTES_MAX = 2_000
"""Longer receipts say the same more slowly."""
FAULTS_MAX = 3


@dataclass(frozen=True, slots=True)
class Target:
    """Something that parses, and what to damage for it."""

    name: str
    share: int
    """Of ten inputs."""
    samples: Sequence[bytes]
    run: Callable[[Random, bytes], bool]
    """Is the input accepted? Raises AssertionError where the two paths disagree."""


def run_receipts(dice: Random, raw: bytes) -> bool:
    """A block of one or a few receipts, by the definition and by the kernel in every width."""
    receipts = [raw] * dice.choice((1, 1, 1, 3))
    root = kernel.compute_ordered_root(receipts)
    bloom = dice.choice((None, None, bytes(256)))
    try:
        expected = columns.check_receipts(receipts, root, bloom)
    except InvalidInput:
        expected = None
    for width in kernel.WIDTHS:
        found = kernel.check_natively(receipts, root, bloom, width)
        assert (None if found is None else LogColumns(*found)) == expected, f"`{width}` lanes disagree"
    return expected is not None


def accept(parse: Callable[[bytes], bytes]) -> Callable[[Random, bytes], bool]:
    """Runs a parser that is followed by its own writer."""

    def run(_dice: Random, data: bytes) -> bool:
        try:
            written = parse(data)
        except InvalidInput:
            return False
        assert written == data, f"`{data.hex()}` is read and written as `{written.hex()}`"
        return True

    return run


def run_header(_dice: Random, data: bytes) -> bool:
    """By the definition and by the kernel; what is accepted is written back the same."""
    try:
        expected = parse_header(data)
    except InvalidInput:
        expected = None
    found = kernel.parse_natively(data)
    assert (None if found is None else Header(*found)) == expected, "the header's two paths disagree"
    assert expected is None or encode_header(expected) == data, f"`{data.hex()}` is written otherwise than read"
    return expected is not None


def run_proof(dice: Random, node: bytes) -> bool:
    """A damaged node whose hash is the root: only its form can be wrong."""
    try:
        verify_proof(keccak256(node), dice.choice((0, 0, 1, 200)), [node])
    except InvalidInput:
        return False
    return True


def build_targets(dice: Random) -> list[Target]:
    blocks = read_run()
    receipts = [raw for block in blocks for raw in block.receipts if len(raw) <= RECEIPT_BYTES_MAX]
    receipts += [encode_receipt(draw_receipt(dice)) for _ in range(500)]
    headers = [block.raw.header for block in blocks]
    items = [rlp.encode([dice.randbytes(dice.randrange(60)), [b"", [b"x"] * dice.randrange(40)]]) for _ in range(200)]
    nodes = [node for index in range(100) for node in build_proof([b"item" * 9] * 100, index)]
    nodes += [build_proof([dice.randbytes(dice.randrange(99))], 0)[0] for _ in nodes]
    return [
        Target("blocks of receipts", 6, receipts, run_receipts),
        Target("receipts", 1, receipts, accept(lambda data: encode_receipt(parse_receipt(data)))),
        Target("headers", 1, headers, run_header),
        Target("bare RLP", 1, items, accept(lambda data: rlp.encode(rlp.decode(data)))),
        Target("trie nodes", 1, nodes, run_proof),
    ]


@dataclass(slots=True)
class Tally:
    inputs: Counter[str]
    accepted: Counter[str]
    crashes: int = 0
    disagreements: int = 0


def run_one(dice: Random, target: Target, tally: Tally) -> None:
    data = dice.choice(target.samples)
    for _ in range(dice.randrange(FAULTS_MAX + 1)):
        data = damage(dice, data)
    tally.inputs[target.name] += 1
    try:
        tally.accepted[target.name] += target.run(dice, data)
    except AssertionError as error:
        tally.disagreements += 1
        print(f"{target.name}: {error}\n  {data.hex()}", file=sys.stderr)
    except Exception as error:  # whatever it is, it is what this looks for
        tally.crashes += 1
        print(f"{target.name}: {error!r}\n  {data.hex()}", file=sys.stderr)


def run_all(inputs: int) -> Tally:
    dice = Random(SEED)
    targets = build_targets(dice)
    wheel = [target for target in targets for _ in range(target.share)]
    tally, began = Tally(Counter(), Counter()), time.monotonic()
    for number in range(inputs):
        run_one(dice, wheel[number % len(wheel)], tally)
        if number % (inputs // 10) == 0:
            print(f"{number:,} inputs after {time.monotonic() - began:.0f} s (seed {SEED})", file=sys.stderr)
    return tally


def draw(tally: Tally) -> None:
    figure = Figure(figsize=(7, 3))
    axes = figure.subplots()
    names = list(tally.inputs)
    accepted = [tally.accepted[name] for name in names]
    axes.barh(names, [tally.inputs[name] for name in names], color="C7", label="refused")
    axes.barh(names, accepted, color="C0", label="accepted, and written back the same")
    axes.set(xlabel="inputs")
    axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(RESULTS / "fuzz.svg")


def main() -> int:
    if not kernel.IS_NATIVE:
        sys.exit("error: the kernel is not built\nhint: `tools/native` builds it where Rust is installed")
    tally = run_all(INPUTS)
    draw(tally)
    rows = [
        Row("inputs", tally.inputs.total(), "inputs", 1_000_000, "higher", "a million"),
        Row("crashes", tally.crashes, "inputs", 0, "lower", "none"),
        Row("disagreements", tally.disagreements, "inputs", 0, "lower", "none"),
    ]
    for name, count in tally.inputs.items():
        share = round(100 * tally.accepted[name] / count, 1)
        rows.append(Row(f"{name}: accepted of {count:,}", share, "%", None, "higher", "of undamaged ones all"))
    return write_report("fuzz", rows)


if __name__ == "__main__":
    sys.exit(main())
