"""A record that can't be decoded is counted once, in quarantine, with its reason; gaps are offsets without a record."""

from pathlib import Path

import pytest

from sharelens.lake.scan import open_lake
from sharelens.questions.answers.completeness import closing_line
from sharelens.questions.status import partitions_part
from sharelens.source.request import Source
from sharelens.tables.cover import StatePartitionCover
from sharelens.tables.logs.tables import open_log_tables
from sharelens.tables.opening import open_cut
from sharelens.tables.port import Tables
from tests.logs.batch_files import state_directory
from tests.logs.state_logs import encoded_records, other, snapshot, update
from tests.processes.in_process import TO_STATE, make_lake
from tools.log_writer.writer import encode_batch, record_columns

pytestmark = pytest.mark.slow

BROKEN_KEY, UNKNOWN_VALUE, UNKNOWN_TYPE = "bad_key", "unknown_value_version", "unknown_record_type"


def sources(folder: Path, reasons: list[str | None]) -> list[Tables]:
    """A log directory, and its lake, with a record for each reason (None: one that can be decoded)."""
    batches = []
    for offset, reason in enumerate(reasons):
        record = {**update(), "damage": "value_version"} if reason == UNKNOWN_VALUE else snapshot()
        ((key, value, stamp),) = encoded_records([other(7) if reason == UNKNOWN_TYPE else record])
        if reason in (BROKEN_KEY, UNKNOWN_TYPE):
            key = key[:5]
        batches.append(encode_batch(record_columns([key], [value], [stamp]), base_offset=offset, leader_epoch=0))
    logs = state_directory(folder / "logs", batches)
    make_lake(folder / "lake", logs, stages=TO_STATE)
    return [open_log_tables(Source(log_dirs=(str(logs),))), open_cut(open_lake(folder / "lake"), None)]


def cover(tables: Tables) -> StatePartitionCover:
    (part,) = tables.cover()
    return part


@pytest.mark.parametrize("reason", [BROKEN_KEY, UNKNOWN_VALUE, UNKNOWN_TYPE])
def test_records_that_cannot_be_decoded_are_in_quarantine_and_are_no_gap(reason: str, tmp_path: Path) -> None:
    for tables in sources(tmp_path, [None, reason, reason]):
        part = cover(tables)
        (row,) = partitions_part(tables, [part]).table.to_pylist()
        assert (row["quarantined"], row["gap_offsets"], part.gaps) == (2, 0, ())
        assert [(records.reason, records.records) for records in part.undecoded] == [(reason, 2)]
        line = closing_line(tables)
        assert "gaps 0, quarantined 2," in line
        assert f"; not decoded: 2 records, {part.undecoded[0].detail}" in line


def test_a_log_without_a_decodable_record_says_so_with_the_version(tmp_path: Path) -> None:
    for tables in sources(tmp_path, [UNKNOWN_VALUE, UNKNOWN_VALUE]):
        assert "NONE of 2 records could be decoded: value version 9 is unknown (a newer Kafka?)" in closing_line(tables)


def test_offsets_without_a_record_are_gaps_beside_records_that_cannot_be_decoded(tmp_path: Path) -> None:
    tables, _ = sources(tmp_path, [None, BROKEN_KEY, None, None])
    segment = tmp_path / "logs" / "__share_group_state-0" / "00000000000000000000.log"
    size = segment.stat().st_size
    data = bytearray(segment.read_bytes())
    data[size - 1] ^= 0xFF
    segment.write_bytes(data)
    part = cover(open_log_tables(tables.origin.source))  # type: ignore[attr-defined]
    assert ([(gap.first_offset, gap.last_offset) for gap in part.gaps], part.gap_offsets) == ([(3, 3)], 1)
    assert part.quarantined == 2
