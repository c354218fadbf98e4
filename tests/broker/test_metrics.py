"""Figures, health and readiness, asked over HTTP; and the dashboard that is drawn from them."""

import asyncio
import json
import re
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from proofcast.broker.io.door import BACKGROUND
from proofcast.broker.io.http import Settings, build_runner
from proofcast.broker.io.metrics import FeedCounter, Metrics
from proofcast.broker.io.watch import FeedWatch
from proofcast.broker.measures import Reorg, ReorgMeter, find_reorgs
from proofcast.chain.io.source import open_source
from proofcast.chain.steps import ChainStep
from proofcast.chain.trust import Trust
from proofcast.event import Finality, Step
from proofcast.feed.io.follower import FeedFollower
from proofcast.testing.broker.publications import Publications
from proofcast.testing.broker.serving import TOPICS, open_broker
from proofcast.testing.chain import ChainSimulator, SimulatedNode
from proofcast.testing.feed.story import START

SUFFIXES = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_count", "_sum")}
NAME = re.compile(r"\bproofcast_\w+")


def list_samples(text: str) -> dict[str, float]:
    """Name and labels to value."""
    families = text_string_to_metric_families(text)
    samples = (sample for family in families for sample in family.samples)
    return {f"{one.name}{sorted(one.labels.items())}": one.value for one in samples}


def list_names(registry: CollectorRegistry) -> set[str]:
    """Of everything that can be asked for."""
    return {family.name + suffix for family in registry.collect() for suffix in SUFFIXES[family.type]}


async def get_text(url: str, wanted_status: int = 200) -> str:
    async with aiohttp.request("GET", url) as response:
        assert response.status == wanted_status, await response.text()
        return await response.text()


def make_steps(words: str) -> list[ChainStep]:
    kinds = {"a": Step.APPLY, "u": Step.UNDO, "f": Step.FINAL}
    return [
        ChainStep(at, kinds[word], at, bytes(32), bytes(32), Trust.LINKED, Finality.LATEST)
        for at, word in enumerate(words)
    ]


@pytest.mark.parametrize("cut", range(12))
def test_reorg_is_one_run_of_undone_blocks_however_it_is_read(cut: int) -> None:
    steps, meter = make_steps("aauuaafuaaua"), ReorgMeter()
    assert meter.read(steps[:cut]) + meter.read(steps[cut:]) == [2, 1, 1]


def test_reorgs_are_told_apart_by_the_steps_between_them() -> None:
    assert find_reorgs([]) == []
    assert find_reorgs([(3, 7), (4, 6), (9, 6), (10, 5), (12, 5)]) == [Reorg(3, 6, 7), Reorg(9, 5, 6), Reorg(12, 5, 5)]


def test_nothing_is_ready_before_anything_is_journalled(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with open_broker(tmp_path) as url:
            assert json.loads(await get_text(url + "/healthz")) == {"status": "alive"}
            assert json.loads(await get_text(url + "/readyz", 503))["reason"] == "not-yet"
            assert "proofcast_deliveries_total" in await get_text(url + "/metrics")

    asyncio.run(scenario())


def test_broker_that_no_longer_follows_its_feed_is_not_alive(tmp_path: Path) -> None:
    async def scenario() -> None:
        runner = build_runner(tmp_path, TOPICS)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/healthz"
        await get_text(url)
        runner.app[BACKGROUND][0].cancel()
        assert "stopped following" in await get_text(url, 503)
        await runner.cleanup()

    asyncio.run(scenario())


def test_block_that_is_too_old_makes_the_broker_unready(tmp_path: Path) -> None:
    """Blocks of a story are kept without their bytes, so their age counts from when they were seen."""

    async def scenario() -> None:
        Publications(tmp_path, 1).publish(1)
        async with open_broker(tmp_path, Settings(block_age_s_max=3600.0)) as url:
            assert json.loads(await get_text(url + "/readyz"))["newest"]["number"] == START.number + 1
        async with open_broker(tmp_path, Settings(block_age_s_max=0.0)) as url:
            await get_text(url + "/readyz", 503)

    asyncio.run(scenario())


def test_counters_start_at_zero_and_count_what_happens(tmp_path: Path) -> None:
    async def scenario() -> None:
        story = Publications(tmp_path, 1)
        story.publish(2)
        async with open_broker(tmp_path) as url, aiohttp.ClientSession() as session:
            before = list_samples(await get_text(url + "/metrics"))
            sent = "proofcast_deliveries_total[('outcome', 'sent'), ('transport', 'sse')]"
            undone = "proofcast_blocks_total[('step', 'undo'), ('trust', 'linked')]"
            assert (before[sent], before[undone], before["proofcast_reorg_depth_blocks_count[]"]) == (0, 0, 0)
            async with session.get(url + "/api/v1/events/stream?start=oldest") as stream:
                await read_events(stream, 2)
                block = story.make_block(START, [story.make_log()])
                await asyncio.to_thread(story.adopt, [block])
                await read_events(stream, 3)
                after = list_samples(await get_text(url + "/metrics"))
                assert after["proofcast_connections[('transport', 'sse')]"] == 1
            assert (after[sent], after[undone]) == (5, 1)
            assert after["proofcast_reorg_depth_blocks_sum[]"] == after["proofcast_reorg_depth_blocks_count[]"] == 1
            assert after["proofcast_newest_block[('finality', 'latest')]"] == START.number + 1
            assert after["proofcast_events_total[('chain', '31337'), ('step', 'undo')]"] == 2

    asyncio.run(scenario())


def test_lag_of_a_stored_subscription_is_told_in_blocks_and_seconds(tmp_path: Path) -> None:
    async def scenario() -> None:
        story = Publications(tmp_path, 1)
        story.publish(1)
        async with open_broker(tmp_path) as url, aiohttp.ClientSession() as session:
            await session.post(url + "/api/v1/subscriptions", json={"name": "mine", "start": "oldest"})
            behind = list_samples(await get_text(url + "/metrics"))
            assert behind["proofcast_subscription_lag_blocks[('subscription', 'mine')]"] == 1
            assert behind["proofcast_subscription_lag_seconds[('subscription', 'mine')]"] < 1
            await session.get(url + "/api/v1/subscriptions/mine/events")
            offered = list_samples(await get_text(url + "/metrics"))
            assert offered["proofcast_subscription_lag_blocks[('subscription', 'mine')]"] == 0
            assert offered["proofcast_subscription_lag_seconds[('subscription', 'mine')]"] > 1e9

    asyncio.run(scenario())


async def read_events(stream: aiohttp.ClientResponse, count: int) -> None:
    while count:
        line = await stream.content.readline()
        count -= line in (b"event: apply\n", b"event: undo\n")


def test_nodes_that_disagree_are_counted(tmp_path: Path) -> None:
    one, other, rests = ChainSimulator(1), ChainSimulator(2), []
    one.mine(3)
    other.mine(3)
    with SimulatedNode(one) as first, SimulatedNode(other) as second:
        source = open_source(f"2 of {first.url},{second.url}")
        follower = FeedFollower(source, tmp_path, one.canonical[0].id)
        metrics = Metrics()
        counter = FeedCounter(FeedWatch(tmp_path), metrics)
        follower.follow(is_enough=lambda: len(rests) == 2, rest=lambda: rests.append(1))
    counter.measure()
    samples = list_samples(metrics.write().decode())
    assert samples["proofcast_feed_failures_total[('reason', 'not-yet')]"] == 2


def test_every_query_of_the_dashboard_names_a_figure_that_exists(root: Path) -> None:
    known = list_names(Metrics().registry)
    dashboards = sorted((root / "deploy" / "grafana").glob("*.json"))
    assert dashboards
    for path in dashboards:
        panels = json.loads(path.read_text())["panels"]
        queries = [target["expr"] for panel in panels for target in panel.get("targets", ())]
        named = [set(NAME.findall(query)) for query in queries]
        assert all(named), "a query names nothing of ours"
        assert set().union(*named) <= known
