"""A broker in a process of its own, killed again and again while it delivers, and what must hold nevertheless."""

import asyncio
import json
import os
import random
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import aiohttp
from aiohttp import web

from proofcast.cloudevents import Delivery, compute_id, parse_structured
from proofcast.event import Finality, Step
from proofcast.testing.broker.serving import TOPICS
from proofcast.testing.feed.story import LogName, Story

API = "/api/v1/subscriptions"
FILTER = {"contract": "0x" + bytes(20).hex()}
LEASE_S = 0.5
"""Short, so that a take-over on PostgreSQL does not take long."""
MOVES_MAX = 8
"""Deliveries between two kills, at most."""


class BrokerProcess:
    def __init__(self, feed: Path, store: str) -> None:
        self._arguments = ["--feed", str(feed), "--topics", "0x" + TOPICS.hex(), "--port", "0"]
        self._arguments += ["--allow-receiver", "127.0.0.1", "--lease", str(LEASE_S)]
        self._environment = os.environ | {"PROOFCAST_STORE": store}
        self.url = ""

    def start(self) -> None:
        command = [sys.executable, "-m", "proofcast.cli", "broker", "serve", *self._arguments]
        self._process = subprocess.Popen(
            command, env=self._environment, stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL
        )
        assert self._process.stderr is not None
        said = []
        for line in self._process.stderr:
            said.append(line)
            if "events at " in line:
                self.url = line.split("events at ")[1].split("/api/")[0]
                self._listener = threading.Thread(target=self._process.stderr.read)  # so that it can go on talking
                self._listener.start()
                return
        raise AssertionError("".join(said))

    def kill(self) -> None:
        self._process.kill()
        self._listener.join()
        self._process.communicate()


class Ledger:
    """What one subscriber was told and did; told twice without a mark, or after it acknowledged, is a fault."""

    def __init__(self) -> None:
        self.held: list[LogName] = []
        self.acknowledged: set[str] = set()
        self._done: list[str] = []

    def perform(self, delivery: Delivery) -> None:
        event_id = compute_id(delivery.event, delivery.turn)
        assert event_id not in self.acknowledged, f"{event_id} comes again after it was acknowledged"
        if event_id in self._done:
            assert delivery.is_repeated, f"{event_id} comes again, unmarked"
            return
        self._done.append(event_id)
        at = delivery.event.position
        if delivery.event.step is Step.APPLY:
            self.held.append((at.block_hash, at.log_index))
        else:
            assert self.held.pop() == (at.block_hash, at.log_index), "undone out of turn"


class Trial:
    """One feed and one store; a webhook and a puller, while one of the brokers dies."""

    def __init__(self, folder: Path, store: str, seed: int, brokers: int = 1) -> None:
        self.random, self.story = random.Random(seed), Story(folder, seed)
        self._brokers = [BrokerProcess(folder, store) for _ in range(brokers)]
        self.hooked, self.pulled = Ledger(), Ledger()
        self._taken = asyncio.Event()
        self._fault: AssertionError | None = None

    async def run(self, kills: int) -> None:
        """Raise where anything was lost, came twice or in the wrong order."""
        receiver = web.Application()
        receiver.router.add_post("/", self._take)
        runner = web.AppRunner(receiver)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        for broker in self._brokers:
            await asyncio.to_thread(broker.start)
        try:
            await self._subscribe(f"http://127.0.0.1:{runner.addresses[0][1]}/")
            for _ in range(kills):
                await self._live()
                self._verify()
                broker = self.random.choice(self._brokers)
                broker.kill()
                await asyncio.to_thread(broker.start)
            await self._settle()
        finally:
            for broker in self._brokers:
                broker.kill()
            await runner.cleanup()

    async def _live(self) -> None:
        """The chain goes on; a few deliveries arrive by either door, then the moment has come."""
        await asyncio.to_thread(self.story.grow)
        for _ in range(self.random.randint(0, MOVES_MAX)):
            if self.random.random() < 0.5:
                await self._pull()
            else:
                with suppress(TimeoutError):
                    self._taken.clear()
                    async with asyncio.timeout(self.random.random() * LEASE_S):
                        await self._taken.wait()

    async def _settle(self) -> None:
        """Nobody dies any more: everything arrives."""
        wanted = self.story.list_logs(Finality.LATEST)
        while self.hooked.held != wanted:
            self._verify()
            self._taken.clear()
            await self._taken.wait()
        while self.pulled.held != wanted:
            await self._pull()

    async def _subscribe(self, receiver: str) -> None:
        common = {"start": "oldest", "filter": FILTER}
        hook = {"name": "hooked", "transport": "webhook", "options": {"url": receiver}}
        async with aiohttp.ClientSession(self.random.choice(self._brokers).url) as session:
            for body in (hook | common, {"name": "pulled"} | common):
                async with session.post(API, json=body) as response:
                    assert response.status == 201, await response.text()

    async def _take(self, request: web.Request) -> web.Response:
        try:
            self.hooked.perform(parse_structured(await request.read()))
        except AssertionError as fault:
            self._fault = self._fault or fault
        self._taken.set()
        return web.Response(status=204)

    def _verify(self) -> None:
        if self._fault is not None:
            raise self._fault

    async def _pull(self) -> None:
        """Some of what is there, acknowledged or not."""
        limit = self.random.randint(1, MOVES_MAX)
        async with aiohttp.ClientSession(self.random.choice(self._brokers).url) as session:
            async with session.get(f"{API}/pulled/events?limit={limit}") as response:
                if response.status == 503:
                    return  # the lease of the one that died has not run out
                events = [parse_structured(json.dumps(one).encode()) for one in (await response.json())["events"]]
            for delivery in events:
                self.pulled.perform(delivery)
            if events and self.random.random() < 0.7:
                async with session.post(f"{API}/pulled/ack", json={"cursor": events[-1].cursor}) as response:
                    assert response.status == 200, await response.text()
                    settled = (await response.json())["acknowledged"]
                ids = [compute_id(one.event, one.turn) for one in events[:settled]]
                self.pulled.acknowledged.update(ids)
