"""Peers of the overlay as a graph, in a real browser: two that run and one that does not."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import httpx
import pytest
from playwright.sync_api import expect

from proofcast.testing.dashboard import Stage
from proofcast.testing.overlay.processes import start_peer

if TYPE_CHECKING:
    from conftest import Visit

pytestmark = [pytest.mark.slow, pytest.mark.needs("anvil", "chromium")]


@pytest.fixture(scope="module")
def far(stage: Stage) -> Iterator[None]:
    """A peer beside the broker, another that only it knows of."""
    near = stage.folder.parent / "near"
    with start_peer(near) as address, start_peer(near.parent / "far", "--bootstrap", address):
        yield


def test_peer_that_does_not_run_is_said(stage: Stage) -> None:
    peers = httpx.get(f"{stage.url}/api/v1/peers").json()["peers"]
    assert ["no peer runs in the folder" in one.get("problem", "") for one in peers] == [True, True]


def test_graph_is_live_and_the_keyboard_is_enough(far: None, visit: "Visit") -> None:
    graph = visit.page.locator("#peer-graph")
    expect(graph.locator("g")).to_have_count(3)
    expect(graph.locator("line")).to_have_count(1)
    expect(graph.locator("g.own")).to_have_count(1)
    expect(graph.locator("g.gone text")).to_have_text("gone")
    graph.locator("g").first.focus()
    visit.page.keyboard.press("Tab")
    expect(visit.page.locator("#peer-detail")).not_to_contain_text("Choose a peer")
    graph.locator("g.own").focus()
    expect(visit.page.locator("#peer-detail")).to_contain_text("near, 12D3KooW")
    expect(visit.page.locator("#peer-detail")).to_contain_text("1 neighbour")
    expect(graph.locator("line.near")).to_have_count(1)
