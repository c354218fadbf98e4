"""The chain of the soak: a contract that publishes fifty events in one transaction, and somebody who calls it."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from proofcast.chain.io.rpc import RpcClient
from proofcast.onchain import topics
from proofcast.onchain.io.devchain import DevChainOptions
from proofcast.onchain.io.reading import encode_hex
from proofcast.onchain.request import Request, ask
from proofcast.testing.onchain import Playground, run_playground

EVENTS_PER_TRANSACTION = 50
PAYLOAD = b"p" * 200
TOPIC_NAME = "soak"
MAY_PUBLISH = 1
GAS_LIMIT = 300_000_000
"""Of a block: a second of publications is a fifth of it."""
TRANSACTION_GAS = 8_000_000


def build_repeater(target: bytes) -> bytes:
    """Code that deploys a contract which passes each call on to the target, fifty times, or reverts."""
    before = bytes.fromhex("365f5f37") + bytes([0x60, EVENTS_PER_TRANSACTION])  # calldata to memory, the counter
    loop = len(before)
    call = bytes.fromhex("5b5f5f365f5f73") + target + bytes.fromhex("5af1")
    counting = bytes.fromhex("600190038060") + bytes([loop]) + bytes.fromhex("5700")  # one less; again unless none
    failed = len(before) + len(call) + 4 + len(counting)
    body = before + call + bytes([0x15, 0x60, failed, 0x57]) + counting + bytes.fromhex("5b5f5ffd")
    return bytes([0x60, len(body), 0x80, 0x60, 9, 0x5F, 0x39, 0x5F, 0xF3]) + body


@dataclass(slots=True)
class Publisher:
    """Publishes at a steady pace, in a thread of its own."""

    playground: Playground
    repeater: bytes
    topic: bytes
    sent: int = 0
    """Events, in transactions handed to the node."""
    _ended: threading.Event = field(default_factory=threading.Event)

    def run(self, events_per_s: int, duration_s: float) -> None:
        """Every transaction at its time; one that is late is made up for."""
        every_s = EVENTS_PER_TRANSACTION / events_per_s
        call = topics.publish(self.topic, PAYLOAD)
        transaction = {
            "from": encode_hex(self.playground.chain.accounts[0].address),
            "to": encode_hex(self.repeater),
            "data": encode_hex(call.data),
            "gas": hex(TRANSACTION_GAS),
        }
        with RpcClient(self.playground.chain.url) as rpc:
            began = time.monotonic()
            for number in range(round(duration_s / every_s)):
                if self._ended.wait(max(0.0, began + number * every_s - time.monotonic())):
                    return
                rpc.call("eth_sendTransaction", transaction)
                self.sent += EVENTS_PER_TRANSACTION

    def stop(self) -> None:
        self._ended.set()


@contextmanager
def open_chain(folder: Path) -> Iterator[Publisher]:
    """A block a second, a topic, and the contract that may publish to it."""
    options = DevChainOptions(block_time_s=1, gas_limit=GAS_LIMIT)
    with run_playground(folder, options) as playground:
        owner = playground.chain.accounts[0].address
        playground.send(ask(playground.topics, topics.create(TOPIC_NAME)))
        topic = topics.compute_topic(owner, TOPIC_NAME)
        repeater = playground.send(Request(None, build_repeater(playground.topics))).contract_address
        assert repeater
        playground.send(ask(playground.topics, topics.set_roles(topic, repeater, MAY_PUBLISH)))
        yield Publisher(playground, repeater, topic)
