"""Pages of a lake's tables: the list, the columns of a table with their comments, and its first rows."""

import html
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from sharelens.cli import main
from sharelens.lake.tables import TABLES
from sharelens.pages.address import Session
from sharelens.pages.site import Site
from sharelens.pages.workers import Workers
from tests.processes.in_process import recorded_lake
from tests.requests_of_pages import Client

pytestmark = pytest.mark.slow
NAME = "gold.share_partition_state"


@pytest.fixture(scope="module")
def site(workers: Workers, drawers: Workers) -> Client:
    session = Session({"--lake": [str(recorded_lake("dlq"))]})
    return Client(Site(workers=workers, drawers=drawers, session=session, source=session.place))


def cells(page: str) -> list[str]:
    return [html.unescape(re.sub("<[^>]+>", "", text)) for text in re.findall(r"<td[^>]*>(.*?)</td>", page, re.DOTALL)]


def test_the_list_leads_to_each_table(site: Client) -> None:
    page = site.get("/tables")
    assert page.status_code == 200
    links = re.findall(r'href="/tables/([^"]+)"', page.text)
    assert links == list(TABLES)
    assert all(site.get(f"/tables/{name}").status_code == 200 for name in (links[0], links[-1]))


def test_a_table_has_its_columns_with_comments_and_the_rows_of_its_command(site: Client, capsys) -> None:
    page = site.get(f"/tables/{NAME}").text
    shown = cells(page)
    for field in TABLES[NAME].schema:
        assert field.name in shown
        assert (field.metadata or {})[b"comment"].decode() in shown
    *_, query = [html.unescape(line) for line in re.findall(r'<code class="line"[^>]*>([^<]+)</code>', page)]
    assert main([*shlex.split(query)[1:], "--output", "csv"]) == 0
    rows = capsys.readouterr().out.splitlines()[1:]
    assert 0 < len(rows) <= 20
    for row in rows:
        assert row.split(",")[1] in shown


def test_unknown_tables_and_sources_without_tables_say_what_to_do(
    site: Client, site_of: Callable[[Path], Client], tmp_path: Path
) -> None:
    unknown = site.get("/tables/gold.nothing")
    assert (unknown.status_code, "no table gold.nothing; tables: bronze." in unknown.text) == (400, True)
    of_logs = site_of(tmp_path).get("/tables")
    assert (of_logs.status_code, "sharelens run --lake DIR" in of_logs.text) == (404, True)
