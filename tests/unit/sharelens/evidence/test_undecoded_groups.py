"""Consumer groups of lakes that versions decoded which did not know them: unknown until they are decoded again."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from jobs.upkeep.upgrade import UpgradeOptions, upgrade
from jobs.upkeep.upgrade_plan import Kind, derived_from, look
from sharelens.evidence.undecoded_groups import CONSUMER_TYPES
from sharelens.groups.schemas import CONSUMER_MEMBER_VALUES
from sharelens.lake.commit import create_tables
from sharelens.lake.lake import Lake
from sharelens.lake.scan import open_lake
from sharelens.lake.tables import TABLES
from sharelens.questions.groups.describe import describe
from sharelens.questions.groups.groups import groups
from sharelens.tables.known_groups import undecoded_groups
from sharelens.tables.lakes.tables import LakeTables
from state_model.errors import SharelensError
from state_model.group_schemas import TABLE_TYPES
from tests.lakes import content, differences
from tests.logs.consumer_logs import REMOVED_B, SCALED_OUT, entries
from tests.logs.group_files import GroupEntry, epoch, write_group_partition
from tests.processes.in_process import ANY_SIZE, TO_MEASURES, make_lake, no_session

pytestmark = pytest.mark.slow

TABLES_WITH_GROUPS = ("silver.group_record", "gold.group_history", "gold.member_history")
OTHER_GROUP = GroupEntry(50, 11, epoch(1), "share")


def logs_in(folder: Path, count: int) -> Path:
    """A log directory with a share group and the first records of a consumer group."""
    folder.mkdir()
    records = entries((*SCALED_OUT, *REMOVED_B))
    write_group_partition(folder, [OTHER_GROUP, *records][:count])
    return folder


@pytest.fixture
def logs(tmp_path: Path) -> tuple[Path, Path]:
    """The logs of a first run, and of a second one with more records."""
    return logs_in(tmp_path / "begun", 8), logs_in(tmp_path / "whole", 1 << 10)


@pytest.fixture
def older_lake(tmp_path: Path, logs: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lake that an older version wrote: without later columns, and without records of consumer groups."""
    lake = tmp_path / "lake"
    later = {column.name for column in CONSUMER_MEMBER_VALUES} | {"regular_expression"}
    with monkeypatch.context() as patch:
        for name in TABLES_WITH_GROUPS:
            columns = [column for column in TABLES[name].schema if column.name not in later]
            patch.setitem(TABLES, name, replace(TABLES[name], schema=pa.schema(columns)))
        create_tables(Lake(lake))
    with monkeypatch.context() as patch:
        older_types = [number for number in TABLE_TYPES if number not in CONSUMER_TYPES]
        patch.setattr("sharelens.evidence.group_decoding.TABLE_TYPES", older_types)
        patch.setattr("jobs.decode.stage.decoded_from", lambda *_, **__: None)
        make_lake(lake, logs[0], stages=TO_MEASURES)
    return lake


def group_ids(lake: Path, table: str) -> set[str]:
    return set(open_lake(lake).scan(table, ["group_id"]).column("group_id").to_pylist())


def check_unknown(lake: Path) -> None:
    """Answers name no consumer group, and say that there are some; gold tables have none."""
    tables = LakeTables(open_lake(lake), None)
    answer = groups(tables, frozenset())
    assert answer.table.column("group_id").to_pylist() == ["share"]
    assert any("consumer groups are unknown" in line and "--rebuild decode" in line for line in answer.warnings)
    with pytest.raises(SharelensError, match="c can be a consumer group: consumer groups are unknown"):
        describe(tables, "c")
    assert group_ids(lake, "gold.group_history") == {"share"}


def test_consumer_groups_of_an_older_lake_are_unknown_until_it_is_decoded_again(
    older_lake: Path, logs: tuple[Path, Path], tmp_path: Path
) -> None:
    check_unknown(older_lake)
    make_lake(older_lake, logs[1], stages=TO_MEASURES)
    assert "c" in group_ids(older_lake, "silver.group_record"), "the records of the later run"
    check_unknown(older_lake)
    make_lake(older_lake, rebuild="decode", stages=TO_MEASURES)
    make_lake(tmp_path / "new", logs[1], stages=TO_MEASURES)
    assert not differences(content(older_lake, TABLES_WITH_GROUPS), content(tmp_path / "new", TABLES_WITH_GROUPS))
    tables = LakeTables(open_lake(older_lake), None)
    assert groups(tables, frozenset()).table.column("group_id").to_pylist() == ["c", "share"]
    assert not undecoded_groups(tables)
    assert describe(tables, "c").table.column("member_id").to_pylist() == ["a"]


def test_an_upgrade_of_an_older_lake_decodes_it_again(older_lake: Path) -> None:
    needs = look(Lake(older_lake))
    assert {need.table for need in needs if need.kind is Kind.DERIVED} == {"silver.group_record", "gold.member_history"}
    assert derived_from(needs) == "decode"
    options = UpgradeOptions(lake=Lake(older_lake), dry_run=False, in_process_bytes=ANY_SIZE, lock_timeout_s=0)
    for _ in range(2):  # the second one has nothing to do, and keeps what the first one says of its records
        upgrade(options, no_session)
        tables = LakeTables(open_lake(older_lake), None)
        assert groups(tables, frozenset()).table.column("group_id").to_pylist() == ["c", "share"]
        assert tables.undecoded_group_records == 0


def test_a_new_lake_knows_its_consumer_groups_after_each_run(logs: tuple[Path, Path], tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    for number, log_dir in enumerate(logs):
        make_lake(lake, log_dir, stages=TO_MEASURES)
        tables = LakeTables(open_lake(lake), None)
        assert tables.undecoded_group_records == 0
        rows = open_lake(lake).scan("gold.member_history", ["member_id", "run_id"], pc.field("group_id") == "c")
        assert set(rows.column("run_id").to_pylist()) == {number + 1}
        assert set(rows.column("member_id").to_pylist()) == {"a", "b"}
