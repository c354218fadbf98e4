"""A real node: anvil's blocks, receipts of several types and its own reorgs, followed and verified."""

from pathlib import Path

import pytest

from proofcast.chain.io.fetch import fetch_blocks, link_range
from proofcast.chain.io.rpc import RpcClient
from proofcast.chain.io.source import open_source
from proofcast.chain.profile import get_profile
from proofcast.event import Position, Step
from proofcast.feed.io.follower import FeedFollower
from proofcast.feed.io.outbox import Outbox
from proofcast.feed.io.sqlite import Journal
from proofcast.onchain.io.devchain import DevChain, run_dev_chain
from proofcast.onchain.io.receipts import parse_log
from proofcast.testing.feed.plain import match_steps, perform_rows

LOGGER = "0x00000000000000000000000000000000000a11ce"
CODE = "0x60003560005260003560206000a100"
"""Logs the first word of its input, as topic and as data."""


def send(rpc: RpcClient, chain: DevChain, word: int, **more: object) -> None:
    sender = f"0x{chain.accounts[0].address.hex()}"
    call = {"from": sender, "to": LOGGER, "data": f"0x{word:064x}", "gas": "0x30000", **more}
    rpc.call("eth_sendTransactionSync", call)  # answered when it is in a block


@pytest.mark.slow
@pytest.mark.needs("anvil")
def test_reorg_of_a_real_node_is_followed(tmp_path: Path) -> None:
    with run_dev_chain() as chain, RpcClient(chain.url) as rpc:
        rpc.call("anvil_setCode", LOGGER, CODE)
        source = open_source(chain.url)
        follower = FeedFollower(source, tmp_path)
        for word in range(4):
            send(rpc, chain, word)
        send(rpc, chain, 4, gasPrice="0x77359400")
        send(rpc, chain, 5, accessList=[{"address": LOGGER, "storageKeys": [f"0x{7:064x}"]}], gasPrice="0x77359400")
        follower.poll()
        rpc.call("anvil_reorg", 3, [])
        send(rpc, chain, 6)
        steps = follower.poll()
        assert [step.step for step in steps if step.step is not Step.FINAL] == [Step.UNDO] * 3 + [Step.APPLY] * 4
        match_steps(Journal(tmp_path), Outbox(tmp_path))
        held = perform_rows(Outbox(tmp_path).read(31_337))
        assert [position for position, _ in held] == read_positions(rpc)
        assert [int.from_bytes(log.data) for _, log in held] == [0, 1, 2, 6]
        verify_bodies(chain, follower.chain.head.number)


def read_positions(rpc: RpcClient) -> list[Position]:
    """What the node itself says, by the index that we do not trust."""
    logs = rpc.call("eth_getLogs", {"fromBlock": "0x0", "toBlock": "latest"})
    return [parse_log(log, 31_337).position for log in logs]


def verify_bodies(chain: DevChain, last: int) -> None:
    """Transactions of all types that were sent are rebuilt to the header's root."""
    source = open_source(chain.url)
    (segment,) = link_range(source, 1, last, length=last)
    blocks = list(fetch_blocks(source, segment, get_profile(31_337), with_transactions=True))
    assert len(blocks) == last
