"""Events decoded by their ABI, beside another library."""

import json
from collections.abc import Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path

import pytest
from eth_abi.abi import encode
from hypothesis import given
from hypothesis import strategies as st
from web3 import Web3
from web3._utils.events import get_event_data

from proofcast.cli import doctor
from proofcast.errors import InvalidInput, InvalidRequest, Reason
from proofcast.ethereum.abi import EventAbi, Parameter, decode_log, parse_abi
from proofcast.ethereum.keccak import keccak256
from proofcast.ethereum.receipt import Log, parse_receipt
from proofcast.testing.ethereum import Recorded

ADDRESS = b"a" * 20
TRANSFER = EventAbi(
    "Transfer",
    (Parameter("from", "address", True), Parameter("to", "address", True), Parameter("value", "uint256", False)),
)


def build_entry(**changes: object) -> dict[str, object]:
    return {"type": "event", "name": "E", "inputs": [{"name": "a", "type": "uint8"}]} | changes


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        (build_entry(name=7), "has the name `7`"),
        (build_entry(inputs=None), "the event `E` has no list of `inputs`"),
        (build_entry(inputs=["uint8"]), "the event `E` has no list of `inputs`"),
        (build_entry(inputs=[{"type": "uint7"}]), "a parameter of the type `uint7`"),
        (build_entry(inputs=[{"type": None}]), "a parameter of the type `None`"),
        (build_entry(inputs=[{"type": "tuple"}]), "has no list of `components`"),
        (build_entry(inputs=[{"name": "a", "type": "bool"}] * 2), "two parameters .* have one name"),
        (build_entry(inputs=[{"type": "bool", "indexed": True}] * 4), "more than `3` indexed"),
    ],
)
def test_wrong_abi_is_refused(entry: dict[str, object], fault: str) -> None:
    with pytest.raises(InvalidRequest, match=fault):
        parse_abi([entry])


@pytest.mark.parametrize(
    "log",
    [
        Log(ADDRESS, (), b""),
        Log(ADDRESS, (b"x" * 32, bytes(32), bytes(32)), bytes(32)),
        Log(ADDRESS, (TRANSFER.topic0 or b"", bytes(32), bytes(32), bytes(32)), b""),
        Log(ADDRESS, (TRANSFER.topic0 or b"", bytes(32), bytes(32)), bytes(31)),
        Log(ADDRESS, (TRANSFER.topic0 or b"", b"\xff" * 32, bytes(32)), bytes(32)),
    ],
)
def test_log_of_another_event_is_refused(log: Log) -> None:
    with pytest.raises(InvalidInput, match=r"Transfer\(address,address,uint256\)") as refused:
        decode_log(TRANSFER, log)
    assert refused.value.reason is Reason.MALFORMED


@given(st.binary(max_size=200), st.sampled_from(["bytes", "string[]", "(uint8,bytes)[]", "uint256[][]", "bytes32"]))
def test_any_data_decodes_or_is_refused(data: bytes, kind: str) -> None:
    abi = EventAbi("E", (Parameter("a", kind, False),), is_anonymous=True)
    with suppress(InvalidInput):
        decode_log(abi, Log(ADDRESS, (), data))


@pytest.mark.parametrize("value", [0, 1, 2**255 - 1, 2**255, 2**256 - 1])
@pytest.mark.parametrize("is_indexed", [True, False])
def test_integers_have_their_full_range(value: int, is_indexed: bool) -> None:
    abi = EventAbi("E", (Parameter("value", "uint256", is_indexed), Parameter("signed", "int256", False)))
    word = value.to_bytes(32, "big")
    topics = (abi.topic0 or b"", word) if is_indexed else (abi.topic0 or b"",)
    log = Log(ADDRESS, topics, (b"" if is_indexed else word) + word)
    assert decode_log(abi, log) == {"value": value, "signed": int.from_bytes(word, "big", signed=True)}


def test_long_indexed_parameters_are_there_as_their_hashes() -> None:
    kinds = ["string", "bytes", "(uint8,bool)"]
    abi = EventAbi("E", tuple(Parameter(kind, kind, True) for kind in kinds))
    hashes = tuple(keccak256(kind.encode()) for kind in kinds)
    assert decode_log(abi, Log(ADDRESS, (abi.topic0 or b"", *hashes), b"")) == dict(zip(kinds, hashes, strict=True))
    array = EventAbi("E", (Parameter("a", "uint8[2]", True),))
    assert decode_log(array, Log(ADDRESS, (array.topic0 or b"", hashes[0]), b"")) == {"a": hashes[0]}


def test_anonymous_event_has_four_topics_of_its_own() -> None:
    (abi,) = parse_abi([build_entry(anonymous=True, inputs=[{"name": "", "type": "uint8", "indexed": True}] * 4)])
    topics = tuple(number.to_bytes(32, "big") for number in range(4))
    assert abi.topic0 is None
    assert decode_log(abi, Log(ADDRESS, topics, b"")) == {"arg0": 0, "arg1": 1, "arg2": 2, "arg3": 3}


def test_structs_and_lists_of_them_are_tuples() -> None:
    part = {"type": "tuple[]", "name": "a", "components": [{"type": "address"}, {"type": "string"}]}
    (abi,) = parse_abi([build_entry(inputs=[part])])
    assert abi.signature == "E((address,string)[])"
    data = encode(["(address,string)[]"], [[(ADDRESS, "one"), (ADDRESS, "two")]])
    assert decode_log(abi, Log(ADDRESS, (abi.topic0 or b"",), data)) == {"a": ((ADDRESS, "one"), (ADDRESS, "two"))}


def test_text_that_is_no_utf8_is_shown() -> None:
    abi = EventAbi("E", (Parameter("a", "string", False),))
    data = encode(["bytes"], [b"\xff!"])
    assert decode_log(abi, Log(ADDRESS, (abi.topic0 or b"",), data)) == {"a": "\\xff!"}


def read_abis() -> list[list[dict[str, object]]]:
    folder = doctor.find_data() or Path()
    documents = [json.loads(path.read_text()) for path in sorted((folder / "abi").glob("*.json"))]
    return [document if isinstance(document, list) else document["abi"] for document in documents]


@pytest.mark.needs("data")
def test_another_library_reads_real_logs_alike(big_block: Recorded) -> None:
    entries = {abi: entry for entries in read_abis() for entry in entries for abi in parse_abi([entry])}
    logs = [log for raw in big_block.receipts for log in parse_receipt(raw).logs]
    matches = [(abi, log) for abi, log in product(entries, logs) if abi.matches(log)]
    assert len({log for _, log in matches}) > 300
    for abi, log in matches:
        found = decode_log(abi, log)
        assert format_values(found.values()) == format_values(ask_web3(entries[abi], log))


def ask_web3(entry: dict[str, object], log: Log) -> Sequence[object]:
    rest = dict.fromkeys(("logIndex", "transactionIndex", "transactionHash", "blockHash", "blockNumber"))
    answer = get_event_data(
        Web3().codec, entry, rest | {"address": log.address, "topics": log.topics, "data": log.data}
    )
    return [answer["args"][part["name"]] for part in entry["inputs"]]


def format_values(values: Sequence[object]) -> list[str]:
    """Both sides as text: addresses are text there and bytes here."""
    return [f"0x{value.hex()}" if isinstance(value, bytes) else str(value).lower() for value in values]
