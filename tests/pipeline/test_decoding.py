"""Logs into events, by any ABI and by our own contracts'; no Spark is needed for that."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from proofcast.errors import InvalidRequest
from proofcast.ethereum.keccak import keccak256
from proofcast.onchain.abi import encode_values
from proofcast.pipeline.decoding import Abi, decode_batch
from proofcast.pipeline.io.abis import get_own_abi, load_abi
from proofcast.pipeline.schemas import ARROW, TOPICS, Table

TOKEN = b"\xaa" * 20
TRANSFER = keccak256(b"Transfer(address,address,uint256)")
PARTIES = (b"\1" * 20, b"\2" * 20)
ABI = [
    {
        "type": "event",
        "name": "Transfer",
        "inputs": [
            {"name": "from", "type": "address", "indexed": True},
            {"name": "to", "type": "address", "indexed": True},
            {"name": "value", "type": "uint256", "indexed": False},
        ],
    },
    {
        "type": "event",
        "name": "Quiet",
        "anonymous": True,
        "inputs": [{"name": "x", "type": "bytes32", "indexed": True}],
    },
    {"type": "function", "name": "transfer", "inputs": []},
]


def build_logs(*logs: tuple[tuple[bytes, ...], bytes]) -> pa.RecordBatch:
    rows = [
        dict.fromkeys(ARROW[Table.LOGS].names)
        | {"sequence": 0, "number": 7, "log_index": at, "address": TOKEN}
        | dict(zip(TOPICS, topics, strict=False))
        | {"data": data}
        for at, (topics, data) in enumerate(logs)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=ARROW[Table.LOGS])


def load(tmp_path: Path, content: object, addresses: frozenset[bytes] = frozenset()) -> Abi:
    (tmp_path / "Token.json").write_text(json.dumps(content))
    return load_abi(tmp_path / "Token.json", addresses)


def pad(address: bytes) -> bytes:
    return bytes(12) + address


@pytest.mark.parametrize("content", [{"no": "abi"}, [1], "text", [], [ABI[1]], [{"type": "event"}]])
def test_file_without_events_is_refused(content: object, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match=r"Token\.json|event"):
        load(tmp_path, content)


def test_absent_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="no JSON ABI"):
        load_abi(tmp_path / "nowhere.json")


def test_log_that_only_claims_the_event_says_why(tmp_path: Path) -> None:
    logs = build_logs(((TRANSFER, pad(PARTIES[0]), pad(PARTIES[1])), b"short"), ((TRANSFER,), bytes(32)))
    rows = decode_batch(logs, load(tmp_path, ABI)).to_pylist()
    assert [row["arguments"] for row in rows] == [None, None]
    assert "`5` bytes" in rows[0]["fault"]
    assert "`1` topics" in rows[1]["fault"]


def test_full_range_of_a_number(tmp_path: Path) -> None:
    logs = build_logs(((TRANSFER, *map(pad, PARTIES)), b"\xff" * 32), ((b"\7" * 32,), b""))
    (row,) = decode_batch(logs, load(tmp_path, {"abi": ABI})).to_pylist()
    assert dict(row["arguments"]) == {
        "from": "0x" + PARTIES[0].hex(),
        "to": "0x" + PARTIES[1].hex(),
        "value": str(2**256 - 1),
    }
    assert (row["abi"], row["name"], row["address"], row["fault"]) == ("Token", "Transfer", TOKEN, None)


def test_anonymous_event_of_a_named_contract(tmp_path: Path) -> None:
    logs = build_logs(((b"\7" * 32,), b""), ((TRANSFER, *map(pad, PARTIES)), bytes(32)))
    rows = decode_batch(logs, load(tmp_path, ABI, frozenset({TOKEN}))).to_pylist()
    assert [row["name"] for row in rows] == ["Quiet", "Transfer"]


def test_publication_and_outcomes_of_our_own_contracts() -> None:
    own = get_own_abi()
    published, delivered = (
        next(event for event in own.events if event.name == name) for name in ("Published", "Delivered")
    )
    topic, sequence, key = b"\5" * 32, (3).to_bytes(32, "big"), b"\6" * 32
    assert published.topic0 is not None
    assert delivered.topic0 is not None
    logs = build_logs(
        ((published.topic0, topic, sequence, key), encode_values("(address,bytes)", (TOKEN, b"LH454 late"))),
        (
            (delivered.topic0, topic, sequence),
            encode_values("(uint256,uint256,uint256,bytes)", (0, 0, 10**9, bytes([1, 2, 3]))),
        ),
    )
    first, second = (dict(row["arguments"]) for row in decode_batch(logs, own).to_pylist())
    assert (first["sequence"], first["payload"]) == ("3", "0x" + b"LH454 late".hex())
    assert json.loads(second["outcomes"]) == ["delivered", "failed", "unfunded"]
