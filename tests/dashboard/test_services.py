"""Subscriptions, dead letters and redrive on the page, with a receiver that refuses at first."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import httpx
import pytest
from playwright.sync_api import expect

from proofcast.testing.dashboard import Stage

if TYPE_CHECKING:
    from conftest import Visit

pytestmark = [pytest.mark.slow, pytest.mark.needs("anvil", "chromium")]


class Receiver(ThreadingHTTPServer):
    status = 500


class Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        assert isinstance(self.server, Receiver)
        self.send_response(self.server.status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_dead_letter_is_shown_and_redriven(stage: Stage, visit: "Visit", receiver: Receiver) -> None:
    page = visit.page
    topic = stage.create_topic("orders")
    asked = {
        "name": "shop",
        "filter": {"topic": "orders"},
        "start": "oldest",
        "transport": "webhook",
        "options": {"url": f"http://127.0.0.1:{receiver.server_port}/"},
    }
    assert httpx.post(f"{stage.url}/api/v1/subscriptions", json=asked).status_code == 201
    stage.publish(topic, b"one table")
    letter = page.locator("#letter-list > li")
    expect(letter).to_contain_text("orders #1 for shop")
    expect(letter).to_contain_text("the receiver answered 500")
    receiver.status = 204
    letter.get_by_role("button", name="Redrive orders #1 for shop").press("Enter")
    expect(page.locator("#no-letters")).to_be_visible()
    event = page.locator("#event-list > li").filter(has_text="one table")
    expect(event.locator(".journey")).to_contain_text("delivered to 1 service")
    subscription = page.locator("#subscription-list > li")
    expect(subscription).to_contain_text("webhook of orders")
    expect(subscription).to_contain_text("up to date")
