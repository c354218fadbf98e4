"""`proofcast demo`: the whole story in a minute, from one transaction to evidence that a stranger checks offline."""

import tempfile
import time
from pathlib import Path

import click

from proofcast.chain.io.rpc import RpcClient
from proofcast.cli.connection import JSON_OPTION, Settings
from proofcast.cli.demo import acts, board
from proofcast.cli.demo.listeners import Listener, listen_by_sdk, listen_by_sse, listen_by_webhook
from proofcast.cli.demo.story import Story
from proofcast.cli.output import emit, note
from proofcast.onchain.io.devchain import interrupted_by_signals
from proofcast.onchain.io.keys import parse_key
from proofcast.onchain.io.sender import Sender
from proofcast.testing.compose import Up, run_up

LOCAL_RECEIVERS = ("--allow-receiver", "127.0.0.1")
"""Webhooks go to private addresses only where the operator says so."""
STAY_EVERY_S = 5.0
"""Between the events that keep coming while the dashboard stays open."""


@click.command(params=[JSON_OPTION])
@click.option("--stay", is_flag=True, help="Leave everything running, with an event now and then, until Ctrl-C.")
@click.pass_obj
def demo(settings: Settings, stay: bool) -> None:
    """Run everything on this machine and show, checked line by line, what an event goes through."""
    story = Story(is_quiet=settings.as_json)
    with interrupted_by_signals(), tempfile.TemporaryDirectory(prefix="proofcast-demo-") as folder:
        story.begin("proofcast up: a development chain, the contracts, Spark, the broker")
        with run_up(Path(folder) / "data", *LOCAL_RECEIVERS, watch=note) as up, RpcClient(up.rpc_url) as rpc:
            scene = tell(story, up, Sender(rpc, parse_key(up.private_key), Path(folder)))
            if stay:
                linger(scene, up)
            story.begin("the end")
            story.check("everything ended in order: streams first, then Spark, then the chain", up.end(), 0)
    if settings.as_json:
        emit(True, story.lines, "")


def tell(story: Story, up: Up, sender: Sender) -> board.Scene:
    acts.meet(story, up.broker_url, sender.rpc)
    scene = board.set_scene(sender)
    guests = list(board.invite(scene))
    acts.warm_up(story, up.broker_url, sender.rpc)
    topic = f"0x{scene.topic.hex()}"
    listeners = [
        Listener("SSE", lambda: listen_by_sse(up.broker_url, topic)),
        Listener("webhook, signed", lambda: listen_by_webhook(up.broker_url, topic)),
        Listener("SDK, verifying", lambda: listen_by_sdk(up.broker_url, topic)),
    ]
    story.begin("one transaction: a publication reaches three contracts, one of them hostile")
    performed = acts.publish(story, scene, guests)
    story.begin("the same event, verified by Spark, at every service")
    event = acts.hear(story, listeners, performed)
    story.begin("a reorg: what the chain takes back is taken back everywhere")
    acts.reorganize(story, scene, listeners)
    story.begin("a lying node")
    acts.catch_liars(story, up.rpc_url, event)
    story.begin("evidence: checked offline, by anybody")
    acts.verify_offline(story, up.broker_url, sender.rpc, event)
    return scene


def linger(scene: board.Scene, up: Up) -> None:
    note(f"\nthe dashboard is at {up.broker_url}/ until Ctrl-C")
    try:
        for number in range(1, 1_000_000):
            board.report(scene, f"XY{number}", number % 200)
            time.sleep(STAY_EVERY_S)
    except KeyboardInterrupt:
        note("")
