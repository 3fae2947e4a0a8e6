"""What other programs commit to the tables of a lake: rows are refused before anything is written."""

import itertools
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from jobs.upkeep.maintain import MaintainOptions, maintain
from sharelens.lake.errors import LakeError
from sharelens.lake.lake import Lake
from sharelens.lake.transactions import LOG, commit_path
from tests.depths import rows_in_soak
from tests.lakes import assert_same, content, differences
from tests.logs.state_logs import snapshot, update, write_log_directory
from tests.once import made_once
from tests.processes.in_process import make_lake

pytestmark = pytest.mark.slow

RECORDS = [snapshot(), update(start=0, batches=[(0, 4, 2, 1)]), update(start=5)]


def logs(folder: Path, records: int) -> Path:
    return write_log_directory(folder, RECORDS[:records])


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A lake of the first two records."""
    cached_lake = made_once("lakes/other-writers", lambda folder: make_lake(folder, logs(tmp_path / "first", 2)))
    return Path(shutil.copytree(cached_lake, tmp_path / "lake"))


def append(table: str) -> None:
    write_deltalake(table, DeltaTable(table).to_pyarrow_table().slice(0, 1), mode="append")


def delete(table: str) -> None:
    DeltaTable(table).delete("group_id = 'g'")


def restore(table: str) -> None:
    delete(table)
    DeltaTable(table).restore(DeltaTable(table).version() - 1)


CHANGES = (append, delete, restore)
TABLES_CHANGED = ("silver.share_record", "gold.lag", "gold.share_partition_state")
QUICK = tuple(zip(CHANGES, TABLES_CHANGED, strict=True))
FURTHER_PAIRS = [pair for pair in itertools.product(CHANGES, TABLES_CHANGED) if pair not in QUICK]


@pytest.mark.parametrize(("change", "table"), [QUICK[0], *rows_in_soak(*QUICK[1:], *FURTHER_PAIRS)])
def test_a_table_that_another_program_changed_is_refused_until_its_commits_are_gone(
    change: Callable[[str], None], table: str, lake: Path, tmp_path: Path
) -> None:
    folder = lake / table.replace(".", "/")
    version = DeltaTable(str(folder)).version()
    change(str(folder))
    changed, before = DeltaTable(str(folder)).version(), content(lake)
    news = logs(tmp_path / "news", 3)
    first = commit_path(version + 1)
    with pytest.raises(LakeError, match=rf"{table} in {lake}: {first} was written by another program \(delta-rs"):
        make_lake(lake, news)
    with pytest.raises(LakeError, match="another program"):
        maintain(MaintainOptions(lake=Lake(lake), dry_run=False))
    assert differences(content(lake), before) == []
    for later in range(version + 1, changed + 1):
        (folder / commit_path(later)).unlink()
    make_lake(lake, news)
    make_lake(tmp_path / "whole", news)
    assert_same(lake, tmp_path / "whole")


@pytest.mark.soak
def test_files_that_another_program_compacts_hold_the_same_rows(lake: Path, tmp_path: Path) -> None:
    make_lake(lake, logs(tmp_path / "news", 3))
    table = DeltaTable(str(lake / "silver" / "share_record"))
    before = len(table.file_uris())
    table.optimize.compact()
    assert len(DeltaTable(table.table_uri).file_uris()) < before
    longer_logs = write_log_directory(tmp_path / "more", [*RECORDS, snapshot("h")])
    make_lake(lake, longer_logs)
    make_lake(tmp_path / "whole", longer_logs)
    assert_same(lake, tmp_path / "whole")


def test_a_commit_that_says_nothing_of_its_program_is_refused_too(lake: Path, tmp_path: Path) -> None:
    log = lake / "gold" / "lag" / LOG
    newest = max(log.glob("*.json"))
    path = log / f"{int(newest.stem) + 1:020d}.json"
    path.write_text('{"remove":{"path":"gone.parquet","deletionTimestamp":1}}\n', encoding="ascii")
    with pytest.raises(LakeError, match=rf"{path.name} was written by another program; move it"):
        make_lake(lake, logs(tmp_path / "news", 3))
