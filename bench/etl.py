"""ethereum-etl, in an environment of its own, extracting the logs of a node that we read too.

The node serves real receipts under synthetic headers and made-up transactions, in this process, so that what it costs
is nobody's. ethereum-etl gets every log as it must: the blocks for the hashes of their transactions, then a receipt for
each. It believes what it is told; we read the same node and recompute every root.
"""

import csv
import resource
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from proofcast.ethereum import rlp
from proofcast.ethereum.block import RawBlock
from proofcast.ethereum.header import compute_hash, encode_header
from proofcast.ethereum.keccak import keccak256
from proofcast.ethereum.kernel import compute_ordered_root
from proofcast.ethereum.receipt import Receipt, parse_receipt
from proofcast.testing.chain import ChainSimulator, SimulatedBlock, SimulatedNode
from proofcast.testing.chain.node import RAW_METHODS, STANDARD_METHODS, describe_receipt, encode_hex
from proofcast.testing.chain.server import JsonValue
from proofcast.testing.ethereum import Recorded

ENVIRONMENT = Path(__file__).parents[1] / ".setup" / "ethereum-etl"
REQUIREMENTS = ("ethereum-etl==2.4.2", "regex==2026.11.9")
REPLACED = ("parsimonious==0.10.0",)
"""Instead of what ethereum-etl asks for, which Python 3.11 cannot import."""
WORKERS = 2

LogRow = tuple[int, int, str, str, str]
"""Block number, log index, address, topics (joined by commas), data."""


class RecordedNode(SimulatedNode):
    """Blocks 1 to `count` with the receipts of recorded ones, counted round and round."""

    def __init__(self, recorded: Sequence[Recorded], count: int) -> None:
        chain = ChainSimulator(0, chain_id=1)
        parent, parsed = bytes(32), [tuple(map(parse_receipt, block.receipts)) for block in recorded]
        chain.canonical = []
        for number in range(count + 1):
            at = number % len(recorded)
            chain.canonical.append(build_block(recorded[at], parsed[at], number, parent))
            parent = chain.canonical[-1].hash
        chain.blocks = {block.hash: block for block in chain.canonical}
        super().__init__(chain, STANDARD_METHODS | RAW_METHODS)
        self._receipts = {
            encode_hex(keccak256(raw)): (block, index)
            for block in chain.canonical
            for index, raw in enumerate(block.raw.transactions or ())
        }

    def _find_receipt(self, name: JsonValue) -> JsonValue:
        return describe_receipt(*self._receipts[name]) | {"from": f"0x{'1' * 40}", "to": f"0x{'2' * 40}"}


def build_block(recorded: Recorded, receipts: tuple[Receipt, ...], number: int, parent: bytes) -> SimulatedBlock:
    transactions = tuple(make_up_transaction(number, index) for index in range(len(recorded.receipts)))
    root = compute_ordered_root(transactions)
    header = replace(recorded.header, number=number, parent_hash=parent, transactions_root=root)
    raw = RawBlock(encode_header(header), transactions, recorded.receipts)
    return SimulatedBlock(header, compute_hash(raw.header), raw, receipts)


def make_up_transaction(number: int, index: int) -> bytes:
    nonce = rlp.encode_integer(number << 16 | index)
    return b"\2" + rlp.encode([b"\1", nonce, b"\1", b"\1", b"\1", b"t" * 20, b"", b"input", [], b"", b"\1", b"\1"])


# --- the other program


def install() -> Path:
    """Where its program is."""
    program = ENVIRONMENT / "bin" / "ethereumetl"
    if not program.exists():
        print("installing ethereum-etl in an environment of its own", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", ENVIRONMENT], check=True)
        pip = [ENVIRONMENT / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *REQUIREMENTS], check=True)
        subprocess.run([*pip, "--no-deps", *REPLACED], check=True, stderr=subprocess.DEVNULL)
    return program


def extract(program: Path, url: str, last: int, folder: Path) -> tuple[list[LogRow], float]:
    """The logs of blocks 1 to `last`, and the CPU seconds it took."""
    blocks, hashes, logs = (str(folder / name) for name in ("transactions.csv", "hashes.txt", "logs.csv"))
    shared = ["--provider-uri", url, "--max-workers", str(WORKERS)]
    commands = (
        ["export_blocks_and_transactions", "-s", "1", "-e", str(last), "--transactions-output", blocks, *shared],
        ["extract_csv_column", "--input", blocks, "--column", "hash", "--output", hashes],
        ["export_receipts_and_logs", "--transaction-hashes", hashes, "--logs-output", logs, *shared],
    )
    before = measure_ended_s()
    for command in commands:
        subprocess.run([program, *command], check=True, capture_output=True)
    return read_logs(Path(logs)), measure_ended_s() - before


def measure_ended_s() -> float:
    """CPU seconds of processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def read_logs(path: Path) -> list[LogRow]:
    csv.field_size_limit(sys.maxsize)  # some logs are longer than what it thinks a field may be
    with path.open(newline="") as file:
        rows = csv.DictReader(file)
        return [
            (int(row["block_number"]), int(row["log_index"]), row["address"], row["topics"], row["data"])
            for row in rows
        ]
