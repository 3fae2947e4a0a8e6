"""High watermarks of a dead broker: what lies at or above them is counted, and the evidence is what was taken."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from sharelens.lake.scan import open_lake
from sharelens.questions.answers.completeness import evidence_line
from sharelens.questions.status import lake_status, log_status
from sharelens.source.request import Source
from sharelens.tables.cover import StatePartitionCover
from sharelens.tables.logs.tables import open_log_tables
from sharelens.tables.opening import open_cut
from sharelens.tables.reading import read_states
from sharelens.tables.where import Keys
from tests.logs.batch_files import broken, state_batches, write_batches
from tests.logs.state_logs import START_MS, STATE_TOPIC, STATE_TOPIC_ID, snapshot, update
from tests.processes.in_process import TO_STATE, make_lake
from tools.log_writer.writer import write_checkpoints

pytestmark = pytest.mark.slow

BASE = 5
"""The log start offset: Kafka has pruned what lay below."""
RECORDS = [snapshot(), *(update(batches=[(n, n, 2, 1)], at_ms=START_MS + n) for n in range(7))]
END = BASE + len(RECORDS)


def write_logs(folder: Path, high_watermark: int | None, damaged: Sequence[int] = ()) -> Path:
    """State partition 0 with the records from BASE on, and an empty state partition 1; None: no line for them."""
    batches = state_batches(RECORDS, first_offset=BASE)
    chosen = [broken(batch) if number in damaged else batch for number, batch in enumerate(batches)]
    write_batches(folder / f"{STATE_TOPIC}-0", chosen)
    without_records = folder / f"{STATE_TOPIC}-1"
    without_records.mkdir()
    (without_records / "partition.metadata").write_text(f"version: 0\ntopic_id: {STATE_TOPIC_ID}", encoding="ascii")
    marks = {} if high_watermark is None else {(STATE_TOPIC, 0): high_watermark}
    write_checkpoints(folder, high_watermarks=marks)
    return folder


def covers(folder: Path, *, include_uncommitted: bool = False) -> list[Sequence[StatePartitionCover]]:
    """The evidence by a lake and by the log directory."""
    lake = folder.with_name("lake")
    make_lake(lake, folder, include_uncommitted=include_uncommitted, stages=TO_STATE)
    source = Source(log_dirs=(str(folder),), include_uncommitted=include_uncommitted)
    return [open_cut(open_lake(lake), None).cover(), open_log_tables(source).cover()]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("high_watermark", [None, 0, 3, BASE, BASE + 1, END - 1, END, END + 4])
def test_what_lies_at_or_above_the_high_watermark_is_counted(high_watermark: int | None, tmp_path: Path) -> None:
    committed_end = min(END, max(BASE, high_watermark or 0))
    for (part,) in covers(write_logs(tmp_path / "logs", high_watermark)):
        assert (part.first_offset, part.end_offset_exclusive) == (BASE, committed_end)
        assert (part.held_back, part.uncommitted) == (END - committed_end, 0)
        assert (part.first_ms is None) == (committed_end == BASE)


def test_status_says_how_held_back_records_are_taken(tmp_path: Path) -> None:
    logs = write_logs(tmp_path / "logs", BASE + 3)
    make_lake(tmp_path / "lake", logs, stages=TO_STATE)
    reports = [
        lake_status(open_lake(tmp_path / "lake"), None),
        log_status(open_log_tables(Source(log_dirs=(str(logs),)))),
    ]
    for report in reports:
        (line,) = [warning for warning in report.warnings if "held back" in warning]
        assert line.startswith("5 offsets of the state log at or above the high watermark are held back")
        assert "--include-uncommitted" in line
    dead_broker = open_log_tables(Source(log_dirs=(str(logs),), include_uncommitted=True))
    assert not any("held back" in warning for warning in log_status(dead_broker).warnings)


@pytest.mark.parametrize("high_watermark", [0, BASE + 3])
def test_uncommitted_records_that_were_taken_are_the_evidence_and_flagged(high_watermark: int, tmp_path: Path) -> None:
    committed_end = max(BASE, high_watermark)
    for cover in covers(write_logs(tmp_path / "logs", high_watermark), include_uncommitted=True):
        (part,) = cover
        assert (part.first_offset, part.end_offset_exclusive, part.held_back) == (BASE, END, 0)
        assert part.uncommitted == END - committed_end
        assert f"held back 0, uncommitted {END - committed_end}" in evidence_line(cover)
        assert (part.first_ms, part.last_ms) == (START_MS, START_MS + 6)


def test_a_later_run_takes_what_was_held_back(tmp_path: Path) -> None:
    logs = write_logs(tmp_path / "logs", 0)
    make_lake(tmp_path / "lake", logs, stages=TO_STATE)
    assert read_states(open_cut(open_lake(tmp_path / "lake"), None), Keys()).num_rows == 0
    for cover in covers(logs, include_uncommitted=True):
        assert [(part.end_offset_exclusive, part.first_ms, part.last_ms) for part in cover] == [
            (END, START_MS, START_MS + 6)
        ]
    (state,) = read_states(open_cut(open_lake(tmp_path / "lake"), None), Keys()).to_pylist()
    assert (state["log_offset"], state["completeness"]) == (END - 1, "uncommitted")


def test_a_log_of_which_no_batch_can_be_read_is_in_the_evidence(tmp_path: Path) -> None:
    logs = write_logs(tmp_path / "logs", END, damaged=range(len(RECORDS)))
    for (part,) in covers(logs):
        assert (part.first_offset, part.end_offset_exclusive, part.first_ms) == (BASE, END, None)
        assert part.quarantined > 0
        assert part.losses
