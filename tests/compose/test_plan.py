"""Which processes there are, from what the user asks."""

from pathlib import PurePosixPath

from proofcast.compose.plan import Wishes, build_plan

FOLDER = PurePosixPath("data")


def test_a_chain_of_our_own_comes_first_and_keeps_its_state() -> None:
    chain, pipeline, broker = build_plan(Wishes(FOLDER, "127.0.0.1", 8080, 8545, block_time_s=2))
    assert chain.command == ("chain", "dev", "--port", "8545", "--state", "data/chain.json", "--block-time", "2")
    assert "http://127.0.0.1:8545" in pipeline.command
    assert "--address" not in pipeline.command
    assert broker.command[:4] == ("broker", "serve", "--feed", "data/feed")


def test_nodes_are_followed_together_instead() -> None:
    nodes = ("http://one", "http://two")
    pipeline, broker = build_plan(
        Wishes(FOLDER, "::1", 1, 2, nodes, first=7, trust="agreed", topics="0x1", contracts=("0x1", "0x2"))
    )
    words = " ".join(pipeline.command)
    assert "--source http://one,http://two --first 7" in words
    assert "--trust agreed" in words
    assert words.endswith("--address 0x1 --address 0x2")
    assert "--topics 0x1" in " ".join(broker.command)


def test_a_line_says_that_each_is_ready() -> None:
    lines = (
        "chain 31337, Topics at 0x784E89aAA5c2E71fbFD20648179fB985A3f2E0bA",
        "following chain 31337 from block 3; Ctrl-C ends it",
        "events at http://127.0.0.1:8080/api/v1/events/stream; Ctrl-C ends it",
    )
    plan = build_plan(Wishes(FOLDER, "127.0.0.1", 8080, 8545))
    assert all(component.ready.search(line) for component, line in zip(plan, lines, strict=True))
