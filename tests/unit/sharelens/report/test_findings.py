"""The findings of a report in plain sentences."""

from pathlib import Path

import pytest

from sharelens.report.findings import findings
from tests.report_pages import gathered, pinned_log

pytestmark = pytest.mark.slow

GROUPS = ("a", "b", "c", "d", "e", "f")


@pytest.mark.parametrize(("count", "remainder_texts"), [(4, []), (5, ["1 more group"]), (6, ["2 more groups"])])
def test_the_worst_of_a_kind_are_shown_and_the_others_counted(
    tmp_path: Path, count: int, remainder_texts: list[str]
) -> None:
    content = gathered(pinned_log(tmp_path, GROUPS[:count]))
    shown = findings(content, {}, lambda question, words: " ".join([question, *words]))
    rest = " of the same kind: records_archived."
    assert [finding.text.removesuffix(rest) for finding in shown if finding.text.endswith(rest)] == remainder_texts
    archived = [finding for finding in shown if "archived 1 record since" in finding.text]
    assert [finding.command for finding in archived] == [f"poison --group={group}" for group in GROUPS[:4]]


def test_they_are_those_of_the_overview(tmp_path: Path) -> None:
    content = gathered(pinned_log(tmp_path, GROUPS[:2]))
    rows = content.verdict.findings
    shown = findings(content, {}, lambda question, words: question)
    texts = [row.text if row.remedy is None else f"{row.text}: {row.remedy}" for row in rows]
    assert sorted(finding.text for finding in shown) == sorted(
        f"{text}." if row.group_id is None else f"{row.group_id}: {text}."
        for row, text in zip(rows, texts, strict=True)
    )
    assert {finding.weight.value for finding in shown if "stands still" in finding.text} == {"wrong"}
