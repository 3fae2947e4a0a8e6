"""Requests and their pages: numbers are the command's, names are text, and errors say what to do."""

import json
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.cli.app import main
from sharelens.pages.address import Address, Session, by_key, path
from sharelens.pages.site import Site
from sharelens.pages.workers import Workers
from sharelens.question_table.table import QUESTIONS
from tests.datasets import dataset
from tests.depths import examples
from tests.once import made_once
from tests.report_pages import HOSTILE, pinned_log
from tests.requests_of_pages import Client

pytestmark = pytest.mark.slow
QUESTION_LIST = [question for questions in QUESTIONS.values() for question in questions]
LOGS = dataset("dlq") / "logs"
PLACE = "/groups/gd-broken/tasks/0"
CELL = re.compile(r"<t[dh][^>]*>(.*?)</t[dh]>", re.DOTALL)
NAMES = {"group": ["gd-broken", "gd-auto"], "topic": ["tasks"], "partition": ["0", "1"], "offset": ["7"]}
MOMENTS = ["2026-11-21T03:25:12Z", "2026-11-21T03:25:40Z"]


@pytest.fixture(scope="module")
def site(site_of: Callable[[Path], Client]) -> Client:
    return site_of(LOGS)


@pytest.fixture(scope="module")
def hostile(site_of: Callable[[Path], Client]) -> Client:
    return site_of(made_once("hostile-pages", lambda folder: pinned_log(folder, HOSTILE)))


def failures(html: str) -> list[str]:
    return [unescape(text) for text in re.findall(r'class="failure" role="alert">([^<]*)', html)]


@st.composite
def addresses(draw: st.DrawFn) -> Address:
    """A question with some of its parameters, most of them of the log."""
    question = draw(st.sampled_from([each for each in QUESTION_LIST if each.name not in ("configurations", "what-if")]))
    options = []
    for key, parameter in by_key(question).items():
        if key in NAMES and (parameter.is_required or draw(st.booleans())):
            options.append((key, draw(st.sampled_from(NAMES[key]))))
        elif key in ("as_of", "from", "to") and draw(st.integers(0, 3)) == 0:
            options.append((key, draw(st.sampled_from(MOMENTS))))
    return Address(question.name, tuple(options))


@examples("page")
@given(address=addresses())
def test_a_page_has_the_rows_of_its_command(site: Client, capsys, address: Address) -> None:
    words = address.words(Session({"--log-dir": [str(LOGS)]}))
    capsys.readouterr()
    code = main([address.question, *words, "--output=json"])
    printed = capsys.readouterr()
    response = site.get(address.document("json"))
    if code in (1, 2):
        assert response.status_code in (400, 503)
        assert f"sharelens: {failures(response.text)[0]}" in printed.err
        return
    assert response.text == printed.out
    page = site.get(address.url)
    assert page.status_code == 200
    answer = json.loads(printed.out)
    parts = [rows for rows in answer.values() if isinstance(rows, list)] if isinstance(answer, dict) else [answer]
    table_rows = sum(text.count("<tr>") - 1 for text in re.findall(r"<table.*?</table>", page.text, re.DOTALL))
    assert table_rows >= sum(min(len(rows), 200) for rows in parts)


def test_a_page_shows_its_command_and_the_same_answer_in_other_forms(site: Client) -> None:
    html = site.get("/ask/lag?group=gd-broken").text
    assert f"sharelens lag --log-dir={LOGS} --group=gd-broken" in unescape(html)
    for ending, media_type in (("json", "application/json"), ("csv", "text/csv"), ("txt", "text/plain")):
        place = f"/ask/lag.{ending}?group=gd-broken"
        assert f'href="{place}"' in html
        document = site.get(place)
        assert document.headers["content-type"].startswith(media_type)
        assert "tasks" in document.text


def test_the_way_from_what_is_wrong_to_the_record_that_proves_it(site: Client) -> None:
    places = ["/", "/groups/gd-broken", PLACE, f"{PLACE}/7"]
    for place, following in zip(places, [*places[1:], None], strict=True):
        page = site.get(place)
        assert page.status_code == 200
        assert failures(page.text) == []
        assert following is None or f'href="{following}"' in page.text
    assert "archiving (the dead letter is not finished)" in page.text
    assert f'href="{PLACE}/6"' in page.text
    assert f'href="{PLACE}/8"' in page.text


def test_the_hour_before_a_finding_is_a_page(site: Client) -> None:
    before = re.findall(r'href="(/before/[^"]+)"', site.get("/").text)
    assert before
    page = site.get(before[0])
    assert page.status_code == 200
    assert "The hour before 2026-11-21T03:25" in page.text
    assert "unknown without __cluster_metadata: changes of settings, leaders and in-sync replicas" in page.text


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("gd-auto", "/groups/gd-auto"),
        (" gd-auto ", "/groups/gd-auto"),
    ],
)
def test_search_leads_to_the_only_page_of_a_name(site: Client, text: str, place: str) -> None:
    response = site.get("/search", params={"q": text})
    assert (response.status_code, response.headers["location"]) == (303, place)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("tasks", "/groups/gd-broken/tasks/1"),
        ("tasks:0@7", "/groups/gd-broken/tasks/0/7"),
        ("tasks-0", "/groups/gd-auto/tasks/0"),
        ("limit-burst", "/groups/gd-auto"),
        ("gd-", "/groups/gd-copy"),
    ],
)
def test_search_lists_the_pages_of_a_name(site: Client, text: str, part: str) -> None:
    response = site.get("/search", params={"q": text})
    assert response.status_code == 200
    assert f'href="{part}"' in response.text


@pytest.mark.parametrize("place", ["/", "/groups/billing", "/groups/billing/orders/0", "/ask/state"])
def test_a_cluster_that_is_away_is_said_on_each_page(workers: Workers, drawers: Workers, place: str) -> None:
    session = Session({"--bootstrap-server": ["127.0.0.1:1"]})
    response = Client(Site(workers=workers, drawers=drawers, session=session, source=session.place)).get(place)
    assert response.status_code == 503
    assert all("127.0.0.1:1: the cluster does not answer" in failure for failure in failures(response.text))


@pytest.mark.parametrize(
    ("place", "status", "words"),
    [
        ("/groups/nobody", 404, "no share group nobody in"),
        (f"{PLACE}/99999", 200, ""),
        ("/groups/gd-broken/absent/0", 404, "no topic absent in"),
        (f"{PLACE}/{'9' * 6000}", 404, "Invalid value for '--offset'"),
        (f"{PLACE}/x", 404, "Invalid value for '--offset'"),
        ("/before/gd-broken/soon", 400, "a moment is a number of milliseconds"),
        ("/ask/lag?lake=/etc", 400, "no parameter 'lake'"),
        ("/ask/lag?limit=100000", 404, "a page shows at most 5,000 rows"),
        ("/audit/no_rule", 400, "no_rule"),
        ("/ask/absent", 404, "the menu has all pages"),
        ("/ask/lag.xml", 404, "the menu has all pages"),
        ("/../../etc/passwd", 404, "the menu has all pages"),
        ("/static/..%2f..%2fsite.py", 404, ""),
        ("//evil.example/x", 404, "the menu has all pages"),
        ("/search?q=absent", 404, "nothing is named 'absent'"),
        (f"/ask/lag?group={'x' * 20_000}", 414, "at most 16,384 bytes"),
    ],
)
def test_nonsense_is_a_page_that_says_what_and_what_to_do(site: Client, place: str, status: int, words: str) -> None:
    response = site.get(place)
    assert response.status_code == status
    assert words in " ".join(failures(response.text))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_are_text_on_every_page(hostile: Client, name: str) -> None:
    pages = ["/", "/groups", path("groups", name), path("groups", name, "orders", "0"), "/search?q=o"]
    for place in pages:
        page = hostile.get(place)
        assert page.status_code == 200, place
        assert "<script>document" not in page.text
        assert "<img src=x" not in page.text
        assert "{{" not in page.text.replace("{{ 7 * 7 }}", "")
    html = hostile.get(path("groups", name)).text
    assert "\x1b" not in html
    saved = hostile.get(path("groups", name, "orders", "0"), params={"save": "on"})
    assert "\n" not in saved.headers["content-disposition"]
    assert saved.text.count("<script") == 2
    assert "<script>document" not in saved.text


def test_a_saved_page_loads_nothing_and_has_no_link(site: Client) -> None:
    saved = site.get(PLACE, params={"save": "on"})
    assert saved.headers["content-disposition"] == 'attachment; filename="tasks-0.html"'
    assert re.findall(r'(?:href|src|action)="([^"]*)"', saved.text) == ["data:,", "#content"]
    assert "default-src 'none'" in saved.text
    assert "Left off: " in saved.text
    assert len(saved.text) < 5_000_000
    rows = re.search(r'class="map-rows">(.*?)</script>', saved.text, re.DOTALL)
    assert rows is not None
    shown = site.get("/ask/moments.json?group=gd-broken&topic=tasks&partition=0")
    assert json.loads(rows[1]) == shown.json()


def test_a_question_without_what_it_needs_is_a_form(site: Client) -> None:
    html = site.get("/ask/trace").text
    assert "Fill in what the question needs." in html
    assert re.search(r'<input type="text" id="group-0" name="group" [^>]*required>', html)


def test_rules_of_the_audit_are_pages(site: Client) -> None:
    page = site.get("/audit/snapshot_epoch_skips")
    assert page.status_code == 200
    assert "what to do: " in page.text


def test_a_part_that_takes_no_moment_says_so(site: Client) -> None:
    html = site.get(PLACE, params={"as_of": MOMENTS[0]}).text
    assert html.count("Not bounded by as_of of this page.") == 1
    assert f"--as-of={MOMENTS[0]}" in unescape(html)


def test_static_files_are_those_of_the_pages(site: Client) -> None:
    html = site.get("/ask").text
    style, script = re.search(r'href="(/static/style.css[^"]*)"', html), re.search(r'src="(/static/[^"]*)"', html)
    assert style is not None
    assert script is not None
    assert site.get(style[1]).headers["content-type"].startswith("text/css")
    assert "state-map" in site.get(script[1]).text
