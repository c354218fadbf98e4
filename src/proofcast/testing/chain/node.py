"""A node that serves a simulated chain over JSON-RPC, by whichever of a node's methods it is given."""

from collections.abc import Callable, Sequence

from proofcast.ethereum import rlp
from proofcast.ethereum.keccak import keccak256
from proofcast.ethereum.receipt import Receipt
from proofcast.event import Finality
from proofcast.testing.chain.server import Answer, JsonValue, LoopbackServer, encode
from proofcast.testing.chain.simulator import ChainSimulator, SimulatedBlock

Params = Sequence[JsonValue]

STANDARD_METHODS = frozenset(
    {
        "eth_chainId",
        "eth_getBlockByHash",
        "eth_getBlockByNumber",
        "eth_getBlockReceipts",
        "eth_getTransactionReceipt",
    }
)
RAW_METHODS = frozenset({"debug_getRawHeader", "debug_getRawReceipts"})
"""geth's, which give consensus bytes."""
HASH_TEXT_LENGTH = 66
"""`0x` and 64 digits."""
METHOD_NOT_FOUND, BATCH_TOO_LARGE = -32601, -32600


class SimulatedNode(LoopbackServer):
    def __init__(
        self,
        chain: ChainSimulator,
        methods: frozenset[str] = STANDARD_METHODS,
        *,
        batch_max: int = 1_000,
        behind: int = 0,
    ) -> None:
        super().__init__()
        self.chain = chain
        self.asked: list[str] = []
        """Methods, in the order in which they were called."""
        self.behind = behind
        """How many of the newest blocks it has not seen yet."""
        self._methods, self._batch_max = methods, batch_max

    def answer(self, request: JsonValue) -> Answer:
        if isinstance(request, list) and len(request) > self._batch_max:
            return encode(refuse(None, BATCH_TOO_LARGE, "batch too large"))
        return encode([self._serve(call) for call in request] if isinstance(request, list) else self._serve(request))

    def _serve(self, call: JsonValue) -> JsonValue:
        assert isinstance(call, dict)
        method, params = call["method"], call["params"]
        assert isinstance(method, str)
        assert isinstance(params, list)
        self.asked.append(method)
        if method not in self._methods:
            return refuse(call["id"], METHOD_NOT_FOUND, f"the method {method} does not exist")
        return {"jsonrpc": "2.0", "id": call["id"], "result": self.call(method, params)}

    def call(self, method: str, params: Params) -> JsonValue:
        """The result of one call; a node that lies changes it here."""
        served: dict[str, Callable[[], JsonValue]] = {
            "eth_chainId": lambda: hex(self.chain.chain_id),
            "eth_getBlockByNumber": lambda: self._describe(self.find(params[0]), params),
            "eth_getBlockByHash": lambda: self._describe(self.find(params[0]), params),
            "eth_getBlockReceipts": lambda: self._describe_receipts(self.find(params[0])),
            "eth_getTransactionReceipt": lambda: self._find_receipt(params[0]),
            "debug_getRawHeader": lambda: self._encode_header(self.find(params[0])),
            "debug_getRawReceipts": lambda: self._encode_receipts(self.find(params[0])),
        }
        return served[method]()

    # --- finding

    def find(self, name: JsonValue) -> SimulatedBlock | None:
        """By tag, number or hash; orphaned blocks are found by their hash, as nodes do."""
        assert isinstance(name, str)
        if name in list(Finality):
            settled = self.chain.get_settled(Finality(name)).header.number
            return self.seen[min(settled, len(self.seen) - 1)]
        if len(name) == HASH_TEXT_LENGTH:
            return self.chain.blocks.get(bytes.fromhex(name[2:]))
        number = int(name, 16)
        return self.seen[number] if number < len(self.seen) else None

    @property
    def seen(self) -> list[SimulatedBlock]:
        return self.chain.canonical[: len(self.chain.canonical) - self.behind]

    def _find_receipt(self, name: JsonValue) -> JsonValue:
        for block in self.chain.blocks.values():
            for index, raw in enumerate(block.raw.transactions or ()):
                if encode_hex(keccak256(raw)) == name:
                    return describe_receipt(block, index)
        return None

    # --- describing

    def _describe(self, block: SimulatedBlock | None, params: Params) -> JsonValue:
        return None if block is None else describe_block(block, with_transactions=params[1] is True)

    def _describe_receipts(self, block: SimulatedBlock | None) -> JsonValue:
        return None if block is None else [describe_receipt(block, index) for index in range(len(block.receipts))]

    def _encode_header(self, block: SimulatedBlock | None) -> JsonValue:
        return None if block is None else encode_hex(block.raw.header)

    def _encode_receipts(self, block: SimulatedBlock | None) -> JsonValue:
        return None if block is None else [encode_hex(raw) for raw in block.raw.receipts or ()]


def refuse(call_id: JsonValue, code: int, message: str) -> JsonValue:
    return {"jsonrpc": "2.0", "id": call_id, "error": {"code": code, "message": message}}


def encode_hex(data: bytes) -> str:
    return f"0x{data.hex()}"


def show(value: int | bytes) -> str:
    return encode_hex(value) if isinstance(value, bytes) else hex(value)


HEADER_NAMES = {
    "parentHash": "parent_hash",
    "sha3Uncles": "ommers_hash",
    "miner": "beneficiary",
    "stateRoot": "state_root",
    "transactionsRoot": "transactions_root",
    "receiptsRoot": "receipts_root",
    "logsBloom": "logs_bloom",
    "difficulty": "difficulty",
    "number": "number",
    "gasLimit": "gas_limit",
    "gasUsed": "gas_used",
    "timestamp": "timestamp",
    "extraData": "extra_data",
    "mixHash": "mix_hash",
    "nonce": "nonce",
    "baseFeePerGas": "base_fee",
    "withdrawalsRoot": "withdrawals_root",
    "blobGasUsed": "blob_gas_used",
    "excessBlobGas": "excess_blob_gas",
    "parentBeaconBlockRoot": "parent_beacon_root",
    "requestsHash": "requests_hash",
}


def describe_block(block: SimulatedBlock, *, with_transactions: bool) -> dict[str, JsonValue]:
    values = {name: getattr(block.header, field) for name, field in HEADER_NAMES.items()}
    shown: dict[str, JsonValue] = {name: show(value) for name, value in values.items() if value is not None}
    raws = block.raw.transactions or ()
    bodies: list[JsonValue] = [
        describe_transaction(raw) if with_transactions else encode_hex(keccak256(raw)) for raw in raws
    ]
    return shown | {"hash": encode_hex(block.hash), "transactions": bodies, "uncles": []}


TRANSACTION_NAMES = ("chainId", "nonce", "maxPriorityFeePerGas", "maxFeePerGas", "gas", "to", "value", "input")


def describe_transaction(raw: bytes) -> dict[str, JsonValue]:
    fields = rlp.decode(raw[1:])
    assert isinstance(fields, list)
    texts = {"to", "input"}
    shown: dict[str, JsonValue] = {"type": "0x2", "hash": encode_hex(keccak256(raw)), "accessList": []}
    for name, value in zip((*TRANSACTION_NAMES, "accessList", "v", "r", "s"), fields, strict=True):
        if isinstance(value, bytes):
            shown[name] = encode_hex(value) if name in texts else hex(int.from_bytes(value, "big"))
    return shown | {"yParity": shown["v"]}


def describe_receipt(block: SimulatedBlock, index: int) -> dict[str, JsonValue]:
    receipt, transactions = block.receipts[index], block.raw.transactions or ()
    first = sum(len(before.logs) for before in block.receipts[:index])
    place: dict[str, JsonValue] = {
        "transactionHash": encode_hex(keccak256(transactions[index])),
        "transactionIndex": hex(index),
        "blockHash": encode_hex(block.hash),
        "blockNumber": hex(block.header.number),
    }
    return place | {
        "type": hex(receipt.type),
        "status": hex(receipt.status or 0),
        "cumulativeGasUsed": hex(receipt.cumulative_gas),
        "logsBloom": encode_hex(receipt.logs_bloom),
        "logs": describe_logs(receipt, place, first),
    }


def describe_logs(receipt: Receipt, place: dict[str, JsonValue], first: int) -> list[JsonValue]:
    return [
        place
        | {
            "address": encode_hex(log.address),
            "topics": [encode_hex(topic) for topic in log.topics],
            "data": encode_hex(log.data),
            "logIndex": hex(first + at),
            "removed": False,
        }
        for at, log in enumerate(receipt.logs)
    ]
