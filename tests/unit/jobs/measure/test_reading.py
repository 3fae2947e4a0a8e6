"""What a task of `measure` reads: the rows of its share partitions, from the row groups that may have any."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from jobs.incarnations import newest_incarnations
from jobs.measure.reading import HISTORY, Flags, Reader, StateTopic
from jobs.replay import stage as replay_stage
from sharelens.lake.lake import Lake
from sharelens.lake.row_groups import RowGroups
from sharelens.measures.ranges.places import Places
from state_model.columnar.codes import ABOVE_ALL
from state_model.columnar.keys import PLACE_KEY
from tests.depths import rows_in_soak
from tests.logs.state_logs import snapshot, update, write_log_directory
from tests.processes.in_process import make_lake

pytestmark = pytest.mark.slow

GROUPS = ("a", "b", "c", "d")
RECORDS = 3


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A lake whose history has a row group for each group."""
    records = [snapshot(group, start=0) for group in GROUPS]
    records += [update(group, batches=[(number, number, 2, 1)]) for number in range(RECORDS - 1) for group in GROUPS]
    monkeypatch.setattr(replay_stage, "PART_ROWS", RECORDS)
    lake = Lake(tmp_path / "lake")
    make_lake(lake, write_log_directory(tmp_path / "logs", records), stages=("ingest", "decode", "replay"))
    return lake


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of row groups of each reading."""
    counts: list[int] = []
    read = RowGroups.read

    def counted(self: RowGroups, chosen: Flags, *columns: Sequence[str], **options: Any) -> Iterator[pa.Table]:
        counts.append(int(chosen.sum()))
        return read(self, chosen, *columns, **options)

    monkeypatch.setattr(RowGroups, "read", counted)
    return counts


def reader_of(lake: Lake, groups: Sequence[str]) -> Reader:
    """A reader of all share partitions of some groups."""
    ((cluster_id, log_topic_id),) = newest_incarnations(lake).items()
    rows = lake.snapshot(HISTORY).dataset().to_table(columns=PLACE_KEY)
    keys = rows.filter(pc.field("group_id").isin(pa.array(groups, pa.string()))).group_by(PLACE_KEY).aggregate([])
    keys = keys.sort_by([(name, "ascending") for name in PLACE_KEY]).combine_chunks()
    topic = StateTopic(lake=lake.view(), cluster_id=cluster_id, log_topic_id=log_topic_id)
    return Reader(topic, Places(keys=keys), np.full(keys.num_rows, ABOVE_ALL))


@pytest.mark.parametrize(
    ("groups", "row_groups"), [("a", 1), ("ad", 4), *rows_in_soak(("", 0), ("b", 1), ("bc", 2), ("abcd", 4))]
)
def test_row_groups_of_other_groups_are_not_read(groups: str, row_groups: int, lake: Lake, chosen: list[int]) -> None:
    rows = reader_of(lake, list(groups)).rows(HISTORY, ["group_id", "log_offset"])
    all_rows = lake.snapshot(HISTORY).dataset().to_table(columns=["group_id", "log_offset"])
    expected = all_rows.filter(pc.field("group_id").isin(pa.array(list(groups), pa.string())))
    assert sorted(rows.column("log_offset").to_pylist()) == sorted(expected.column("log_offset").to_pylist())
    assert rows.num_rows == RECORDS * len(groups)
    assert chosen == [row_groups]
