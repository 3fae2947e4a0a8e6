"""A report goes through the histories in parts; how these are cut changes nothing on the page."""

from pathlib import Path

import pytest

from sharelens.questions import measured
from sharelens.questions.log_evidence import LogEvidence
from sharelens.report import lag_lines
from tests.report_pages import gathered, page, pinned_log

GROUPS = ("f", "e", "d", "c", "b", "a")


@pytest.mark.slow
@pytest.mark.parametrize("summed", [400, 0])
def test_however_the_histories_are_cut_the_page_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, summed: int
) -> None:
    source = pinned_log(tmp_path, GROUPS)
    monkeypatch.setattr(lag_lines, "SHARE_PARTITIONS_SUMMED", summed)
    whole = page(source)
    monkeypatch.setattr(measured, "PART_ROWS", 1)
    for name in ("history", "deliveries"):
        monkeypatch.delattr(LogEvidence, name)
    assert page(source) == whole


def test_the_worst_share_partitions_are_drawn_whatever_part_they_come_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measured, "PART_ROWS", 1)
    found = gathered(pinned_log(tmp_path, GROUPS))
    assert [drawn.key[0] for drawn in found.drawn] == ["a", "b", "c"]
    assert {(drawn.low, drawn.high) for drawn in found.drawn} == {(0, 21)}
