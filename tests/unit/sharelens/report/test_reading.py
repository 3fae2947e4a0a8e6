"""A report streams the histories: how these are cut changes nothing on the page, and few rows stay in memory."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bench.generate import generate
from jobs.replay import stage as replay_stage
from sharelens.findings.group_rows import sums_of_groups
from sharelens.lake import bounded_scan
from sharelens.measures.lag_over_time import RowsAtMoments
from sharelens.measures.latency.tallies import By
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.answers.measured import scope
from sharelens.questions.latency import attempts
from sharelens.report import lag_lines
from sharelens.report.gather import MOMENTS
from sharelens.report.reading import CODES
from sharelens.source.request import CutChoice, Source
from sharelens.tables import opening
from sharelens.tables.lakes import tables as lake_evidence
from sharelens.tables.lakes.rows import LakeRows
from sharelens.tables.logs.tables import LogTables
from sharelens.tables.where import Span
from tests.datasets import dataset
from tests.depths import in_soak
from tests.once import made_once
from tests.processes.in_process import make_lake, recorded_lake
from tests.report_pages import gathered, leave_charts_undrawn, page, pinned_log
from tests.whole_scans import refuse_whole_scans

GROUPS = ("f", "e", "d", "c", "b", "a")
RECORDS, SHARE_PARTITIONS = 20_000, 2
READ_ROWS = 1_000


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize("summed", [0, *in_soak(400)])
def test_however_the_histories_are_cut_the_page_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, summed: int
) -> None:
    source = pinned_log(tmp_path, GROUPS)
    monkeypatch.setattr(lag_lines, "SHARE_PARTITIONS_SUMMED", summed)
    leave_charts_undrawn(monkeypatch)
    full_page = page(source)
    monkeypatch.setattr(LogTables, "part_records", 1)
    refuse_whole_scans(monkeypatch, LogTables)
    assert page(source) == full_page


@pytest.mark.soak
@pytest.mark.slow
def test_the_worst_share_partitions_are_drawn_whatever_part_they_come_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LogTables, "part_records", 1)
    gathered_rows = gathered(pinned_log(tmp_path, GROUPS))
    assert [drawn.key[0] for drawn in gathered_rows.pictures.maps] == ["a", "b", "c"]
    assert {(drawn.low, drawn.high) for drawn in gathered_rows.pictures.maps} == {(0, 21)}


def long_lake() -> Path:
    """A lake with two share partitions of 10,000 records."""

    def make(folder: Path) -> None:
        generate(folder / "logs", shape="hot", records=RECORDS, share_partition_count=SHARE_PARTITIONS)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(replay_stage, "TOGETHER_BYTES", 0)  # long share partitions do not share a row group
            make_lake(folder / "lake", folder / "logs")

    return made_once("lakes/two-long-share-partitions", make) / "lake"


@pytest.fixture
def tables_read(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[str, ...], int]]:
    """Name, columns and number of rows of each table that the evidence reads; it reads few rows at once."""
    read: list[tuple[str, tuple[str, ...], int]] = []

    def counted(method: str) -> None:
        plain = getattr(LakeRows, method)

        def stream(self: LakeRows, table: str, *arguments: Any) -> Iterator[pa.Table]:
            for rows in plain(self, table, *arguments):
                read.append((table, tuple(rows.column_names), rows.num_rows))
                yield rows

        monkeypatch.setattr(LakeRows, method, stream)

    counted("stream")
    counted("in_log_order")
    for name in ("READ_ROWS", "TABLE_ROWS", "BATCH_ROWS"):
        monkeypatch.setattr(bounded_scan, name, READ_ROWS)
    monkeypatch.setitem(bounded_scan._BOUNDED, "batch_size", READ_ROWS)
    return read


@pytest.mark.slow
def test_a_report_holds_few_rows_of_a_long_share_partition(
    tables_read: list[tuple[str, tuple[str, ...], int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    row_counts: list[int] = []
    plain = RowsAtMoments.table

    def counted(self: RowsAtMoments) -> pa.Table:
        rows = plain(self)
        row_counts.append(rows.num_rows)
        return rows

    monkeypatch.setattr(RowsAtMoments, "table", counted)
    content = gathered(Source(lake=str(long_lake())))
    max_rows_by_table: dict[str, int] = {}
    for table, _, rows in tables_read:
        max_rows_by_table[table] = max(rows, max_rows_by_table.get(table, 0))
    assert sum(rows for table, _, rows in tables_read if table == lake_evidence.DELIVERIES) > 10 * READ_ROWS
    row_group = 1.1 * RECORDS / SHARE_PARTITIONS  # what is read in log order comes by whole row groups
    assert max_rows_by_table.pop(lake_evidence.HISTORY) <= row_group
    assert max(max_rows_by_table.values()) <= 2 * READ_ROWS
    assert max(row_counts) <= MOMENTS * SHARE_PARTITIONS
    assert len(content.pictures.maps) == SHARE_PARTITIONS
    assert all(drawn.deliveries.num_rows < RECORDS // 4 for drawn in content.pictures.maps)


@pytest.mark.slow
def test_a_report_reads_the_histories_once_and_only_columns_that_it_shows(
    tables_read: list[tuple[str, tuple[str, ...], int]],
) -> None:
    content = gathered(Source(lake=str(long_lake())))
    assert content.pictures.outcomes
    rows = [count for table, _, count in tables_read if table == lake_evidence.HISTORY]
    assert sum(rows) == RECORDS
    wide = [
        columns for table, columns, _ in tables_read if table == lake_evidence.DELIVERIES and "end_reason" in columns
    ]
    assert len(wide) <= len(content.traced)


@pytest.mark.slow
def test_share_partitions_and_their_topics_are_known_without_the_histories(
    tables_read: list[tuple[str, tuple[str, ...], int]],
) -> None:
    with opening.open_evidence(Source(lake=str(long_lake()))) as evidence:
        scoped = scope(evidence, KeyFilter(), CutChoice())
    assert scoped.places.num_rows == SHARE_PARTITIONS
    assert sum(scoped.places.column("records").to_pylist()) == pytest.approx(RECORDS, rel=0.01)
    assert lake_evidence.HISTORY not in {table for table, _, _ in tables_read}


@pytest.mark.soak
@pytest.mark.slow
def test_the_charts_of_a_lake_and_of_its_log_are_the_same() -> None:
    lake = long_lake()
    of_lake, of_log = (
        page(source) for source in (Source(lake=str(lake)), Source(log_dirs=(str(lake.parent / "logs"),)))
    )
    assert [line for line in of_lake.splitlines() if "<path" in line] == [
        line for line in of_log.splitlines() if "<path" in line
    ]


@pytest.mark.one_in(2)
@pytest.mark.slow
@pytest.mark.parametrize("source", ["lake", "log"])
def test_delivery_counts_are_those_of_attempts_without_offsets_that_hold_no_record(source: str) -> None:
    name = "transactions"
    log = Source(log_dirs=(str(dataset(name) / "logs"),))
    where = Source(lake=str(recorded_lake(name))) if source == "lake" else log
    with opening.open_evidence(where) as evidence:
        rows = attempts(evidence, KeyFilter(), CutChoice(), Span(), By(partition=False, hour=False)).table.to_pylist()
    settled: dict[tuple[int, int], int] = {}
    for row in rows:
        if row["outcome"] in CODES:
            cell = CODES[row["outcome"]], row["delivery_count"]
            settled[cell] = settled.get(cell, 0) + row["offsets"]
    assert gathered(where).pictures.outcomes == settled
    assert settled[CODES["archived"], 1] < 100  # with control records it would be 322


@pytest.mark.slow
def test_the_groups_with_a_lag_are_drawn_before_finished_ones_with_more_in_the_past() -> None:
    later = CutChoice(now_ms=1_795_317_959_212)  # the groups have been without members for a day
    content = gathered(Source(log_dirs=(str(dataset("dlq") / "logs"),)), cut=later)
    lags = {row["group_id"]: row["size"] for row in sums_of_groups(content.answers["lag"].table, "lag")}
    largest = sorted(lags, key=lambda group: -lags[group])
    assert len(largest) == 2
    assert [drawn.key[0] for drawn in content.pictures.maps][:2] == largest
    assert content.pictures.lag is not None
    assert [line for line, _ in content.pictures.lag.lines][:2] == largest
    assert {row["group_id"] for row in content.answers["poison"].table.slice(0, 10).to_pylist()} <= set(largest)


@pytest.mark.slow
def test_the_known_part_of_a_lag_has_points_where_another_part_is_unknown() -> None:
    content = gathered(Source(log_dirs=(str(dataset("dlq") / "logs"),)))
    assert content.pictures.lag is not None
    points = [point for _, line in content.pictures.lag.lines for point in line]
    assert any(point.is_part and point.lag for point in points)
    assert any(point.lag is not None and not point.is_part for point in points)
