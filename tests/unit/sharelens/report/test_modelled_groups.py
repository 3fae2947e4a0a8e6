"""The sections of consumer and streams groups: owners as a picture, rebalances, times of not being ready."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from sharelens.parameters.filters import KeyFilter
from sharelens.report.model import Section
from sharelens.report.model_digest import ModelDigest, consumer_digest, streams_digest
from sharelens.report.modelled_groups import consumer_sections, streams_sections
from sharelens.source.request import CutChoice, Source
from sharelens.tables.opening import open_evidence
from sharelens.tables.where import Span
from tests.datasets import dataset
from tests.logs.consumer_logs import REMOVED_B, SCALED_OUT, entries
from tests.logs.group_files import write_group_partition
from tests.logs.state_logs import ORDERS_ID
from tests.report_pages import gathered, page, sheet_rows

pytestmark = pytest.mark.slow


def digest_of(name: str, *groups: str, until_ms: int | None = None) -> ModelDigest:
    source = Source(log_dirs=(str(dataset(name) / "logs"),), needs_state_log=False)
    with open_evidence(source) as evidence:
        return streams_digest(evidence, frozenset(groups) or None, until_ms, Span())


def sections_of(name: str, *groups: str) -> Sequence[Section]:
    key_filter = KeyFilter(groups=frozenset(groups)) if groups else KeyFilter()
    report = gathered(Source(log_dirs=(str(dataset(name) / "logs"),), needs_state_log=False), key_filter=key_filter)
    return streams_sections(report.streams, report.answers["streams_groups"], command)


def command(group: str) -> str:
    return f"sharelens rebalances --group={group}"


def test_a_picture_has_a_row_a_task_and_a_colour_a_member() -> None:
    (section,) = sections_of("streams-basic", "app-wc")
    (picture,) = section.figures
    for task in (f"{subtopology}_{partition}" for subtopology in "01" for partition in range(5)):
        assert f">{task}</text>" in picture.drawing.wide
        assert f"task {task}: " in picture.drawing.wide
    assert len(picture.key) == 8  # of eleven members: the colours come again
    assert "Further members have the same colours again" in picture.text
    assert picture.key[0] == ("line-0", "app-wc-1-StreamThread-1-consumer(CYlzRCBgSDCwNHER-1J_ig)")


def test_rebalances_and_states_are_tables() -> None:
    (section,) = sections_of("streams-basic")
    groups, *rebalances, _ = [sheet_rows(sheet) for sheet in section.sheets]
    assert {row["Group"] for row in groups} == {"app-plain", "app-wc"}
    assert {row["State"] for row in groups} == {"EMPTY"}
    assert len(rebalances[0]) > len(rebalances[1]) > 0
    assert sum(map(len, rebalances)) > 25
    assert section.sheets[1].command == "sharelens rebalances --group=app-wc"
    newest = rebalances[0][0]
    assert (newest["Group"], newest["Group epoch"], newest["Removed"].count(",")) == ("app-wc", "26", 0)


def test_a_group_without_its_topics_is_not_ready_with_the_reason() -> None:
    (section,) = sections_of("streams-topology")
    (sheet,) = [sheet for sheet in section.sheets if sheet.name == "streams-not-ready"]
    reasons = {row["Reason"] for row in sheet_rows(sheet)}
    assert "topics of the topology are missing or have other partition counts" in reasons
    assert all(text.startswith(("topics of", "no topology", "the topology of epoch ")) for text in reasons)


def test_nothing_after_the_moment_counts() -> None:
    full_digest = digest_of("streams-basic", "app-wc")
    middle_ms = (full_digest.from_ms + full_digest.to_ms) // 2
    until = digest_of("streams-basic", "app-wc", until_ms=middle_ms)
    assert until.to_ms <= middle_ms
    assert 0 < until.rebalances.num_rows < full_digest.rebalances.num_rows


def test_the_report_has_the_section_beside_share_groups_and_not_among_them() -> None:
    html = page(Source(log_dirs=(str(dataset("streams") / "logs"),)))
    assert 'id="streams"' in html
    share_groups = html.split('id="groups"')[1].split("</section>")[0]
    assert "wc-app" not in share_groups
    assert "wc-app" in html.split('id="streams"')[1].split("</section>")[0]


def test_the_log_of_the_group_coordinator_alone_makes_a_report_about_streams_groups() -> None:
    source = Source(log_dirs=(str(dataset("streams-topology") / "logs"),), takes_group_log=True)
    html = page(source, cut=CutChoice(as_of_ms=1795382981823), min_duration_ms=0)
    assert "<title>Streams groups" in html
    assert "app-miss: not ready since 21:29:41" in html
    assert 'href="#streams"' in html
    assert not {
        section for section in ("groups", "lag", "maps", "stalls", "poison") if f'<section id="{section}"' in html
    }
    assert "dead letters" not in html
    assert "2026-11-22 21:28:11 – 2026-11-22 21:29:41 UTC" in html


def test_a_report_can_be_about_one_streams_group() -> None:
    source = Source(log_dirs=(str(dataset("streams-basic") / "logs"),), takes_group_log=True)
    html = page(source, key_filter=KeyFilter(groups=frozenset({"app-plain"})))
    assert "app-plain-1-StreamThread-1-consumer" in html
    assert "app-wc" not in html


def test_without_a_streams_group_there_is_no_section() -> None:
    assert sections_of("timeouts") == ()


def test_consumer_groups_have_owners_of_partitions_and_rebalances() -> None:
    source = Source(log_dirs=(str(dataset("admin") / "logs"),))
    report = gathered(source)
    (section,) = consumer_sections(report.consumers, report.answers["consumer_groups"], command)
    assert (section.name, section.title) == ("consumer", "Consumer groups")
    assert any("sharelens overview --all-groups" in text for text in section.paragraphs)
    assert [figure.name for figure in section.figures] == ["consumer-owners-1", "consumer-owners-2"]
    for figure in section.figures:
        for place in ("alpha-0", "alpha-1", "alpha-2", "beta-0", "beta-1"):
            assert f">{place}</text>" in figure.drawing.wide
            assert f"partition {place}: " in figure.drawing.wide
    groups, *rebalances = [sheet_rows(sheet) for sheet in section.sheets]
    assert {row["Group"] for row in groups} == {"consumer-app", "regex-app"}
    assert [[row["Group epoch"] for row in rows] for rows in rebalances] == [["3", "2"], ["3", "2"]]
    assert report.other_groups_alone is None
    assert "Consumer groups" in page(source)


def test_a_partition_has_a_bar_for_the_whole_time_of_its_owner(tmp_path: Path) -> None:
    write_group_partition(tmp_path, entries((*SCALED_OUT, *REMOVED_B)))
    with open_evidence(Source(log_dirs=(str(tmp_path),), include_uncommitted=True, needs_state_log=False)) as evidence:
        digest = consumer_digest(evidence, None, None, Span())
    rows = [
        (row["partition"], row["member_id"], row["valid_from_ms"], row["valid_to_ms"])
        for row in digest.owned.to_pylist()
    ]
    assert sorted(rows, key=repr) == [(0, "a", 104, None), (1, "a", 104, 112), (1, "b", 113, 114)]
    assert set(digest.owned.column("part").to_pylist()) == {ORDERS_ID}
