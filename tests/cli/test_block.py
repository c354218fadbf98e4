"""`proofcast block verify`: a line for each block, and an exit code."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from proofcast.cli import main
from proofcast.ethereum import rlp
from proofcast.ethereum.block import RawBlock, encode_recorded
from proofcast.ethereum.header import Header, compute_hash, encode_header
from proofcast.ethereum.trie import EMPTY_ROOT, compute_ordered_root

HEADER = Header(
    parent_hash=bytes(32),
    ommers_hash=bytes(32),
    beneficiary=bytes(20),
    state_root=bytes(32),
    transactions_root=EMPTY_ROOT,
    receipts_root=EMPTY_ROOT,
    logs_bloom=bytes(256),
    difficulty=0,
    number=7,
    gas_limit=0,
    gas_used=0,
    timestamp=0,
    extra_data=b"",
    mix_hash=bytes(32),
    nonce=bytes(8),
)
EMPTY = RawBlock(encode_header(HEADER), (), ())


def write(folder: Path, data: bytes, name: str = "mainnet-00000007.rlp.gz") -> str:
    (folder / name).write_bytes(gzip.compress(data))
    return str(folder / name)


def verify(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[dict[str, object]], str]:
    exit_code = main(["block", "verify", *words])
    printed = capsys.readouterr()
    return exit_code, [json.loads(line) for line in printed.out.splitlines()], printed.err


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"no block", "something follows the item at byte `1`"),
        (encode_recorded(RawBlock(rlp.encode([b"h"]), (), ())), "`1` items instead of `15` or more"),
        (encode_recorded(RawBlock(EMPTY.header, (b"tx",), None)), "the transactions"),
        (encode_recorded(RawBlock(EMPTY.header, None, (b"\2",))), "receipt `0`: the data ends"),
    ],
)
def test_false_block_is_named(capsys: pytest.CaptureFixture[str], tmp_path: Path, data: bytes, reason: str) -> None:
    exit_code, (line,), error = verify(capsys, write(tmp_path, data))
    assert exit_code == 1
    assert line["verdict"] is False
    assert reason in str(line["reason"])
    assert error.startswith("error: `1` of `1` blocks are false\nhint: ")


def test_recording_without_receipts_proves_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    transactions = (b"transaction" * 4,)
    header = encode_header(replace(HEADER, transactions_root=compute_ordered_root(transactions)))
    exit_code, (line,), _ = verify(capsys, write(tmp_path, encode_recorded(RawBlock(header, transactions, None))))
    assert (exit_code, line["verdict"], line["reason"]) == (1, False, "the recording has no receipts")


def test_file_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    exit_code, lines, error = verify(capsys, str(tmp_path / "nothing"))
    assert (exit_code, lines) == (2, [])
    assert "does not exist" in error


def test_true_block_is_told_in_full(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = write(tmp_path, encode_recorded(EMPTY))
    exit_code, (line,), error = verify(capsys, path)
    assert (exit_code, error) == (0, "")
    assert line == {
        "file": path,
        "number": 7,
        "hash": f"0x{compute_hash(EMPTY.header).hex()}",
        "root": f"0x{EMPTY_ROOT.hex()}",
        "receipts": 0,
        "logs": 0,
        "verdict": True,
        "reason": None,
    }


def test_one_false_block_among_true_ones(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    good, bad = write(tmp_path, encode_recorded(EMPTY)), write(tmp_path, b"\0\0", "bad.rlp.gz")
    exit_code, lines, _ = verify(capsys, good, bad, good)
    assert (exit_code, [line["verdict"] for line in lines]) == (1, [True, False, True])
