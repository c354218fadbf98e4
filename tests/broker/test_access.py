"""Keys, scopes and rates at the door; who is served without any; and the commands that make keys."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from click.testing import CliRunner

from proofcast.broker.io.access import Allowance, make_key
from proofcast.broker.io.http import Settings
from proofcast.broker.io.store.durable import Store
from proofcast.broker.scope import Scope
from proofcast.cli import proofcast
from proofcast.cli.broker import verify_host
from proofcast.errors import InvalidRequest, Reason
from proofcast.testing.broker.serving import open_broker
from proofcast.testing.feed.story import Story

STATUS, SUBSCRIPTIONS = "/api/v1/status", "/api/v1/subscriptions"


async def make_keys(address: str, **scopes: str) -> dict[str, str]:
    """Texts of new keys by label; a label of `slow` may ask once a second."""
    store, texts = Store(address), {}
    for label, scope in scopes.items():
        key = make_key()
        await store.add_key(key.id, key.digest, label, Scope(scope), 1 if label == "slow" else 0)
        texts[label] = key.text
    await store.close()
    return texts


@asynccontextmanager
async def open_session(folder: Path, store: str) -> AsyncIterator[aiohttp.ClientSession]:
    async with open_broker(folder, Settings(store=store)) as url, aiohttp.ClientSession(url) as session:
        yield session


async def ask(session: aiohttp.ClientSession, method: str, path: str, key: str = "", **more: object) -> int:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    async with session.request(method, path, headers=headers, **more) as response:  # type: ignore[arg-type]
        if response.status >= 400:
            assert response.content_type == "application/problem+json"
            assert "pck_" not in (await response.text()).replace("Bearer pck_...", "")
        return response.status


def test_unknown_and_damaged_keys_are_refused(tmp_path: Path, store_address: str) -> None:
    async def scenario() -> None:
        Story(tmp_path, 1)
        texts = await make_keys(store_address, reader="read")
        good, other = texts["reader"], make_key().text
        async with open_session(tmp_path, store_address) as session:
            for bad in ("", other, good[:-1], good + "A", good[:14] + other[14:], "Basic " + good, "pck_", "\u00e4"):
                assert await ask(session, "GET", STATUS, bad) == 401, bad
            assert await ask(session, "GET", STATUS, good) == 200
            assert await ask(session, "GET", "/healthz") == 200

    asyncio.run(scenario())


def test_reader_may_not_manage(tmp_path: Path) -> None:
    async def scenario() -> None:
        Story(tmp_path, 1)
        store = str(tmp_path / "broker.sqlite")
        keys = await make_keys(store, reader="read", owner="manage")
        body = {"json": {"name": "flights"}}
        async with open_session(tmp_path, store) as session:
            assert await ask(session, "POST", SUBSCRIPTIONS, keys["reader"], **body) == 403
            assert await ask(session, "POST", SUBSCRIPTIONS, keys["owner"], **body) == 201
            assert await ask(session, "GET", SUBSCRIPTIONS, keys["reader"]) == 200
            assert await ask(session, "GET", SUBSCRIPTIONS + "/flights/events", keys["reader"]) == 200
            unknown = {"json": {"cursor": "x"}}
            assert await ask(session, "POST", SUBSCRIPTIONS + "/flights/ack", keys["reader"], **unknown) == 409
            for method, path in (("DELETE", ""), ("PATCH", ""), ("POST", "/pause"), ("POST", "/test")):
                assert await ask(session, method, f"{SUBSCRIPTIONS}/flights{path}", keys["reader"]) == 403

    asyncio.run(scenario())


def test_rate_is_limited_per_key(tmp_path: Path) -> None:
    async def scenario() -> None:
        Story(tmp_path, 1)
        store = str(tmp_path / "broker.sqlite")
        keys = await make_keys(store, slow="read", reader="read")
        async with open_session(tmp_path, store) as session:
            statuses = [await ask(session, "GET", STATUS, keys["slow"]) for _ in range(10)]
            assert (statuses[:2], statuses[-1]) == ([200, 200], 429)
            assert await ask(session, "GET", STATUS, keys["reader"]) == 200

    asyncio.run(scenario())


def test_allowance_fills_at_its_rate() -> None:
    allowance = Allowance(left=2.0, at=0.0)
    assert [allowance.take(1, 0.0) for _ in range(3)] == [True, True, False]
    assert [allowance.take(1, 1.0) for _ in range(2)] == [True, False]
    assert [allowance.take(1, 100.0) for _ in range(3)] == [True, True, False]


def test_without_keys_only_this_machine_is_served(tmp_path: Path) -> None:
    """Also not through a browser that was led to think that this machine has another name."""

    async def scenario() -> None:
        Story(tmp_path, 1)
        async with open_session(tmp_path, "") as session:
            assert await ask(session, "GET", STATUS) == 200
            async with session.get(STATUS, headers={"Host": "rebind.example"}) as response:
                assert response.status == 401
        store = Store(str(tmp_path / "broker.sqlite"))
        with pytest.raises(InvalidRequest) as refused:
            await verify_host("0.0.0.0", store)
        assert refused.value.reason is Reason.NOT_ALLOWED
        await verify_host("127.0.0.1", store)
        key = make_key()
        await store.add_key(key.id, key.digest, "x", Scope.READ, 0)
        await verify_host("0.0.0.0", store)
        await store.close()

    asyncio.run(scenario())


def test_key_is_made_listed_and_revoked(tmp_path: Path, store_address: str) -> None:
    runner, store = CliRunner(), {"PROOFCAST_STORE": store_address}
    made = json.loads(
        runner.invoke(proofcast, ["key", "create", "ops", "--scope", "manage", "--json"], env=store).stdout
    )
    listed = runner.invoke(proofcast, ["key", "list", "--json"], env=store).stdout
    assert made["key"].startswith("pck_")
    assert made["key"].rpartition("_")[2] not in listed
    assert [(one["id"], one["scope"]) for one in json.loads(listed)] == [(made["id"], "manage")]
    assert runner.invoke(proofcast, ["key", "revoke", made["id"]], env=store).exit_code == 0
    assert json.loads(runner.invoke(proofcast, ["key", "list", "--json"], env=store).stdout) == []
    assert isinstance(runner.invoke(proofcast, ["key", "revoke", made["id"]], env=store).exception, InvalidRequest)


def test_revoked_key_is_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        Story(tmp_path, 1)
        address = str(tmp_path / "broker.sqlite")
        keys = await make_keys(address, reader="read", owner="manage")
        store = Store(address)
        (reader,) = [one for one in await store.find_keys() if one.label == "reader"]
        await store.revoke_key(reader.id)
        await store.close()
        async with open_session(tmp_path, address) as session:
            assert await ask(session, "GET", STATUS, keys["reader"]) == 401
            assert await ask(session, "GET", STATUS, keys["owner"]) == 200

    asyncio.run(scenario())


# --- settings in a file


def test_settings_file_is_read_and_checked(tmp_path: Path) -> None:
    settings = tmp_path / "broker.toml"
    settings.write_text(f'feed = "{tmp_path}"\nallow-receiver = ["127.0.0.1", "10.0.0.0/8"]\nport = 0\nlease = 2.5\n')
    outcome = CliRunner().invoke(proofcast, ["broker", "serve", "--config", str(settings), "--check"])
    assert (outcome.exit_code, outcome.stderr) == (0, "everything given is right\n")
    assert list(tmp_path.iterdir()) == [settings], "checking makes nothing"


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("fede = 1", "`fede`"),
        ("feed = ", "no TOML"),
        ('allow-receiver = ["ten"]', "`ten`"),
        ('host = "0.0.0.0"', "no key"),
        ("port = 70000", "70000"),
    ],
)
def test_wrong_settings_are_named(line: str, part: str, tmp_path: Path) -> None:
    settings = tmp_path / "broker.toml"
    settings.write_text(f"{line}\n")
    command = ["broker", "serve", "--config", str(settings), "--feed", str(tmp_path), "--check"]
    outcome = CliRunner().invoke(proofcast, command)
    assert outcome.exit_code != 0
    assert part in f"{outcome.exception} {outcome.stderr}"
