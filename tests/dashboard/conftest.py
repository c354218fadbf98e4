"""A browser in front of a stage, and what it complained of."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from proofcast.cli.doctor import find_program
from proofcast.testing.dashboard import Stage, run_stage

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
DESKTOP = (1280, 860)
WAIT_MS_MAX = 30_000
"""A page that is going to show something shows it within a poll or two; a busy machine may need longer."""
expect.set_options(timeout=WAIT_MS_MAX)


@dataclass(slots=True)
class Visit:
    page: Page
    complaints: list[str] = field(default_factory=list)


OpenPage = Callable[..., Visit]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with run_stage(tmp_path_factory.mktemp("dashboard")) as stage:
        yield stage


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=find_program("chromium"), args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(stage: Stage, browser: Browser) -> Iterator[OpenPage]:
    """Visits of the page, none of which may have complained when the test ends."""
    visits: list[Visit] = []

    def open_one(size: tuple[int, int] = DESKTOP, scheme: str = "light") -> Visit:
        context = browser.new_context(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
        context.set_default_timeout(WAIT_MS_MAX)
        visit = Visit(context.new_page())
        visit.page.on("console", lambda said: visit.complaints.append(said.text) if said.type == "error" else None)
        visit.page.on("pageerror", lambda error: visit.complaints.append(str(error)))
        visit.page.goto(stage.url)
        visits.append(visit)
        return visit

    yield open_one
    for visit in visits:
        visit.page.context.close()
    assert [visit.complaints for visit in visits] == [[] for _ in visits]


@pytest.fixture
def visit(open_page: OpenPage) -> Visit:
    return open_page()
