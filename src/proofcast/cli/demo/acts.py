"""The acts of the demonstration, in their order."""

import re
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import httpx

from proofcast.chain.evidence import verify_evidence
from proofcast.chain.io.answers import get_field, parse_bytes, parse_quantity
from proofcast.chain.io.fetch import fetch_block
from proofcast.chain.io.rpc import RpcClient
from proofcast.chain.io.rpc_source import RpcSource
from proofcast.chain.profile import get_profile
from proofcast.cli.demo import board
from proofcast.cli.demo.board import Guest, Performance, Scene, Served
from proofcast.cli.demo.listeners import Heard, Listener
from proofcast.cli.demo.story import Story
from proofcast.cli.values import shorten
from proofcast.client.io.http import Client
from proofcast.cloudevents import compute_id
from proofcast.errors import InvalidInput, Reason, Unavailable
from proofcast.event import Event, Step
from proofcast.onchain.events import Published, find_event
from proofcast.onchain.io.receipts import Receipt
from proofcast.onchain.outcome import Outcome
from proofcast.testing.chain.lying import Lie
from proofcast.testing.chain.relay import LyingRelay

FLIGHT, DELAY_MIN = "LH454", 150
"""The insurance covers two hours."""
OTHER_FLIGHT, OTHER_DELAY_MIN = "BA117", 20
WEI_PER_GWEI = 10**9
RATIO_MIN, RATIO_MAX = 0.99, 1.05
"""Of what subscribers pay to the publisher's fee."""
HASH = re.compile(r"([0-9a-f]{8})[0-9a-f]{56}")
POLL_S, WARM_UP_S_MAX = 0.1, 120.0
LIES = (Lie.TAMPER_DATA, Lie.WITHHOLD_LOG, Lie.ADD_LOG)


# --- everything is up


def meet(story: Story, broker: str, rpc: RpcClient) -> None:
    status = httpx.get(f"{broker}/api/v1/status", trust_env=False).json()
    chain_id = parse_quantity(rpc.call("eth_chainId"))
    story.check(f"chain {chain_id}, Spark pipeline, broker and dashboard are up: {broker}/", status["chain"], chain_id)
    page = httpx.get(broker, trust_env=False)
    story.check("the dashboard is served, and may load nothing from elsewhere", is_locked(page), True)


def is_locked(page: httpx.Response) -> bool:
    return page.is_success and page.headers["content-security-policy"].startswith("default-src 'none'")


def warm_up(story: Story, broker: str, rpc: RpcClient) -> None:
    """Spark's first batch takes seconds, every further one a fraction of one."""
    head = parse_quantity(rpc.call("eth_blockNumber"))
    deadline = time.monotonic() + WARM_UP_S_MAX
    while (found := get_verified(broker)) < head:
        if time.monotonic() > deadline:
            raise Unavailable(
                Reason.NOT_YET,
                f"Spark has verified `{found}` of `{head}` blocks after `{WARM_UP_S_MAX:g}` seconds",
                hint="try again on a calmer machine",
            )
        time.sleep(POLL_S)
    story.check(f"three contracts are subscribed, and Spark has verified all {head} blocks so far", found, head)


def get_verified(broker: str) -> int:
    return int(httpx.get(f"{broker}/api/v1/status", trust_env=False).json()["blocks"]["latest"]["number"])


# --- one transaction


def publish(story: Story, scene: Scene, guests: list[Guest]) -> Performance:
    performed = board.perform(scene, guests, FLIGHT, DELAY_MIN)
    receipt, served = performed.receipt, performed.served
    transaction = shorten(receipt.transaction_hash)
    story.check(f"{FLIGHT} is {DELAY_MIN} minutes late: published by {transaction}", receipt.succeeded, True)
    insurance, counter, burner = served
    tell_served(story, insurance, Outcome.DELIVERED, f"pays for {FLIGHT}")
    tell_served(story, counter, Outcome.DELIVERED, "has seen 1")
    tell_served(story, burner, Outcome.FAILED, "burns all its gas")
    paid_gwei = sum(one.paid_gwei for one in served)
    ratio = paid_gwei * WEI_PER_GWEI / receipt.fee_wei
    story.check(
        f"their deposits paid the publisher {ratio:.3f} of its fee of {receipt.fee_wei // WEI_PER_GWEI} gwei",
        RATIO_MIN <= ratio <= RATIO_MAX,
        True,
    )
    return performed


def tell_served(story: Story, served: Served, outcome: Outcome, says: str) -> None:
    said = f"{served.title:20} {served.outcome.words}, {served.says}, paid {served.paid_gwei} gwei"
    story.check(said, (served.outcome, served.says), (outcome, says))


# --- every service


def hear(story: Story, listeners: Sequence[Listener], performed: Performance) -> Event:
    """Everybody is told of the same publication; the event as the first of them has it."""
    receipt = performed.receipt
    published = next(event for log in receipt.logs if isinstance(event := find_event(log.topics, log.data), Published))
    heard = [listener.wait() for listener in listeners]
    for listener, one in zip(listeners, heard, strict=True):
        late_s = one.at - performed.sent_at
        story.check(
            f"{listener.name:20} event {one.event.sequence}, `{one.event.trust}`, {late_s:.2f} s after it was sent",
            describe(one.event),
            (Step.APPLY, published.sequence, published.payload, receipt.block_hash),
        )
    return heard[0].event


def describe(event: Event) -> tuple[Step, int, bytes, bytes]:
    return event.step, event.sequence, event.payload, event.position.block_hash


# --- a reorg


def reorganize(story: Story, scene: Scene, listeners: Sequence[Listener]) -> None:
    """Event 2 is published, then its block leaves the chain and its transaction comes back in another one."""
    rpc = scene.sender.rpc
    receipt = board.report(scene, OTHER_FLIGHT, OTHER_DELAY_MIN)
    before = [listener.wait() for listener in listeners]
    story.check(f"event 2 is in block {shorten(receipt.block_hash)}", get_hashes(before), {receipt.block_hash})
    raw = rpc.call("eth_getRawTransactionByHash", f"0x{receipt.transaction_hash.hex()}")
    rpc.call("anvil_mine", "0x1")
    rpc.call("anvil_reorg", 2, [[raw, 1]])
    moved = get_block_hash(rpc, receipt)
    story.check("the chain replaces two blocks and takes event 2 into another one", moved != receipt.block_hash, True)
    for listener in listeners:
        undone, redone = listener.wait().event, listener.wait().event
        left, joined = shorten(undone.position.block_hash), shorten(redone.position.block_hash)
        story.check(
            f"{listener.name:20} undone in {left}, again in {joined}",
            [(one.step, one.sequence, one.position.block_hash) for one in (undone, redone)],
            [(Step.UNDO, 2, receipt.block_hash), (Step.APPLY, 2, moved)],
        )


def get_hashes(heard: Sequence[Heard]) -> set[bytes]:
    return {one.event.position.block_hash for one in heard}


def get_block_hash(rpc: RpcClient, receipt: Receipt) -> bytes:
    """The block that the node has the transaction in now."""
    found = rpc.call("eth_getTransactionReceipt", f"0x{receipt.transaction_hash.hex()}")
    return parse_bytes(get_field(found, "blockHash"))


# --- a lying node


def catch_liars(story: Story, rpc_url: str, event: Event) -> None:
    """The pipeline's own verifier reads the event's block through a node that lies."""
    profile = get_profile(event.position.chain_id)
    fetch_block(RpcSource(rpc_url), event.position.block_hash, profile)
    for lie in LIES:
        with LyingRelay(rpc_url, lie) as relay:
            try:
                fetch_block(RpcSource(relay.url), event.position.block_hash, profile)
                caught = ""
            except InvalidInput as error:
                caught = str(error)
        reason = HASH.sub(r"\1..", caught)
        story.check(f"a node that {lie} is caught: {reason}", bool(caught), True)


# --- evidence


def verify_offline(story: Story, broker: str, rpc: RpcClient, event: Event) -> None:
    """Evidence in a file, checked against a hash that the node gives, with no broker or node in reach."""
    number = hex(event.position.block_number)
    trusted = parse_bytes(get_field(rpc.call("eth_getBlockByNumber", number, False), "hash"))
    with Client(broker) as client, tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "event.evidence"
        file.write_bytes(client.get_evidence(compute_id(event, 1)))
        data = file.read_bytes()
    proven = verify_evidence(data, trusted)
    published = find_event(proven.log.topics, proven.log.data)
    assert isinstance(published, Published)
    story.check(
        f"{len(data)} bytes prove event {event.sequence} in block {shorten(trusted)}, by hashes alone",
        (published.sequence, published.payload),
        (event.sequence, event.payload),
    )
    refused = sum(is_refused(data, at, trusted) for at in range(len(data)))
    story.check(f"with any one of its {len(data)} bytes changed it is refused", refused, len(data))


def is_refused(data: bytes, at: int, trusted: bytes) -> bool:
    changed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
    try:
        verify_evidence(changed, trusted)
    except InvalidInput:
        return True
    return False
