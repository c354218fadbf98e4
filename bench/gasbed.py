"""Contracts on a development chain, and what their transactions cost: gas by the receipt, every transaction cold."""

import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from eth_abi.abi import encode
from eth_utils.crypto import keccak

from proofcast.chain.io.rpc import Json, RpcClient
from proofcast.onchain.io.devchain import DevChainOptions, run_dev_chain
from proofcast.onchain.policy import Terms

CONTRACTS = Path(__file__).parent.parent / "contracts"
SOURCES = ("Topics", "TopicsLens", "testing/SamplePublisher", "testing/SampleSubscriber", "testing/Zoo")
FULL_GAS = 1 << 24
"""EIP-7825: the most that a transaction may bring."""
DEPOSIT_WEI = 10**17
PAYLOAD = b"0123456789abcdef" * 4
"""64 characters, as in the paper's experiment."""
ANY_TERMS = Terms(callback_gas=200_000, max_price_mwei=(1 << 31) - 1, max_share_gwei=(1 << 39) - 1).pack()
POLLS_MAX = 5_000
"""Questions for a receipt; a node that mines at once answers one of the first."""
END = 0xFFFFFF
"""No index to reuse: append."""


def build_contracts() -> None:
    command = ["forge", "build", *(f"src/{source}.sol" for source in SOURCES)]
    shipped = os.environ | {"FOUNDRY_PROFILE": "shipped"}
    subprocess.run(command, cwd=CONTRACTS, env=shipped, check=True, stdout=subprocess.DEVNULL)


def get_selector(signature: str) -> bytes:
    return keccak(text=signature)[:4]


def load_code(name: str, file: str) -> bytes:
    artefact = json.loads((CONTRACTS / "out/shipped" / f"{file}.sol" / f"{name}.json").read_text())
    return bytes.fromhex(artefact["bytecode"]["object"].removeprefix("0x"))


@dataclass(slots=True)
class GasBed:
    rpc: RpcClient
    sender: str
    topics: str = ""
    lens: str = ""
    deploy_gas: int = 0

    def send_all(self, transactions: Sequence[dict[str, str]]) -> list[Json]:
        """Receipts of transactions that must all succeed; one at a time, as the node mines them."""
        shared = {"from": self.sender, "gas": hex(FULL_GAS)}
        receipts = [self.get_receipt(self.rpc.call("eth_sendTransaction", shared | one)) for one in transactions]
        assert all(receipt["status"] == "0x1" for receipt in receipts), "a transaction of the benchmark failed"
        return receipts

    def get_receipt(self, transaction_hash: str) -> Json:
        for _ in range(POLLS_MAX):
            receipt = self.rpc.call("eth_getTransactionReceipt", transaction_hash)
            if receipt is not None:
                return receipt
        raise AssertionError(f"transaction {transaction_hash} of the benchmark was not mined")

    def send(self, to: str | None, data: bytes, value: int = 0) -> Json:
        transaction = {"data": "0x" + data.hex(), "value": hex(value)} | ({"to": to} if to else {})
        return self.send_all([transaction])[0]

    def call(self, to: str, data: bytes) -> bytes:
        answer = self.rpc.call("eth_call", {"from": self.sender, "to": to, "data": "0x" + data.hex()}, "latest")
        return bytes.fromhex(answer[2:])

    def create(self, name: str, file: str, arguments: bytes = b"", value: int = 0) -> Json:
        return self.send(None, load_code(name, file) + arguments, value)

    def add_publisher(self) -> tuple[str, bytes, int]:
        """A sample publisher with its topic, and what registering cost."""
        publisher = self.create("SamplePublisher", "SamplePublisher", encode(["address"], [self.topics]))
        address = publisher["contractAddress"]
        receipt = self.send(address, get_selector("register()"))
        return address, self.call(address, get_selector("topic()")), get_gas(receipt)

    def add_store(self, topic: bytes) -> int:
        """The paper's sample subscriber; returns what subscribing cost."""
        store = self.create("Store64", "Zoo", encode(["address"], [self.topics]))["contractAddress"]
        return get_gas(self.send(store, get_selector("subscribe(bytes32)") + topic, DEPOSIT_WEI))

    def add_animals(self, topic: bytes, name: str, count: int) -> None:
        for _ in range(count):
            animal = self.create(name, "Zoo")["contractAddress"]
            join = encode(["address", "bytes32", "uint96", "uint256"], [self.topics, topic, ANY_TERMS, END])
            self.send(animal, get_selector("join(address,bytes32,uint96,uint256)") + join, DEPOSIT_WEI)

    def add_bare(self, topic: bytes, count: int) -> None:
        """Subscribers that do nothing, as many as wanted."""
        arguments = encode(["address", "bytes32", "uint96"], [self.topics, topic, ANY_TERMS])
        data = "0x" + (load_code("BareSubscriber", "SampleSubscriber") + arguments).hex()
        self.send_all([{"data": data, "value": hex(DEPOSIT_WEI)}] * count)

    def publish(self, publisher: str) -> Json:
        return self.send(publisher, get_selector("publish(bytes)") + encode(["bytes"], [PAYLOAD]))

    def seal(self, topic: bytes, pages: int) -> None:
        for _ in range(pages):
            self.send(self.topics, get_selector("seal(bytes32)") + topic)

    def deliver(self, topic: bytes) -> Json:
        arguments = encode(["bytes32", "bytes32", "address", "bytes"], [topic, bytes(32), "0x" + "00" * 20, PAYLOAD])
        return self.send(self.topics, get_selector("deliver(bytes32,bytes32,address,bytes)") + arguments)

    def get_topic_credit(self, topic: bytes) -> int:
        """Gwei; the seventh word of `getTopic`."""
        answer = self.call(self.lens, get_selector("getTopic(bytes32)") + topic)
        return int.from_bytes(answer[6 * 32 : 7 * 32], "big")


def get_gas(receipt: Json) -> int:
    return int(receipt["gasUsed"], 16)


def count_delivered(receipt: Json) -> int:
    """Callbacks that the `Delivered` log of a page calls delivered."""
    topic = "0x" + keccak(text="Delivered(bytes32,uint256,uint256,uint256,uint256,bytes)").hex()
    (log,) = [log for log in receipt["logs"] if log["topics"][0] == topic]
    data = bytes.fromhex(log["data"][2:])
    length = int.from_bytes(data[128:160], "big")
    return data[160 : 160 + length].count(1)


@contextmanager
def open_gas_bed(hardfork: str | None = None) -> Iterator[GasBed]:
    with run_dev_chain(DevChainOptions(hardfork=hardfork, tx_gas_limit=True)) as chain, RpcClient(chain.url) as rpc:
        bed = GasBed(rpc, rpc.call("eth_accounts")[0])
        topics = bed.create("Topics", "Topics")
        bed.topics, bed.deploy_gas = topics["contractAddress"], get_gas(topics)
        bed.lens = bed.create("TopicsLens", "TopicsLens", encode(["address"], [bed.topics]))["contractAddress"]
        yield bed
