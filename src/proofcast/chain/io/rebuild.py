"""Consensus bytes rebuilt from a node's JSON, so that the standard methods of any node suffice.

Whether the JSON was complete and true is not asked here: the bytes have the hash and the roots, or they do not.
"""

from collections.abc import Callable

from proofcast.chain.io.answers import get_field, get_list, parse_bytes, parse_quantity, refuse_answer
from proofcast.chain.io.rpc import Json
from proofcast.chain.profile import ReceiptType
from proofcast.ethereum import rlp
from proofcast.ethereum.receipt import Log, Receipt, encode_receipt
from proofcast.ethereum.rlp import Item

Field = tuple[str, Callable[[Json], Item]]
"""The name in JSON, and how its value becomes an item of RLP."""


def encode_quantity(text: Json) -> Item:
    return rlp.encode_integer(parse_quantity(text))


# --- headers

HEADER: tuple[Field, ...] = (
    ("parentHash", parse_bytes),
    ("sha3Uncles", parse_bytes),
    ("miner", parse_bytes),
    ("stateRoot", parse_bytes),
    ("transactionsRoot", parse_bytes),
    ("receiptsRoot", parse_bytes),
    ("logsBloom", parse_bytes),
    ("difficulty", encode_quantity),
    ("number", encode_quantity),
    ("gasLimit", encode_quantity),
    ("gasUsed", encode_quantity),
    ("timestamp", encode_quantity),
    ("extraData", parse_bytes),
    ("mixHash", parse_bytes),
    ("nonce", parse_bytes),
)
LATER: tuple[Field, ...] = (
    ("baseFeePerGas", encode_quantity),
    ("withdrawalsRoot", parse_bytes),
    ("blobGasUsed", encode_quantity),
    ("excessBlobGas", encode_quantity),
    ("parentBeaconBlockRoot", parse_bytes),
    ("requestsHash", parse_bytes),
)
"""Fork by fork: the first that is absent ends the header."""


def rebuild_header(block: Json) -> bytes:
    fields = [convert(get_field(block, name)) for name, convert in HEADER]
    for name, convert in LATER:
        if block.get(name) is None:
            break
        fields.append(convert(block[name]))
    return rlp.encode(fields)


# --- receipts


def rebuild_receipt(receipt: Json, types: tuple[ReceiptType, ...] = ()) -> bytes:
    number = parse_quantity(receipt["type"]) if get_type(receipt) else 0
    known = next((kind.further for kind in types if kind.number == number), ())
    further = [encode_quantity(receipt[name]) for name in known if receipt.get(name) is not None]
    return encode_receipt(
        Receipt(
            number,
            rebuild_outcome(receipt),
            parse_quantity(get_field(receipt, "cumulativeGasUsed")),
            parse_bytes(get_field(receipt, "logsBloom")),
            tuple(map(rebuild_log, get_list(get_field(receipt, "logs"), "logs"))),
            tuple(further),
        )
    )


def get_type(answer: Json) -> Json:
    """None in answers about blocks before types existed."""
    if not isinstance(answer, dict):
        raise refuse_answer("record", answer)
    return answer.get("type")


def rebuild_outcome(receipt: Json) -> bytes:
    if receipt.get("status") is None:
        return parse_bytes(get_field(receipt, "root"))
    return rlp.encode_integer(parse_quantity(receipt["status"]))


def rebuild_log(log: Json) -> Log:
    return Log(
        parse_bytes(get_field(log, "address")),
        tuple(map(parse_bytes, get_list(get_field(log, "topics"), "topics"))),
        parse_bytes(get_field(log, "data")),
    )


# --- transactions


def encode_receiver(text: Json) -> Item:
    """None where a contract is created."""
    return b"" if text is None else parse_bytes(text)


def encode_hashes(hashes: Json) -> Item:
    return list(map(parse_bytes, get_list(hashes, "hashes")))


def encode_access_list(entries: Json) -> Item:
    return [
        [parse_bytes(get_field(entry, "address")), encode_hashes(get_field(entry, "storageKeys"))]
        for entry in get_list(entries, "accessed addresses")
    ]


def encode_flag(value: Json) -> Item:
    return b"\1" if value is True else b""


AUTHORIZATION: tuple[Field, ...] = (
    ("chainId", encode_quantity),
    ("address", parse_bytes),
    ("nonce", encode_quantity),
    ("yParity", encode_quantity),
    ("r", encode_quantity),
    ("s", encode_quantity),
)


def encode_authorizations(entries: Json) -> Item:
    return [encode_fields(entry, AUTHORIZATION) for entry in get_list(entries, "authorizations")]


CHAIN: tuple[Field, ...] = (("chainId", encode_quantity), ("nonce", encode_quantity))
PRICE: tuple[Field, ...] = (("gasPrice", encode_quantity),)
FEES: tuple[Field, ...] = (("maxPriorityFeePerGas", encode_quantity), ("maxFeePerGas", encode_quantity))
CALL: tuple[Field, ...] = (
    ("gas", encode_quantity),
    ("to", encode_receiver),
    ("value", encode_quantity),
    ("input", parse_bytes),
)
ACCESS: tuple[Field, ...] = (("accessList", encode_access_list),)
BLOBS: tuple[Field, ...] = (("maxFeePerBlobGas", encode_quantity), ("blobVersionedHashes", encode_hashes))
SIGNATURE: tuple[Field, ...] = (("v", encode_quantity), ("r", encode_quantity), ("s", encode_quantity))
DEPOSIT: tuple[Field, ...] = (
    ("sourceHash", parse_bytes),
    ("from", parse_bytes),
    ("to", encode_receiver),
    ("mint", encode_quantity),
    ("value", encode_quantity),
    ("gas", encode_quantity),
    ("isSystemTx", encode_flag),
    ("input", parse_bytes),
)

TRANSACTIONS: dict[int, tuple[Field, ...]] = {
    0x00: (("nonce", encode_quantity), *PRICE, *CALL, *SIGNATURE),
    0x01: (*CHAIN, *PRICE, *CALL, *ACCESS, *SIGNATURE),
    0x02: (*CHAIN, *FEES, *CALL, *ACCESS, *SIGNATURE),
    0x03: (*CHAIN, *FEES, *CALL, *ACCESS, *BLOBS, *SIGNATURE),
    0x04: (*CHAIN, *FEES, *CALL, *ACCESS, ("authorizationList", encode_authorizations), *SIGNATURE),
    0x7E: DEPOSIT,
}
OPTIONAL = {"mint": b"", "isSystemTx": b""}
"""Fields of a rollup's deposit that a node leaves out where they are nothing."""


def rebuild_transaction(transaction: Json) -> bytes:
    number = parse_quantity(transaction["type"]) if get_type(transaction) else 0
    if number not in TRANSACTIONS:
        raise refuse_answer("transaction of a known type", transaction)
    payload = rlp.encode(encode_fields(transaction, TRANSACTIONS[number]))
    return bytes((number,)) + payload if number else payload


def encode_fields(answer: Json, fields: tuple[Field, ...]) -> list[Item]:
    return [
        OPTIONAL[name] if name in OPTIONAL and answer.get(name) is None else convert(get_field(answer, name))
        for name, convert in fields
    ]
