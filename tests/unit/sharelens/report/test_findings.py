"""The findings of a report in plain sentences."""

from pathlib import Path

import pytest

from sharelens.report.findings import findings
from tests.report_pages import gathered, pinned_log

GROUPS = ("a", "b", "c", "d", "e", "f")


@pytest.mark.slow
@pytest.mark.parametrize(("count", "more"), [(4, []), (5, ["1 more group"]), (6, ["2 more groups"])])
def test_the_worst_of_a_kind_are_told_and_the_others_counted(tmp_path: Path, count: int, more: list[str]) -> None:
    content = gathered(pinned_log(tmp_path, GROUPS[:count]))
    texts = [finding.text for finding in findings(content, {})]
    assert [text.removesuffix(" archived records.") for text in texts if text.endswith("archived records.")] == more
    assert len([text for text in texts if text.endswith("archived 1 record.")]) == 4
