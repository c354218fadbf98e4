"""A node that lies in one way at a time; everything else it says is true."""

import copy
from collections.abc import Callable, Mapping
from enum import StrEnum

from proofcast.event import Finality
from proofcast.testing.chain.node import HASH_TEXT_LENGTH, Params, SimulatedNode, describe_block, encode_hex
from proofcast.testing.chain.server import JsonValue
from proofcast.testing.chain.simulator import ChainSimulator, SimulatedBlock

Record = dict[str, JsonValue]


class Lie(StrEnum):
    """What the node does, beginning with its answers about receipts."""

    TAMPER_DATA = "changes a byte of a log"
    TAMPER_STATUS = "says that a transaction failed"
    WITHHOLD_LOG = "leaves out a log"
    WITHHOLD_LOG_AND_BLOOM = "leaves out all logs of a receipt, and empties its bloom"
    ADD_LOG = "makes up a log"
    WITHHOLD_RECEIPT = "leaves out the last receipt"
    REPEAT_RECEIPT = "gives a receipt twice"
    REORDER_RECEIPTS = "exchanges the first receipt and the last"
    REORDER_LOGS = "exchanges the first log and the last"
    TRUNCATE = "says that no transaction had a receipt"
    NULL = "says that it has no receipts yet, for ever"
    OTHER_RECEIPTS = "gives the receipts of the parent"
    NONSENSE = "gives numbers where logs belong"
    TAMPER_TRANSACTION = "changes the value of a transaction"
    WITHHOLD_TRANSACTION = "leaves out a transaction"
    TAMPER_HEADER = "changes a block's time"
    EMPTY_BLOOM = "empties the bloom in a header"
    OTHER_CHAIN = "serves the blocks of another chain"
    OTHER_CHAIN_ID = "says another chain id"
    SHIFT_NUMBERS = "gives the next block for the one asked for"
    MIX_BRANCHES = "gives every second header of another branch"
    REWRITE_FINALITY = "says that another block was finalized"
    SELF_MADE_HEAD = "says that a block it made up is the head"


class LyingNode(SimulatedNode):
    """`other` is a chain of its own making, for the lies that need one."""

    def __init__(self, chain: ChainSimulator, lie: Lie, *, other: ChainSimulator | None = None) -> None:
        super().__init__(chain)
        self.lie = lie
        self.other = other or chain

    def call(self, method: str, params: Params) -> JsonValue:
        truth = copy.deepcopy(super().call(method, params))
        if method == "eth_chainId" and self.lie is Lie.OTHER_CHAIN_ID:
            return hex(self.chain.chain_id + 1)
        if method == "eth_getBlockReceipts" and isinstance(truth, list):
            return self._lie_about_receipts(params, truth)
        if method in ("eth_getBlockByNumber", "eth_getBlockByHash") and isinstance(truth, dict):
            return self._lie_about_block(params, truth)
        return truth

    def find(self, name: JsonValue) -> SimulatedBlock | None:
        """Its own blocks too, when asked by their hash."""
        known = super().find(name)
        is_hash = isinstance(name, str) and len(name) == HASH_TEXT_LENGTH
        return self.other.blocks.get(bytes.fromhex(str(name)[2:])) if known is None and is_hash else known

    def _lie_about_receipts(self, params: Params, receipts: list[JsonValue]) -> JsonValue:
        if self.lie is not Lie.OTHER_RECEIPTS:
            return FALSIFIERS[self.lie](receipts) if self.lie in FALSIFIERS else receipts
        block = self.find(params[0])
        assert block
        return super().call("eth_getBlockReceipts", [encode_hex(block.header.parent_hash)])

    def _lie_about_block(self, params: Params, block: Record) -> Record:
        if self.lie in BLOCK_FALSIFIERS:
            return BLOCK_FALSIFIERS[self.lie](block)
        replaced = self._choose_other(params[0], int(str(block["number"]), 16))
        if replaced is None or replaced >= len(self.other.canonical):
            return block
        return describe_block(self.other.canonical[replaced], with_transactions=params[1] is True)

    def _choose_other(self, name: JsonValue, number: int) -> int | None:
        """The number of the block of the other chain that is served instead, if one is."""
        others = {
            Lie.OTHER_CHAIN: number,
            Lie.SHIFT_NUMBERS: number + 1,
            Lie.MIX_BRANCHES: number if number % 2 else None,
            Lie.REWRITE_FINALITY: number if name == Finality.FINALIZED else None,
            Lie.SELF_MADE_HEAD: number if name == Finality.LATEST else None,
        }
        return others.get(self.lie)


def get_logs(receipt: JsonValue) -> list[JsonValue]:
    assert isinstance(receipt, dict)
    logs = receipt["logs"]
    assert isinstance(logs, list)
    return logs


def replace_in(receipts: list[JsonValue], **values: JsonValue) -> list[JsonValue]:
    """The receipts with other values in the first."""
    assert isinstance(receipts[0], dict)
    return [receipts[0] | values, *receipts[1:]]


def tamper_data(receipts: list[JsonValue]) -> list[JsonValue]:
    first = get_logs(receipts[0])[0]
    assert isinstance(first, dict)
    first["data"] = str(first["data"]) + "00"
    return receipts


def reorder_logs(receipts: list[JsonValue]) -> list[JsonValue]:
    """Across the block, so that it does something in every block with two logs."""
    homes = [(logs, at) for logs in map(get_logs, receipts) for at in range(len(logs))]
    (first, i), (last, j) = homes[0], homes[-1]
    first[i], last[j] = last[j], first[i]
    return receipts


FALSIFIERS: Mapping[Lie, Callable[[list[JsonValue]], JsonValue]] = {
    Lie.TAMPER_DATA: tamper_data,
    Lie.TAMPER_STATUS: lambda receipts: replace_in(receipts, status="0x0"),
    Lie.WITHHOLD_LOG: lambda receipts: replace_in(receipts, logs=get_logs(receipts[0])[:-1]),
    Lie.WITHHOLD_LOG_AND_BLOOM: lambda receipts: replace_in(receipts, logs=[], logsBloom=f"0x{bytes(256).hex()}"),
    Lie.ADD_LOG: lambda receipts: replace_in(receipts, logs=get_logs(receipts[0]) * 2),
    Lie.WITHHOLD_RECEIPT: lambda receipts: receipts[:-1],
    Lie.REPEAT_RECEIPT: lambda receipts: [*receipts, receipts[-1]],
    Lie.REORDER_RECEIPTS: lambda receipts: [receipts[-1], *receipts[1:-1], receipts[0]],
    Lie.REORDER_LOGS: reorder_logs,
    Lie.TRUNCATE: lambda receipts: [],
    Lie.NULL: lambda receipts: None,
    Lie.NONSENSE: lambda receipts: replace_in(receipts, logs=7),
}


def tamper_transaction(block: Record) -> Record:
    bodies = block["transactions"]
    assert isinstance(bodies, list)
    if bodies and isinstance(bodies[0], dict):
        bodies[0]["value"] = "0x1"
    return block


def withhold_transaction(block: Record) -> Record:
    bodies = block["transactions"]
    assert isinstance(bodies, list)
    return block | {"transactions": bodies[:-1]}


BLOCK_FALSIFIERS: Mapping[Lie, Callable[[Record], Record]] = {
    Lie.TAMPER_TRANSACTION: tamper_transaction,
    Lie.WITHHOLD_TRANSACTION: withhold_transaction,
    Lie.TAMPER_HEADER: lambda block: block | {"timestamp": "0x1"},
    Lie.EMPTY_BLOOM: lambda block: block | {"logsBloom": f"0x{bytes(256).hex()}"},
}
