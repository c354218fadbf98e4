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
TOPICS = 20
"""In turn: what is ordered strictly, as webhooks are within a topic, waits for its own topic alone."""
PATTERN = "soak-*"
MAY_PUBLISH = 1
GAS_LIMIT = 300_000_000
"""Of a block: a second of publications is a fifth of it."""
TRANSACTION_GAS = 8_000_000
MINED_S_MAX, POLL_S = 60.0, 0.1


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
    topics: list[bytes]
    sent: int = 0
    """Events, in transactions handed to the node."""
    took_s: float = 0.0
    """For all of them."""
    _ended: threading.Event = field(default_factory=threading.Event)

    def run(self, events_per_s: int, duration_s: float) -> None:
        """Every transaction at its time; one that is late is made up for."""
        every_s = EVENTS_PER_TRANSACTION / events_per_s
        shared = {
            "from": encode_hex(self.playground.chain.accounts[0].address),
            "to": encode_hex(self.repeater),
            "gas": hex(TRANSACTION_GAS),
        }
        calls = [{"data": encode_hex(topics.publish(topic, PAYLOAD).data)} for topic in self.topics]
        with RpcClient(self.playground.chain.url) as rpc:
            began = time.monotonic()
            for number in range(round(duration_s / every_s)):
                if self._ended.wait(max(0.0, began + number * every_s - time.monotonic())):
                    return
                rpc.call("eth_sendTransaction", shared | calls[number % len(calls)])
                self.sent += EVENTS_PER_TRANSACTION
                self.took_s = time.monotonic() - began

    def stop(self) -> None:
        self._ended.set()


@contextmanager
def open_chain(folder: Path) -> Iterator[Publisher]:
    """A block a second, a topic, and the contract that may publish to it."""
    options = DevChainOptions(block_time_s=1, gas_limit=GAS_LIMIT)
    with run_playground(folder, options) as playground:
        owner = playground.chain.accounts[0].address
        repeater = playground.send(Request(None, build_repeater(playground.topics))).contract_address
        assert repeater
        names = [PATTERN.replace("*", str(number)) for number in range(TOPICS)]
        ids = [topics.compute_topic(owner, name) for name in names]
        requests = [ask(playground.topics, topics.create(name)) for name in names]
        requests += [ask(playground.topics, topics.set_roles(topic, repeater, MAY_PUBLISH)) for topic in ids]
        for request in requests:
            send_at_once(playground, request)
        wait_until_mined(playground)
        yield Publisher(playground, repeater, ids)


def send_at_once(playground: Playground, request: Request) -> None:
    """Without waiting for the block that it will be in."""
    assert request.to
    transaction = {
        "from": encode_hex(playground.chain.accounts[0].address),
        "to": encode_hex(request.to),
        "data": encode_hex(request.data),
        "gas": hex(TRANSACTION_GAS),
    }
    playground.rpc.call("eth_sendTransaction", transaction)


def wait_until_mined(playground: Playground) -> None:
    account, end = encode_hex(playground.chain.accounts[0].address), time.monotonic() + MINED_S_MAX
    while len({playground.rpc.call("eth_getTransactionCount", account, tag) for tag in ("latest", "pending")}) > 1:
        assert time.monotonic() < end, "transactions are not mined"
        time.sleep(POLL_S)
