"""The smallest start offset that share state ever named for a user partition."""

from pathlib import Path

import pyarrow as pa
import pytest

from jobs.decode.topic_starts import lowest, lowest_offsets
from sharelens.lake.lake import Lake
from sharelens.lake.table_schemas import TOPIC_START
from sharelens.measures.topics.headers import begins_of
from tests.logs.batch_files import state_batches, state_directory
from tests.logs.state_logs import ORDERS_ID, START_MS, snapshot, tombstone, update
from tests.processes.in_process import TO_SILVER, make_lake

pytestmark = pytest.mark.slow

OTHER_ID = "AAAAAAAAAAAAAAAAAAAABg"
ORDERS = (ORDERS_ID, 0)


def starts(tmp_path: Path, *logs: list[dict[str, object]]) -> dict[tuple[str, int], int]:
    """What a lake of one run after the other knows; each list is a longer state log."""
    for number, records in enumerate(logs):
        logs = state_directory(tmp_path / f"logs-{number}", state_batches(records))
        make_lake(tmp_path / "lake", logs, stages=TO_SILVER)
    return lowest_offsets(Lake(tmp_path / "lake"), "unknown")


def test_the_smallest_start_offset_of_all_groups_and_lives_counts(tmp_path: Path) -> None:
    story = [
        snapshot("g", start=5),
        update("g", start=9),
        tombstone("g"),
        snapshot("g", start=7),
        snapshot("h", start=6),
        snapshot("h", 3, start=0),
        snapshot("h", topic_id=OTHER_ID, start=1 << 62),
    ]
    assert starts(tmp_path, story) == {ORDERS: 5, (ORDERS_ID, 3): 0, (OTHER_ID, 0): 1 << 62}


def test_a_start_offset_that_is_not_determined_names_nothing_yet(tmp_path: Path) -> None:
    undetermined = [snapshot("g", start=-1), update("g", batches=[(0, 0, 2, 1)]), tombstone("h")]
    assert starts(tmp_path, undetermined) == {}
    assert starts(tmp_path, [*undetermined, update("g", start=4)]) == {ORDERS: 4}


def test_a_deleted_group_still_counts(tmp_path: Path) -> None:
    story = [snapshot("g", start=2), tombstone("g"), snapshot("h", start=8)]
    assert starts(tmp_path, story[:2], story) == starts(tmp_path / "whole", story) == {ORDERS: 2}


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_what_a_winning_copy_sets_aside_no_longer_counts(order: tuple[int, int], tmp_path: Path) -> None:
    common = [snapshot("g", start=9), update("g", start=9, at_ms=START_MS + 1)]
    loser = [*state_batches(common), *state_batches([snapshot("h", start=1)], 2)]
    winner = [*state_batches(common), *state_batches([snapshot("h", start=4)], 2, leader_epoch=1)]
    copies = [state_directory(tmp_path / name, batches) for name, batches in (("a", loser), ("b", winner))]
    for place in order:
        make_lake(tmp_path / "lake", copies[place], stages=TO_SILVER)
    assert lowest_offsets(Lake(tmp_path / "lake"), "unknown") == {ORDERS: 4}


def test_another_cluster_has_its_own(tmp_path: Path) -> None:
    logs = state_directory(tmp_path / "logs", state_batches([snapshot("g", start=3)]))
    make_lake(tmp_path / "lake", logs, cluster_id="a", stages=TO_SILVER)
    assert lowest_offsets(Lake(tmp_path / "lake"), "b") == {}
    assert lowest_offsets(Lake(tmp_path / "lake"), "a") == {ORDERS: 3}


@pytest.mark.parametrize("state_partitions", [(0,), (0, 1)])
def test_of_rows_of_one_user_partition_tasks_return_the_lowest_start(state_partitions: tuple[int, ...]) -> None:
    row = {"log_topic_id": "l", "topic_id": ORDERS_ID, "partition": 0}
    rows = [
        {**row, "state_partition": number, "start_offset": start} for number in state_partitions for start in (7, 3, 9)
    ]
    starts_of_units = pa.Table.from_pylist(rows, schema=TOPIC_START)
    assert lowest(starts_of_units).sort_by("state_partition").to_pylist() == rows[1::3]
    assert begins_of(starts_of_units) == {ORDERS: 3}
