"""The page in a real browser, in front of a real broker and chain."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import Browser, Locator, Route, expect

from proofcast.onchain.queues import Condition
from proofcast.testing.dashboard import Stage
from proofcast.testing.onchain import OPEN, open_switchboard

if TYPE_CHECKING:
    from conftest import OpenPage, Visit

pytestmark = [pytest.mark.slow, pytest.mark.needs("anvil", "chromium")]

DESKTOP, PHONE = (1280, 860), (390, 844)
HELD = replace(OPEN, condition=Condition.TIME, delay_s=1_000)
MARKUP = "<img src=x onerror=alert(1)><b>bold</b>"


@pytest.fixture(scope="module")
def flights(stage: Stage) -> bytes:
    """A topic with three contracts, two of them hostile."""
    topic = stage.create_topic("flights")
    for name in ("Counter", "Burner", "ReturnBomb"):
        stage.playground.join(stage.playground.create(name), topic)
    stage.publish(topic, b"LH 400 lands at 12:05")
    return topic


def find_event(visit: "Visit", text: str) -> Locator:
    return visit.page.locator("#event-list > li").filter(has_text=text).first


def open_event(visit: "Visit", text: str) -> Locator:
    event = find_event(visit, text)
    event.locator("summary").click()
    return event


# --- what must not happen


def test_page_may_load_nothing_from_elsewhere(stage: Stage, browser: Browser) -> None:
    answer = httpx.get(stage.url)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    asked: list[str] = []
    context = browser.new_context()
    page = context.new_page()
    page.on("request", lambda request: asked.append(request.url))
    page.goto(stage.url)
    expect(page.locator("#state")).to_have_text("live")
    context.close()
    assert {urlsplit(url).netloc for url in asked if not url.startswith("data:")} == {urlsplit(stage.url).netloc}


@pytest.mark.parametrize("path", ["/../pyproject.toml", "/script.js/../../cli/up.py", "/index.html", "/__init__.py"])
def test_other_files_are_not_served(path: str, stage: Stage) -> None:
    assert httpx.get(stage.url + path).status_code == 404


@pytest.mark.parametrize(
    ("event_id", "status"),
    [("nonsense", 400), (f"31337/000000000001/000000/{'ab' * 32}/apply", 503), ("topic", 400)],
    ids=["no id", "unknown block", "no publication"],
)
def test_journey_of_nothing_is_refused(event_id: str, status: int, stage: Stage, flights: bytes) -> None:
    if event_id == "topic":  # its creation is a log of the same contract
        head = stage.playground.rpc.call("eth_getBlockByNumber", "0x3", False)
        event_id = f"31337/{3:012}/{0:06}/{str(head['hash'])[2:]}/apply"
    answer = httpx.get(f"{stage.url}/api/v1/events/{event_id}/journey")
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"


def test_markup_is_shown_and_never_interpreted(stage: Stage, visit: "Visit") -> None:
    stage.publish(stage.create_topic(MARKUP), MARKUP.encode())
    event = find_event(visit, "bold")
    expect(event.locator(".payload")).to_have_text(MARKUP)
    expect(event.locator(".name")).to_have_text(MARKUP)
    expect(visit.page.locator("#topic-list")).to_contain_text(MARKUP)
    assert visit.page.locator("img, b").count() == 0


def test_false_evidence_is_refused_by_the_browser(stage: Stage, flights: bytes, visit: "Visit") -> None:
    def falsify(route: Route) -> None:
        answer = route.fetch()
        body = bytearray(answer.body())
        body[-40] ^= 1  # in the receipt's proof, or in the log
        route.fulfill(response=answer, body=bytes(body))

    visit.page.route("**/evidence", falsify)
    event = open_event(visit, "LH 400")
    event.get_by_role("button", name="Check evidence").click()
    expect(event.locator(".verdict")).to_contain_text("Not proven")


def test_evidence_is_no_proof_under_another_hash(stage: Stage, flights: bytes, visit: "Visit") -> None:
    event = open_event(visit, "LH 400")
    event.get_by_label("Hash of a block").fill("0x12")
    event.get_by_role("button", name="Check evidence").click()
    expect(event.locator(".verdict")).to_contain_text("64 hexadecimal digits")


# --- what is shown


def test_event_is_shown_with_its_journey_and_its_evidence_holds(stage: Stage, flights: bytes, visit: "Visit") -> None:
    stage.publish(flights, b"LH 401 is early")
    event = open_event(visit, "LH 401")
    expect(event.locator(".journey")).to_contain_text("published in block")
    expect(event.locator(".journey")).to_contain_text("1 of 3 contracts")
    expect(event.locator(".journey")).to_contain_text("verified: linked")
    expect(event.locator("tbody tr")).to_have_count(3)
    expect(event.locator("tbody")).to_contain_text("callback failed")
    event.get_by_role("button", name="Check evidence").click()
    expect(event.locator(".verdict")).to_contain_text("Checked in this browser")


def test_exchanges_and_queues_are_shown_with_their_messages(stage: Stage, visit: "Visit") -> None:
    board = open_switchboard(stage.playground, "colours")
    board.add_listener(board.add_queue("colour-blue"))
    board.add_queue("colour-late", HELD)
    board.publish("colour-*", payload=b"for every colour")
    stage.show()
    event = open_event(visit, "for every colour")
    expect(event.locator(".name")).to_have_text("exchange/colours")
    for words in ("key colour-*", "held in colour-late", "1 of 1 contract"):
        expect(event.locator(".journey")).to_contain_text(words)
    expect(event.locator("tbody")).to_contain_text("colour-blue")
    event.get_by_role("button", name="Check evidence").click()
    expect(event.locator(".verdict")).to_contain_text("Checked in this browser")
    exchanges, queues = visit.page.locator("#exchange-list"), visit.page.locator("#queue-list")
    expect(exchanges).to_contain_text("1 message")
    exchanges.get_by_text("2 bindings").click()
    expect(exchanges.get_by_text("colour-late → colour-late")).to_be_visible()
    expect(queues).to_contain_text("1 held")
    stage.reorganize(1)
    expect(exchanges).to_contain_text("0 messages")
    expect(queues).not_to_contain_text("1 held")


def test_reorg_marks_what_it_undoes(stage: Stage, flights: bytes, visit: "Visit") -> None:
    stage.publish(flights, b"LH 402 never was")
    event = find_event(visit, "LH 402")
    expect(event.locator(".journey")).to_contain_text("verified")
    stage.reorganize(1)
    expect(event.locator(".journey")).to_contain_text("undone by a reorg")
    expect(visit.page.locator("#reorg-list")).to_contain_text("1 event of block")
    expect(visit.page.locator("#reorg-count")).not_to_have_text("0")


def test_reorg_without_events_is_shown(stage: Stage, visit: "Visit") -> None:
    stage.playground.rpc.call("anvil_mine", "0x2")
    stage.show()
    newest = int(stage.playground.rpc.call("eth_blockNumber"), 16)
    stage.reorganize(2)
    expect(visit.page.locator("#reorg-list")).to_contain_text(f"0 events of blocks {newest - 1} to {newest}")


def test_filter_leaves_the_topics_that_fit(stage: Stage, flights: bytes, visit: "Visit") -> None:
    stage.publish(stage.create_topic("trains"), b"ICE 1 is late")
    expect(find_event(visit, "ICE 1")).to_be_visible()
    expect(visit.page.locator("#topic-list")).to_contain_text("trains")
    visit.page.get_by_role("searchbox", name="Topic").fill("fl*ts")
    expect(find_event(visit, "ICE 1")).to_be_hidden()
    expect(find_event(visit, "LH 400")).to_be_visible()


def test_keyboard_is_enough(stage: Stage, flights: bytes, visit: "Visit") -> None:
    stage.publish(flights, b"LH 403 boards")
    newest = find_event(visit, "LH 403")
    expect(newest.locator(".name")).to_have_text("flights")  # names come by another request than events
    page = visit.page
    page.get_by_role("searchbox", name="Topic").focus()
    page.keyboard.type("flights")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(newest.get_by_role("button", name="Check evidence")).to_be_visible()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(newest.locator(".verdict")).to_contain_text("Checked in this browser")


@pytest.mark.parametrize("size", [PHONE, DESKTOP], ids=["phone", "desktop"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_cut_off(
    size: tuple[int, int], scheme: str, flights: bytes, open_page: "OpenPage", tmp_path: Path
) -> None:
    visit = open_page(size, scheme)
    event = open_event(visit, "LH 400")
    expect(event.get_by_role("button", name="Check evidence")).to_be_visible()
    width = visit.page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    ground = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
    shot = visit.page.screenshot(path=tmp_path / "page.png", full_page=True)
    assert width[0] <= width[1]
    assert (sum(map(int, ground.removeprefix("rgb(").rstrip(")").split(", "))) < 300) == (scheme == "dark")
    assert len(shot) > 10_000


def test_everything_has_a_name(stage: Stage, flights: bytes, visit: "Visit") -> None:
    open_event(visit, "LH 400").get_by_role("button", name="Check evidence").wait_for()
    nameless = visit.page.evaluate(
        """() => [...document.querySelectorAll("button, input, section, summary")]
            .filter((one) => !(one.textContent.trim() || one.labels?.length || one.ariaLabel))
            .map((one) => one.outerHTML)"""
    )
    assert nameless == []
