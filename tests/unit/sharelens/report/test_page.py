"""The report as a file: what it says first, that it loads nothing, that names in it are text and nothing else."""

import base64
import hashlib
import html
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from sharelens.parameters.filters import parse_key_filter
from sharelens.source.request import CutChoice, Source
from tests.logs.state_logs import START_MS, snapshot, write_log_directory
from tests.processes.in_process import make_lake
from tests.report_pages import HOSTILE, WRITTEN_MS, page, pinned_log

pytestmark = pytest.mark.slow


class Elements(HTMLParser):
    """Every element with its attributes, and the text of the page."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(document)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes an element."""
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Notes text."""
        self.text += data


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    return pinned_log(tmp_path_factory.mktemp("pinned") / "logs")


@pytest.fixture(scope="module")
def pinned(source: Source) -> str:
    return page(source)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> str:
    return page(pinned_log(tmp_path_factory.mktemp("hostile") / "logs", HOSTILE))


def first_finding(document: str) -> str:
    match = re.search(r'<ol class="findings">\s*<li[^>]*><p>(.*?)</p>', document)
    assert match is not None
    return html.unescape(match[1])


def test_the_first_sentence_says_what_stands_still_where_and_since_when(pinned: str) -> None:
    assert (
        first_finding(pinned)
        == "g: stands still at offset 4 of orders-0 since 14:13:21 (at least 9 min 59 s, blocked_by_record)."
    )


def test_links_lead_to_places_in_the_file(pinned: str) -> None:
    elements = Elements(pinned).elements
    places = {attributes["id"] for _, attributes in elements if attributes.get("id")}
    links = [attributes["href"] for tag, attributes in elements if tag == "a"]
    assert {"#trace-1", "#stalls", "#evidence"} <= set(links)
    assert {str(link).removeprefix("#") for link in links} <= places


def test_no_two_elements_share_an_id(pinned: str) -> None:
    ids = [attributes["id"] for _, attributes in Elements(pinned).elements if attributes.get("id")]
    assert len(ids) > 20
    assert len(ids) == len(set(ids))


def test_the_file_loads_nothing(pinned: str) -> None:
    for tag, attributes in Elements(pinned).elements:
        assert tag not in ("iframe", "object", "embed", "img", "base", "form")
        assert "src" not in attributes
        for name in ("href", "xlink:href"):
            assert str(attributes.get(name, "#")).startswith(("#", "data:,"))
    assert set(re.findall(r"url\((.)", pinned)) <= {"#"}
    assert "@import" not in pinned


def test_only_the_one_script_may_run(pinned: str) -> None:
    (script,) = re.findall(r"<script>(.*?)</script>", pinned, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in html.unescape(pinned)


def test_hostile_names_are_text(hostile: str) -> None:
    elements = Elements(hostile)
    tags = [tag for tag, _ in elements.elements]
    assert (tags.count("script"), tags.count("img"), tags.count("b") > 0) == (1, 0, True)
    assert not [name for _, attributes in elements.elements for name in attributes if name.startswith("on")]
    for text in (
        "</script><script>document.title",
        "{{ 7 * 7 }} {% raw %} ${7*7}",
        "line\\nbreak\\ttab \\u202egnp.exe",
    ):
        assert text in elements.text
    assert not set("\u202e\x1b\u2028") & set(hostile)


@pytest.mark.soak
def test_the_same_cut_is_the_same_file_but_for_the_moment_of_writing(source: Source, pinned: str) -> None:
    assert page(source) == pinned
    later = page(source, written_ms=WRITTEN_MS + 86_400_000)
    changed = [
        (pinned_line, right)
        for pinned_line, right in zip(pinned.splitlines(), later.splitlines(), strict=True)
        if pinned_line != right
    ]
    assert [line.strip() for line, _ in changed] == [
        '<p id="written">Written 2026-09-22 14:13:20 UTC, 23 h 50 min after the cut.</p>'
    ]


def without_audit(document: str) -> list[str]:
    """The lines without the audit's findings and section: a run audits its lake, log directories are not audited."""
    remaining_html = re.sub(r'<section id="audit".*?</section>', "", document, flags=re.DOTALL)
    return [line for line in remaining_html.splitlines() if line.strip() and "sharelens audit" not in line]


@pytest.mark.soak
def test_a_lake_and_its_log_make_the_same_page_but_for_the_place(source: Source, pinned: str, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    make_lake(lake, Path(source.log_dirs[0]))
    of_lake = page(Source(lake=str(lake)))
    for place, document in ((f"lake {lake}", of_lake), (source.log_dirs[0], pinned)):
        assert place in document
    same = of_lake.replace(f"--lake {lake}", "FROM").replace(f"lake {lake}", "PLACE")
    other = pinned.replace(f"--log-dir {source.log_dirs[0]}", "FROM").replace(source.log_dirs[0], "PLACE")
    assert without_audit(same) == without_audit(other)


def test_a_page_of_the_past_knows_nothing_of_what_came_later(source: Source) -> None:
    earlier = page(source, cut=CutChoice(as_of_ms=START_MS + 60_000))
    assert "20" not in re.findall(r'href="#trace-\d+">([\d,]+)<', earlier)
    assert "as of 2026-09-21 14:14:20 UTC" in earlier
    assert "ARCHIVED" not in earlier


def test_a_page_of_one_group_names_it_and_holds_no_other(tmp_path: Path) -> None:
    source = pinned_log(tmp_path / "logs", ("mine", "theirs"))
    text = Elements(page(source, key_filter=parse_key_filter(["mine"], [], []))).text
    assert "Only group mine" in text
    assert "mine: what happened" in text
    assert "theirs" not in text.rpartition("Not in the log")[0]


def test_nothing_wrong_is_said_in_so_many_words(tmp_path: Path) -> None:
    logs = write_log_directory(tmp_path / "logs", [snapshot(start=0)])
    document = page(Source(log_dirs=(str(logs),)))
    assert first_finding(document).startswith("nothing is wrong: 1 group, 1 share partition, by the last record at ")


def test_many_groups_are_cut_off_with_their_number_and_the_command(tmp_path: Path) -> None:
    logs = write_log_directory(tmp_path / "logs", [snapshot(f"group-{number:04}", start=0) for number in range(520)])
    document = page(Source(log_dirs=(str(logs),)))
    assert "20 more rows are not shown" in document
    assert f"sharelens overview --log-dir {logs}" in document
    assert len(document) < 1_000_000
