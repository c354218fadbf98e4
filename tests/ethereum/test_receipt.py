"""Receipts of every type; whatever is not one is refused, never skipped."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proofcast.errors import InvalidInput, Reason
from proofcast.ethereum import rlp
from proofcast.ethereum.receipt import Log, Receipt, encode_receipt, parse_receipt
from proofcast.testing.ethereum import DEPOSIT_TYPE, Recorded, damage, draw_receipt

SEEDS = st.integers(min_value=0, max_value=2**32 - 1)
LOG = Log(b"a" * 20, (b"t" * 32,) * 4, b"data")
RECEIPT = Receipt(2, b"\1", 21_000, bytes(256), (LOG,))
UNKNOWN = replace(RECEIPT, type=5)


def with_log(log: Log) -> bytes:
    return encode_receipt(replace(RECEIPT, logs=(log,)))


REFUSED = {
    "nothing": (b"", "neither a type nor a list begins the receipt at byte `0`"),
    "type 0 in front": (b"\0" + encode_receipt(replace(RECEIPT, type=0)), "neither a type nor a list"),
    "a string": (rlp.encode(encode_receipt(RECEIPT)), "neither a type nor a list"),
    "only a type": (b"\2", "the data ends where an item should begin at byte `1`"),
    "end missing": (encode_receipt(RECEIPT)[:-1], "ends beyond what holds it at byte `1`"),
    "more behind": (encode_receipt(RECEIPT) + b"\0", "something follows the item"),
    "three fields": (b"\2" + rlp.encode([b"\1", b"", bytes(256)]), "`3` items instead of `4` at byte `1`"),
    "five fields": (encode_receipt(replace(RECEIPT, further=(b"",))), "`5` items instead of `4`"),
    "unknown type, three fields": (b"\5" + rlp.encode([b"\1", b"", bytes(256)]), "`3` items instead of `4` or more"),
    "unknown type, other fields": (b"\5" + rlp.encode([b"\1", [], b"", []]), "a list stands where a string belongs"),
    "unknown type, further broken": (b"\5\xf9\x01\x09\1\1\xb9\x01\0" + bytes(256) + b"\xc0\x81\1\0", "single byte"),
    "status 2": (encode_receipt(replace(RECEIPT, post_state_or_status=b"\2")), "neither a status nor a state root"),
    "status zero": (encode_receipt(replace(RECEIPT, post_state_or_status=b"\0")), "neither a status nor a state root"),
    "typed state root": (encode_receipt(replace(RECEIPT, post_state_or_status=bytes(32))), "neither a status nor"),
    "gas beyond": (encode_receipt(replace(RECEIPT, cumulative_gas=2**63)), "more than `63` bits"),
    "gas padded": (b"\2" + rlp.encode([b"\1", b"\0\1", bytes(256), []]), "begins with a zero byte"),
    "short bloom": (encode_receipt(replace(RECEIPT, logs_bloom=bytes(255))), "`255` bytes stands where `256` belong"),
    "logs a string": (b"\2" + rlp.encode([b"\1", b"", bytes(256), b""]), "a string stands where a list belongs"),
    "short address": (with_log(replace(LOG, address=bytes(19))), "`19` bytes stands where `20` belong"),
    "long topic": (with_log(replace(LOG, topics=(bytes(33),))), "`33` bytes stands where `32` belong"),
    "five topics": (with_log(replace(LOG, topics=(bytes(32),) * 5)), "a log has `5` topics, more than `4`, at byte"),
    "log of two": (b"\2" + rlp.encode([b"\1", b"", bytes(256), [[bytes(20), []]]]), "`2` items instead of `3`"),
}


@pytest.mark.parametrize(("raw", "fault"), REFUSED.values(), ids=REFUSED)
def test_wrong_receipt_is_refused(raw: bytes, fault: str) -> None:
    with pytest.raises(InvalidInput, match=fault) as refused:
        parse_receipt(raw)
    assert refused.value.reason is Reason.MALFORMED


@given(SEEDS)
def test_damaged_receipt_is_refused_or_its_only_encoding(seed: int) -> None:
    dice = Random(seed)
    raw = damage(dice, encode_receipt(draw_receipt(dice)))
    with suppress(InvalidInput):
        assert encode_receipt(parse_receipt(raw)) == raw


@pytest.mark.parametrize("type_", [0, 1, 2, 3, 4, 5, DEPOSIT_TYPE, 0x7F])
@pytest.mark.parametrize("status", [0, 1])
def test_receipt_of_every_type(type_: int, status: int) -> None:
    receipt = replace(RECEIPT, type=type_, post_state_or_status=b"\1" * status)
    assert parse_receipt(encode_receipt(receipt)) == receipt
    assert receipt.status == status


def test_receipt_before_byzantium_has_no_status() -> None:
    receipt = replace(RECEIPT, type=0, post_state_or_status=b"s" * 32)
    assert parse_receipt(encode_receipt(receipt)) == receipt
    assert receipt.status is None


def test_unknown_type_keeps_its_further_fields() -> None:
    receipt = replace(UNKNOWN, further=(b"nonce", [b"", [b"x"]]))
    assert parse_receipt(encode_receipt(receipt)) == receipt


@pytest.mark.needs("data")
def test_recorded_receipts_are_what_their_index_says(recorded: Sequence[Recorded]) -> None:
    for block in recorded:
        receipts = [parse_receipt(raw) for raw in block.receipts]
        assert [encode_receipt(receipt) for receipt in receipts] == list(block.receipts)
        assert len(receipts) == block.facts["receipts"]
        assert sum(len(receipt.logs) for receipt in receipts) == block.facts["logs"]
        assert sum(receipt.status == 0 for receipt in receipts) == block.facts["failed"]
        assert sum(receipt.status is None for receipt in receipts) == block.facts["pre_byzantium"]
        types = {str(type_): sum(receipt.type == type_ for receipt in receipts) for type_ in range(5)}
        assert {type_: count for type_, count in types.items() if count} == block.facts["tx_types"]
