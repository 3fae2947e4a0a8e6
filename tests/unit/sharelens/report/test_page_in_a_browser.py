"""The report in a real browser: what it shows in both themes, on a phone, on paper, and that it does nothing else."""

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from sharelens.source.request import CutChoice, Source
from tests.datasets import dataset
from tests.processes.browser import browser
from tests.report_pages import HOSTILE, page, pinned_log

pytestmark = [pytest.mark.slow, pytest.mark.components]
DESK, PHONE = {"width": 1200, "height": 900}, {"width": 375, "height": 812}
PAPER = {"width": 711, "height": 1036}
"""A sheet of A4 without its margins."""
MOST_PRINTED_PAGES = 8
LINES_OF_CELLS = """cells => cells.filter(cell => cell.offsetHeight).map(cell => {
  const text = document.createRange();
  text.selectNodeContents(cell);
  return new Set([...text.getClientRects()].map(box => Math.round(box.bottom))).size;
})"""
ROWS = "#{table} tbody tr:not([hidden])"


@dataclass
class Shown:
    """A page in the browser, with all that it said on the console and asked of the network."""

    page: Page
    messages: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def open(self, file: Path) -> "Shown":
        """Loads the file and waits until nothing is left to do."""
        self.page.on("console", lambda message: self.messages.append(message.text))
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(file.as_uri())
        self.page.wait_for_load_state("networkidle")
        return self

    def colour(self, selector: str, style_property: str) -> tuple[int, ...]:
        """A computed colour as red, green and blue."""
        script = "([selector, what]) => getComputedStyle(document.querySelector(selector))[what]"
        text = str(self.page.evaluate(script, [selector, style_property]))
        return tuple(int(part) for part in text.strip("rgba()").split(",")[:3])


@pytest.fixture(scope="module")
def opened() -> Iterator[Browser]:
    with browser() as chromium:
        yield chromium


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reports")
    sources = {
        "timeouts": Source(log_dirs=(str(dataset("timeouts") / "logs"),)),
        "dlq": Source(log_dirs=(str(dataset("dlq") / "logs"),)),
        "dlq-later": Source(log_dirs=(str(dataset("dlq") / "logs"),)),
        "hostile": pinned_log(folder / "hostile-logs", HOSTILE),
    }
    cuts = {"dlq-later": CutChoice(now_ms=1_795_317_959_212)}  # groups have been without members for a day
    written = {}
    for name, source in sources.items():
        written[name] = folder / f"{name}.html"
        written[name].write_text(page(source, min_duration_ms=5000, cut=cuts.get(name, CutChoice())), encoding="utf-8")
    return written


def show(
    opened: Browser, file: Path, *, theme: str = "light", size: dict[str, int] = DESK, script: bool = True
) -> Shown:
    context = opened.new_context(viewport=size, color_scheme=theme, java_script_enabled=script)  # type: ignore[arg-type]
    return Shown(context.new_page()).open(file)


PAIRS = {("desk", "light", "timeouts"), ("desk", "dark", "hostile"), ("phone", "light", "hostile")}
PAIRS |= {("phone", "dark", "timeouts")}
"""Each size, theme and name with each other one once; the rest is in the soak."""


@pytest.mark.parametrize(
    ("size", "theme", "name"),
    [
        pytest.param(
            size, *rest, id="-".join([called, *rest]), marks=() if (called, *rest) in PAIRS else pytest.mark.soak
        )
        for called, size in (("desk", DESK), ("phone", PHONE))
        for rest in itertools.product(("light", "dark"), ("timeouts", "hostile"))
    ],
)
def test_it_shows_its_charts_says_nothing_and_asks_for_nothing(opened, files, name, theme, size):
    shown = show(opened, files[name], theme=theme, size=size)
    assert shown.messages == []
    assert shown.requests == [files[name].as_uri()]
    figures = shown.page.locator("figure")
    assert figures.count() >= 3
    for place in range(figures.count()):
        drawing = figures.nth(place).locator("div.wide svg, div.narrow svg").filter(visible=True)
        assert drawing.count() == 1
        box = drawing.bounding_box()
        assert box is not None
        assert box["width"] > 250
        assert box["height"] > 80
        assert drawing.locator("path").count() > 4
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    shown.page.context.close()


def test_the_themes_are_light_and_dark_and_the_switch_has_the_last_word(opened, files):
    shown = show(opened, files["timeouts"], theme="light")
    assert min(shown.colour("body", "backgroundColor")) > 220
    assert max(shown.colour("body", "color")) < 80
    done = "#map-1 .wide svg [fill='#a9cbe6']"
    light = shown.colour(done, "fill")
    shown.page.get_by_role("button", name="Dark").click()
    assert max(shown.colour("body", "backgroundColor")) < 40
    assert min(shown.colour("body", "color")) > 180
    assert sum(shown.colour(done, "fill")) < sum(light)
    shown.page.get_by_role("button", name="Auto").click()
    assert min(shown.colour("body", "backgroundColor")) > 220
    shown.page.context.close()


def test_on_paper_it_is_light_and_whole(opened, files):
    shown = show(opened, files["timeouts"], theme="dark")
    shown.page.emulate_media(media="print")
    assert min(shown.colour("body", "backgroundColor")) > 220
    assert not shown.page.locator("nav").is_visible()
    for figure in shown.page.locator("figure").all():
        assert figure.locator("div.wide svg, div.narrow svg").filter(visible=True).count() == 1
    clipped = (
        "[...document.querySelectorAll('.scroll')].filter((box) => box.scrollHeight > box.clientHeight + 1).length"
    )
    assert shown.page.evaluate(clipped) == 0
    assert 1 < len(re.findall(rb"/Type\s*/Page\b", shown.page.pdf())) <= MOST_PRINTED_PAGES
    archived = shown.page.locator("#poison-table")
    assert archived.locator("tbody tr").filter(visible=True).count() == 12
    assert "The first 12 of " in archived.locator(".paper").inner_text()
    shown.page.context.close()


def test_paper_keeps_times_on_one_line_and_has_no_half_empty_rows(opened, files):
    shown = show(opened, files["dlq"], size=PAPER)
    shown.page.emulate_media(media="print")
    assert shown.page.locator("#stalls-table td.whole").filter(visible=True).count() >= 12
    lines = shown.page.eval_on_selector_all("td.whole", LINES_OF_CELLS)
    assert lines
    assert set(lines) == {1}
    assert shown.page.evaluate("document.documentElement.scrollWidth") <= PAPER["width"]
    for section in ("timeline", "maps"):
        figures = shown.page.locator(f"#{section} figure")
        boxes = [figures.nth(place).bounding_box() for place in range(figures.count())]
        right = max(box["x"] + box["width"] for box in boxes if box is not None)
        rows: dict[float, float] = {}
        for box in boxes:
            assert box is not None
            rows[box["y"]] = max(rows.get(box["y"], 0), box["x"] + box["width"])
        assert all(abs(edge - right) < 2 for edge in rows.values())
    assert shown.page.locator("#timeline .sheet").filter(visible=True).count() == 1
    assert "The first of 3 tables of the file is printed." in shown.page.locator("#timeline").inner_text()
    assert len(re.findall(rb"/Type\s*/Page\b", shown.page.pdf())) <= MOST_PRINTED_PAGES
    shown.page.context.close()


def test_each_kind_of_event_has_a_lane_and_each_entry_its_proof(opened, files):
    shown = show(opened, files["dlq-later"])
    band = shown.page.locator("#band-1 .wide svg")
    labels = band.locator("text").all_text_contents()
    assert {"stalls", "created", "archived", "dead letters", "member joined"} <= set(labels)
    for label in band.locator("text").all():
        assert label.evaluate(
            "node => node.getBoundingClientRect().x >= node.ownerSVGElement.getBoundingClientRect().x"
        )
    mark = band.locator("[role='graphics-symbol'][aria-label^='archived:']").first
    mark.scroll_into_view_if_needed()
    mark.hover(force=True)
    assert re.search(r"archived: \d+ entr(y|ies), \d+ records?, ", shown.page.locator("#tip").inner_text())
    table = shown.page.locator("#timeline-1")
    rows = [row.locator("td").all_inner_texts() for row in table.locator("tbody tr").all()]
    assert len(rows) == 40
    topics = {re.sub(r"^dlq[.]\w+$", "dlq", row[-3]) for row in rows}
    assert topics <= {"__share_group_state", "__consumer_offsets", "dlq"}
    assert all(part.isdecimal() for row in rows for part in row[-2:])
    shown.page.context.close()


def test_tables_sort_by_a_heading_and_filter_by_a_word(opened, files):
    shown = show(opened, files["timeouts"])
    table = shown.page.locator("#poison-table")
    heading = table.locator("th:nth-child(4) button")
    column = "rows => rows.map(row => Number(row.cells[3].dataset.v))"
    heading.click()
    falling = shown.page.eval_on_selector_all(ROWS.format(table="poison-table"), column)
    assert falling == sorted(falling, reverse=True)
    assert table.locator("th[aria-sort='descending']").count() == 1
    heading.click()
    rising = shown.page.eval_on_selector_all(ROWS.format(table="poison-table"), column)
    assert rising == sorted(falling)
    table.get_by_role("searchbox").fill("G-SLOW")
    filtered_rows = shown.page.locator(ROWS.format(table="poison-table"))
    assert 0 < filtered_rows.count() < len(rising)
    assert all("g-slow" in text for text in filtered_rows.all_inner_texts())
    assert table.locator("output").inner_text() == f"{filtered_rows.count()} of {len(rising)}"
    shown.page.context.close()


def test_a_mark_of_the_map_says_what_it_is_beside_the_pointer(opened, files):
    shown = show(opened, files["timeouts"])
    mark = shown.page.locator("#map-1 .wide [role='graphics-symbol'][aria-label*='deliver']").first
    mark.scroll_into_view_if_needed()
    mark.hover(force=True)
    tip = shown.page.locator("#tip")
    assert tip.is_visible()
    assert "not done after" in tip.inner_text()
    shown.page.mouse.move(2, 2)
    assert not tip.is_visible()
    shown.page.context.close()


def test_the_sentence_leads_to_the_trace(opened, files):
    shown = show(opened, files["timeouts"])
    shown.page.locator(".findings a").first.click()
    assert shown.page.url.endswith("#trace-1")
    assert shown.page.locator("#trace-1 table").is_visible()
    shown.page.context.close()


def test_hostile_names_do_nothing(opened, files):
    shown = show(opened, files["hostile"])
    assert shown.page.title() == "Share groups of cluster-1"
    assert shown.page.locator("img").count() == 0
    rows = shown.page.locator(ROWS.format(table="groups-table"))
    assert rows.count() == len(HOSTILE)
    assert any("</script><script>" in text for text in rows.all_inner_texts())
    shown.page.context.close()


def test_without_scripts_everything_is_there(opened, files):
    shown = show(opened, files["timeouts"], script=False)
    assert shown.page.locator("figure .wide svg").first.is_visible()
    assert shown.page.locator("#poison-table tbody tr").count() > 10
    assert not shown.page.locator(".theme").is_visible()
    assert shown.page.locator(".find").filter(visible=True).count() == 0
    shown.page.context.close()
