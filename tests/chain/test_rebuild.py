"""Transactions rebuilt from JSON: every type, taken apart by another library first."""

import gzip
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest
from eth_account import Account
from eth_account.typed_transactions import TypedTransaction
from hexbytes import HexBytes

from proofcast.chain.io.rebuild import rebuild_receipt, rebuild_transaction
from proofcast.chain.profile import get_profile
from proofcast.cli.doctor import find_data
from proofcast.ethereum import rlp
from proofcast.ethereum.block import parse_recorded
from proofcast.ethereum.receipt import parse_receipt
from proofcast.testing.chain import JsonValue

LEGACY = ("nonce", "gasPrice", "gas", "to", "value", "data", "v", "r", "s")
BYTES = frozenset({"to", "data", "address"})
TRANSACTIONS_PER_FILE = 20
"""Of the up to 300 of a block: enough for every type to occur."""


def show(value: object) -> JsonValue:
    """As nodes write it."""
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    if isinstance(value, int):
        return hex(value)
    if isinstance(value, Mapping) and "storageKeys" in value:  # which the other library reads as integers
        return {
            "address": show(value["address"]),
            "storageKeys": [f"0x{int(key):064x}" for key in value["storageKeys"]],
        }
    if isinstance(value, Mapping):
        return {name: show(part) for name, part in value.items()}
    assert isinstance(value, list | tuple), value
    return [show(part) for part in value]


def describe(raw: bytes) -> dict[str, JsonValue]:
    fields = read_legacy(raw) if raw[0] >= rlp.LIST else TypedTransaction.from_bytes(HexBytes(raw)).as_dict()
    shown = {name: show(value) for name, value in fields.items()}
    return shown | {"input": shown["data"], "to": None if shown["to"] == "0x" else shown["to"]}


def read_legacy(raw: bytes) -> dict[str, object]:
    fields = rlp.decode(raw)
    values = zip(LEGACY, fields, strict=True)
    return {name: value if name in BYTES else int.from_bytes(bytes(value)) for name, value in values}


@pytest.mark.needs("data")
def test_recorded_transactions_are_rebuilt() -> None:
    folder, types = find_data(), Counter[int]()
    assert folder
    for path in Path(folder, "blocks").glob("*.rlp.gz"):
        bodies = parse_recorded(gzip.decompress(path.read_bytes())).transactions or ()
        rare = [raw for raw in bodies if raw[0] in (1, 3)]
        for raw in (*rare, *bodies[:TRANSACTIONS_PER_FILE]):
            assert rebuild_transaction(describe(raw)) == raw
            types[raw[0] if raw[0] < rlp.LIST else 0] += 1
    assert types.keys() == {0, 1, 2, 3}


def test_receipt_of_a_rollups_deposit_is_rebuilt() -> None:
    """Its two further fields count for the root; a chain without them gives the standard four."""
    bloom = f"0x{bytes(256).hex()}"
    answer = {"type": "0x7e", "status": "0x1", "cumulativeGasUsed": "0x9", "logsBloom": bloom, "logs": []}
    answer |= {"depositNonce": "0x5", "depositReceiptVersion": "0x1"}
    assert parse_receipt(rebuild_receipt(answer, get_profile(10).receipt_types)).further == (b"\5", b"\1")
    assert parse_receipt(rebuild_receipt(answer, get_profile(1).receipt_types)).further == ()


def test_transaction_that_sets_code_is_rebuilt() -> None:
    account = Account.from_key(b"\1" * 32)
    authorization = account.sign_authorization({"chainId": 1, "address": b"\2" * 20, "nonce": 3})
    fields = {"type": 4, "chainId": 1, "nonce": 5, "maxPriorityFeePerGas": 6, "maxFeePerGas": 7, "gas": 8}
    call = {"to": b"\3" * 20, "value": 9, "data": b"\4", "accessList": [], "authorizationList": [authorization]}
    raw = bytes(account.sign_transaction(fields | call).raw_transaction)
    assert rebuild_transaction(describe(raw)) == raw
