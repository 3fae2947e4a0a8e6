"""The explorer in a real browser: from what is wrong to its proof by clicks alone, the state map, and its readers."""

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from sharelens.pages.composed import MENU
from sharelens.pages.site import QUESTION_NAMES
from tests.datasets import dataset
from tests.depths import rows_in_soak
from tests.logs.incidents import INCIDENTS, make_incident
from tests.once import made_once
from tests.processes.browser import browser
from tests.processes.explorer import explorer
from tests.processes.in_process import recorded_lake

pytestmark = [pytest.mark.slow, pytest.mark.components]
DESK, PHONE = {"width": 1280, "height": 900}, {"width": 375, "height": 812}
TIMEOUT_MS = 120_000
SCREENS = os.environ.get("SHARELENS_SCREENS")
"""A folder for pictures of the pages; without it none are kept."""
PLACE = "/groups/gd-broken/tasks/0"
GROUP = "/groups/billing"
PAGES = ("/", PLACE, "/ask/trace", "/groups/gd-broken", f"{PLACE}/7", "/ask", "/evidence")
EVERY_PAGE = [
    *dict.fromkeys([*PAGES, *MENU, *(f"/ask/{question}" for question in sorted(QUESTION_NAMES))]),
    *("/before/gd-broken/1795231510516", "/audit/wrong_lag", "/search?q=gd", "/search?q=nothing"),
    *("/groups/nobody", "/groups?no=option", "/nowhere", f"{PLACE}/99999", "/ask/state?format=nonsense"),
]
OF_STREAMS = ["/", "/groups", "/groups/wc-app", "/ask/rebalances", "/ask/describe?group=wc-app&tasks=on"]
OF_LAKES = ["/", "/tables", "/tables/gold.stall", "/tables/gold.group_history", "/evidence", "/audit"]
WAYS = [
    ("a head that nobody finishes", [GROUP, f"{GROUP}/orders/0", f"{GROUP}/orders/0/40"], r"AVAILABLE/\d"),
    ("members that poll no more", [GROUP, f"{GROUP}/orders/0"], "silent_with_backlog"),
    ("a group without members", [GROUP, f"{GROUP}/orders/1"], r"lag_grows|First incomplete[\s\S]*117"),
    ("records that no delivery gets done", [GROUP, f"{GROUP}/orders/0", f"{GROUP}/orders/0/0"], "ARCHIVED/3"),
    ("dead letters that are gone", [GROUP, f"{GROUP}/orders/0/0"], "ARCHIVED/1"),
    ("a reset over unfinished records", [GROUP, f"{GROUP}/orders/0", f"{GROUP}/orders/0/128"], "reset"),
    ("a topic that was deleted", [GROUP, f"{GROUP}/orders/0"], "deleted"),
    ("a lag that grows", [GROUP, f"{GROUP}/orders/1"], r"Lag[\s\S]*1,?\d{3}"),
    ("members that come and go", [GROUP], "member_removed|removed"),
    ("a streams group without its topic", ["/groups/word-count"], "NOT_READY|not ready"),
    ("records deleted before they were done", [GROUP, f"{GROUP}/orders/1", f"{GROUP}/orders/1/117"], "117"),
    ("a broken record batch", ["/ask/status"], "quarantine"),
]
"""Incident, the addresses of the links to click, and what the last page says."""


@dataclass
class Explorer:
    """A running explorer, a browser, and what pages said on the console."""

    base: str
    link: str
    chromium: Browser
    messages: list[str] = field(default_factory=list)

    def page(self, *, theme: str = "light", size: dict[str, int] = DESK) -> Page:
        """A new page, on the overview."""
        context = self.chromium.new_context(viewport=size, color_scheme=theme)  # type: ignore[arg-type]
        context.set_default_timeout(TIMEOUT_MS)
        page = context.new_page()
        page.on("console", lambda message: self.messages.append(message.text))
        page.on("pageerror", lambda error: self.messages.append(str(error)))
        page.goto(self.link)
        page.wait_for_url(f"{self.base}/")
        return page


@contextmanager
def opened_explorer(evidence: Path, chromium: Browser, kind: str = "--log-dir") -> Iterator[Explorer]:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "kafka-copy").symlink_to(evidence)  # pictures show the path
        with explorer("kafka-copy", kind=kind, folder=Path(folder)) as (_, link):
            yield Explorer(base=link.partition("/?")[0], link=link, chromium=chromium)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def opened(chromium: Browser) -> Iterator[Explorer]:
    with opened_explorer(dataset("dlq") / "logs", chromium) as started:
        yield started


def keep_picture(page: Page, name: str) -> None:
    if SCREENS is not None:
        page.screenshot(path=Path(SCREENS) / f"{name}.png")


def wait_for_map(page: Page) -> None:
    page.locator(".state-map .map-parts").wait_for(state="visible")


@pytest.mark.parametrize(("name", "way", "proof"), [*WAYS[:1], *rows_in_soak(*WAYS[1:])])
def test_an_incident_is_found_by_clicks_alone(name: str, way: list[str], proof: str, chromium: Browser) -> None:
    folder = made_once(f"pages-{name}", lambda copies: make_incident(INCIDENTS[name], copies))
    with opened_explorer(folder / "whole", chromium) as started:
        page = started.page()
        keep_picture(page, f"{name} 0")
        for step, place in enumerate(way, 1):
            page.locator(f'main a[href^="{place}"]').first.click()
            page.wait_for_url(re.compile(re.escape(f"{started.base}{place}") + "($|[?#])"))
            page.wait_for_load_state("networkidle")
            keep_picture(page, f"{name} {step}")
        assert re.search(proof, page.locator("main").inner_text())
        page.context.close()
        assert started.messages == []


def check_page(page: Page, base: str, place: str) -> None:
    """Everybody can read the page, and nothing of it lies beside a screen."""
    page.goto(f"{base}{place}")
    if page.locator(".state-map").count():
        expect(page.locator(".map-message")).not_to_contain_text("Reading", timeout=TIMEOUT_MS)
    violations = Axe().run(page).response["violations"]
    assert [(each["id"], each["nodes"][0]["html"][:120]) for each in violations] == [], place
    assert page.viewport_size is not None
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"], place


@pytest.mark.one_in(2)
@pytest.mark.parametrize(("theme", "size"), [("light", DESK), ("dark", PHONE)], ids=["light-desk", "dark-phone"])
def test_everybody_can_read_the_pages(opened: Explorer, theme: str, size: dict[str, int]) -> None:
    page = opened.page(theme=theme, size=size)
    for number, place in enumerate(PAGES if size == DESK else PAGES[:3]):
        check_page(page, opened.base, place)
        keep_picture(page, f"page-{number}-{theme}")
    page.context.close()
    assert opened.messages == []


@pytest.mark.soak
@pytest.mark.parametrize(
    ("theme", "size"), [("light", DESK), ("dark", DESK), ("light", PHONE), ("dark", PHONE)],
    ids=["light-desk", "dark-desk", "light-phone", "dark-phone"],
)  # fmt: skip
@pytest.mark.parametrize(
    ("name", "kind", "places"),
    [("dlq", "--log-dir", EVERY_PAGE), ("streams", "--log-dir", OF_STREAMS), ("streams", "--lake", OF_LAKES)],
    ids=["share-groups", "streams-groups", "lake"],
)
def test_everybody_can_read_every_page(
    name: str, kind: str, places: list[str], theme: str, size: dict[str, int], chromium: Browser
) -> None:
    evidence = recorded_lake(name) if kind == "--lake" else dataset(name) / "logs"
    with opened_explorer(evidence, chromium, kind) as started:
        page = started.page(theme=theme, size=size)
        for place in places:
            check_page(page, started.base, place)
            keep_picture(page, f"{name}{kind}{place.replace('/', '-')[:60]}-{theme}-{size['width']}")
        page.context.close()


def test_the_slider_replays_the_states_and_the_address_keeps_the_moment(opened: Explorer) -> None:
    page = opened.page()
    page.goto(f"{opened.base}{PLACE}")
    wait_for_map(page)
    moment, slider = page.locator(".map-moment"), page.locator(".state-map input[type=range]")
    last = moment.inner_text()
    page.keyboard.press("ArrowLeft")
    expect(moment).not_to_have_text(last)
    page.keyboard.press("ArrowRight")
    expect(moment).to_have_text(last)
    slider.focus()
    page.keyboard.press("Home")
    expect(moment).to_contain_text("snapshot at 0:0")
    page.keyboard.press("ArrowRight")
    expect(moment).to_contain_text("update at 0:5, start offset 0, end offset 40")
    ranges = [" ".join(text.split()) for text in page.locator(".map-ranges li").all_inner_texts()]
    assert ranges[:4] == ["0–1 acknowledged", "3 acknowledged", "4 archiving", "5 acknowledged"]
    assert page.url.endswith("#at=5")
    bookmark = page.url
    page.goto(f"{opened.base}/groups")
    page.go_back()
    wait_for_map(page)
    assert page.url == bookmark
    expect(moment).to_contain_text("update at 0:5")
    assert last != moment.inner_text()
    page.locator(".map-ranges a").nth(2).click()
    page.wait_for_url(f"{opened.base}{PLACE}/4")
    page.go_back()
    page.wait_for_url(bookmark)
    page.go_forward()
    page.wait_for_url(f"{opened.base}{PLACE}/4")
    page.context.close()


def test_a_click_on_a_cell_opens_its_record(opened: Explorer) -> None:
    page = opened.page()
    page.goto(f"{opened.base}{PLACE}")
    wait_for_map(page)
    page.locator("[data-zoom=in]").click()
    box = page.locator(".state-map canvas").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_url(re.compile(re.escape(f"{opened.base}{PLACE}/") + r"\d+$"))
    page.context.close()


def test_a_saved_page_opens_without_a_network_and_shows_the_same(opened: Explorer, tmp_path: Path) -> None:
    page = opened.page()
    page.goto(f"{opened.base}{PLACE}")
    wait_for_map(page)
    tables = page.locator("table").all_inner_texts()
    with page.expect_download() as download:
        page.get_by_role("link", name="Save as one file").click()
    file = tmp_path / download.value.suggested_filename
    download.value.save_as(file)
    assert file.stat().st_size < 5_000_000
    requests: list[str] = []
    messages: list[str] = []
    context = opened.chromium.new_context(offline=True)
    saved = context.new_page()
    saved.on("request", lambda request: requests.append(request.url))
    saved.on("console", lambda message: messages.append(message.text))
    saved.goto(file.as_uri())
    wait_for_map(saved)
    assert saved.locator("table").all_inner_texts() == tables
    assert requests == [file.as_uri()]
    assert messages == []
    context.close()
    page.context.close()


def test_the_theme_that_was_chosen_stays(opened: Explorer) -> None:
    page = opened.page()
    page.get_by_role("button", name="Dark").click()
    page.goto(f"{opened.base}/groups")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.context.close()


def test_times_are_in_utc_or_local_and_both_can_be_copied(opened: Explorer) -> None:
    context = opened.chromium.new_context(timezone_id="Asia/Kolkata")
    context.set_default_timeout(TIMEOUT_MS)
    page = context.new_page()
    page.goto(opened.link)
    page.goto(f"{opened.base}{PLACE}/7")
    cell = page.get_by_role("cell", name="2026-11-21T03:25:10.516Z").first
    cell.wait_for()
    page.get_by_role("button", name="Local times").click()
    expect(page.locator("td", has_text="2026-11-21T08:55:10.516+05:30")).to_be_visible()
    page.get_by_role("button", name="Local times").click()
    expect(cell).to_be_visible()
    context.close()


def test_search_and_a_form_work_without_script(opened: Explorer) -> None:
    context = opened.chromium.new_context(java_script_enabled=False)
    context.set_default_timeout(TIMEOUT_MS)
    page = context.new_page()
    page.goto(opened.link)
    page.goto(f"{opened.base}/")
    page.get_by_role("searchbox", name="Search").fill("gd-auto")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{opened.base}/groups/gd-auto")
    page.goto(f"{opened.base}/ask/trace")
    page.locator("summary").click()
    for name, text in (("group", "gd-broken"), ("topic", "tasks"), ("partition", "0"), ("offset", "7")):
        page.locator(f"input[name={name}]").first.fill(text)
    page.get_by_role("button", name="Show").click()
    expect(page.locator("main")).to_contain_text("ARCHIVED/5")
    context.close()
