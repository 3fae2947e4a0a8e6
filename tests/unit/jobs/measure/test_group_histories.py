"""The histories of share groups in a lake: computed once for each group with news, in any number of runs."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from jobs.measure.group_histories import TABLE_OF
from sharelens.groups.histories import histories
from sharelens.lake.lake import Lake
from sharelens.lake.scan import open_lake
from sharelens.tables.lakes.tables import LakeTables
from sharelens.tables.reading import read_group_records
from tests.datasets import dataset
from tests.lakes import content, differences
from tests.logs.group_files import GroupEntry, epoch, write_group_partition
from tests.logs.state_logs import snapshot
from tests.processes.in_process import TO_MEASURES, make_lake, recorded_lake, story_lake

pytestmark = pytest.mark.slow

SCENARIO = "timeouts"
TABLES = tuple(TABLE_OF.values())


def newest_ms(lake: Path, group: str) -> int:
    rows = open_lake(lake).scan("silver.group_record", ["timestamp_ms"], pc.field("group_id") == group)
    return int(pc.max(rows.column("timestamp_ms")).as_py())


@pytest.mark.parametrize("scenario", [SCENARIO, "streams"])
def test_tables_have_the_histories_of_the_records(scenario: str) -> None:
    lake = open_lake(recorded_lake(scenario))
    expected = histories(read_group_records(LakeTables(lake, None)))
    for field, table in TABLE_OF.items():
        rows: pa.Table = getattr(expected, field)
        order = [(name, "ascending") for name in lake.scan(table).column_names if name in ("group_id", "log_partition")]
        order += [("valid_from_log_offset", "ascending")]
        order += [
            (name, "ascending")
            for name in ("member_id", "topic_id", "subtopology_id", "partition", "status", "task_type")
            if name in rows.column_names
        ]
        assert rows.num_rows or (scenario, field) == (SCENARIO, "tasks")
        assert lake.scan(table, rows.column_names).sort_by(order).equals(rows.sort_by(order))


@pytest.mark.soak
def test_runs_add_up_to_one_and_leave_groups_without_news_alone(tmp_path: Path) -> None:
    one_run_lake, step, logs = recorded_lake(SCENARIO), tmp_path / "step", dataset(SCENARIO) / "logs"
    last_ms = {group: newest_ms(one_run_lake, group) for group in groups_of(one_run_lake)}
    first_to_end = min(last_ms, key=lambda group: last_ms[group])
    make_lake(step, logs, until_ms=last_ms[first_to_end] + 1, stages=TO_MEASURES)
    versions = {table: Lake(step).version(table) for table in TABLES}
    make_lake(step, logs, stages=TO_MEASURES)
    assert not differences(content(step, TABLES), content(one_run_lake, TABLES))
    rows = open_lake(step).scan("gold.group_history", ["group_id", "run_id"])
    assert set(rows.filter(pc.field("group_id") == first_to_end).column("run_id").to_pylist()) == {1}
    assert set(rows.column("run_id").to_pylist()) == {1, 2}
    assert {table: Lake(step).version(table) for table in TABLES} == {
        table: version + (open_lake(step).scan(table).num_rows > 0) for table, version in versions.items()
    }
    for stage, run in (("decode", 3), ("measure", 4)):
        make_lake(step, rebuild=stage, stages=TO_MEASURES)
        assert not differences(content(step, TABLES), content(one_run_lake, TABLES))
        assert set(open_lake(step).scan("gold.group_history").column("run_id").to_pylist()) == {run}


def groups_of(lake: Path) -> list[str]:
    rows = open_lake(lake).scan("gold.group_history", ["group_id"])
    return sorted(set(rows.column("group_id").to_pylist()))


@pytest.mark.soak
def test_groups_of_an_earlier_topic_alone_have_no_history(tmp_path: Path) -> None:
    earlier, again, lake = tmp_path / "earlier", tmp_path / "again", tmp_path / "lake"
    for folder, groups, time_ms, topic_options in (
        (earlier, ("g", "gone"), 1_000, {}),
        (again, ("g", "new"), 2_000, {"topic_id": "BBBBBBBBBBBBBBBBBBBBBg"}),
    ):
        folder.mkdir()
        write_group_partition(folder, [GroupEntry(time_ms, 11, epoch(1), group) for group in groups], **topic_options)
    for logs in (earlier, again):
        make_lake(lake, logs, stages=TO_MEASURES)
    make_lake(tmp_path / "whole", earlier, again, stages=TO_MEASURES)
    assert groups_of(lake) == ["g", "new"]
    assert not differences(content(lake, TABLES), content(tmp_path / "whole", TABLES))


def test_rows_of_a_log_that_lacks_records_since_are_incomplete(tmp_path: Path) -> None:
    entries = [GroupEntry(1_000 + number, 11, epoch(number), f"g{number}") for number in range(4)]
    folders = {name: tmp_path / name for name in ("whole", "begun", "lacking")}
    for folder in folders.values():
        folder.mkdir()
    write_group_partition(folders["whole"], entries)
    write_group_partition(folders["begun"], entries[:2])
    write_group_partition(folders["lacking"], entries, lacking=[2])
    for name, runs in (("whole", ["begun", "whole"]), ("lacking", ["begun", "lacking"]), ("at once", ["lacking"])):
        for run in runs:
            make_lake(tmp_path / f"lake of {name}", folders[run], stages=TO_MEASURES)
    rows = open_lake(tmp_path / "lake of whole").scan("gold.group_history", ["completeness"])
    assert rows.column("completeness").to_pylist() == ["complete"] * 4
    rows = open_lake(tmp_path / "lake of lacking").scan("gold.group_history", ["group_id", "completeness_reason"])
    assert sorted(map(tuple, rows.to_pandas().values)) == [(name, "compacted") for name in ("g0", "g1", "g3")]
    assert not differences(*(content(tmp_path / f"lake of {name}", TABLES) for name in ("lacking", "at once")))


def test_a_lake_without_group_records_commits_nothing() -> None:
    lake = Lake(story_lake("no group records", [snapshot("g")]))
    assert [lake.version(table) for table in TABLES] == [0] * len(TABLES)
