"""Gaps of the state log as entries of a timeline."""

from pathlib import Path
from typing import Any

from sharelens.evidence.as_of import LogPrefix
from sharelens.questions.timelines.gap_entries import gap_entries
from sharelens.source.request import Source
from sharelens.tables.logs.tables import open_log_tables
from sharelens.tables.reading import read_places
from sharelens.tables.where import Keys
from tests.logs.state_logs import START_MS, snapshot, update, write_log_directory

LENGTH_AT, HEAD = 8, 12
STORY = [
    snapshot(start=0),
    snapshot("other", start=0),
    update(start=0, batches=[(0, 4, 2, 1)], at_ms=START_MS + 1000),
    update(start=5, batches=[(5, 6, 2, 1)], at_ms=START_MS + 2000),
    update(start=7, batches=[(7, 8, 2, 1)], at_ms=START_MS + 3000),
]


def damaged_logs(directory: Path, *broken: int) -> str:
    """A log in whose batches with these numbers a byte is wrong."""
    logs = write_log_directory(directory / "logs", STORY)
    (segment,) = (logs / "__share_group_state-0").glob("*.log")
    content = bytearray(segment.read_bytes())
    starts = [0]
    while starts[-1] < len(content):
        starts.append(starts[-1] + int.from_bytes(content[starts[-1] + LENGTH_AT :][:4], "big") + HEAD)
    for number in broken:
        content[starts[number + 1] - 1] ^= 0xFF
    segment.write_bytes(content)
    return str(logs)


def gaps_of(logs: str, cut: LogPrefix | None = None) -> list[dict[str, Any]]:
    with open_log_tables(Source(log_dirs=(logs,))) as evidence:
        return list(gap_entries(evidence, read_places(evidence, Keys()), cut or LogPrefix()))


def test_each_group_has_an_entry_with_the_record_behind_the_gap(tmp_path: Path) -> None:
    gaps = gaps_of(damaged_logs(tmp_path, 2))
    assert [(row["group_id"], row["log_offset"], row["at_ms"]) for row in gaps] == [
        ("g", 3, START_MS + 2000),
        ("other", 3, START_MS + 2000),
    ]
    assert {row["text"] for row in gaps} == {"1 offset of the state log missing: quarantined"}


def test_a_gap_behind_the_cut_or_with_no_record_behind_it_has_no_entry(tmp_path: Path) -> None:
    logs = damaged_logs(tmp_path, 2)
    assert gaps_of(logs, LogPrefix(at_offsets={0: 1})) == []
    assert len(gaps_of(logs, LogPrefix(at_offsets={0: 3}))) == 2
    assert gaps_of(damaged_logs(tmp_path / "last", 4)) == []


def test_a_whole_log_has_none(tmp_path: Path) -> None:
    assert gaps_of(damaged_logs(tmp_path)) == []
