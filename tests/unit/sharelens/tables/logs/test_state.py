"""Which state partitions a share partition can lie in."""

from pathlib import Path

import pytest

from sharelens.kafka_log.layout import scan_log_directory
from sharelens.kafka_log.union import unite
from sharelens.tables.logs.state import StateLog, partitions_of_key
from state_model.java import partition_for
from tests.logs.state_logs import ORDERS_ID, snapshot, write_state_partition

COUNT = 7


def logs_of(directory: Path) -> list[StateLog]:
    return [StateLog(partition, include_uncommitted=False) for partition in unite([scan_log_directory(str(directory))])]


@pytest.mark.slow
def test_the_number_of_state_partitions_is_inferred_from_where_keys_lie(tmp_path: Path) -> None:
    placed: dict[int, list[str]] = {}
    for number in range(200):
        placed.setdefault(partition_for(f"g{number}", ORDERS_ID, 0, COUNT), []).append(f"g{number}")
    assert len(placed) == COUNT
    for partition, groups in placed.items():
        write_state_partition(tmp_path, [snapshot(group) for group in groups], number=partition)
    for group in ("somebody", "else", "g3"):
        assert partitions_of_key(logs_of(tmp_path), (group, ORDERS_ID, 0)) == {
            partition_for(group, ORDERS_ID, 0, COUNT)
        }


def test_few_keys_leave_several_numbers_and_all_of_their_partitions(tmp_path: Path) -> None:
    write_state_partition(tmp_path, [snapshot("g")], number=partition_for("g", ORDERS_ID, 0, COUNT))
    numbers = partitions_of_key(logs_of(tmp_path), ("somebody", ORDERS_ID, 0))
    assert numbers is not None
    assert partition_for("somebody", ORDERS_ID, 0, COUNT) in numbers


def test_keys_that_no_number_explains_leave_it_untold(tmp_path: Path) -> None:
    for number in (0, 1):
        write_state_partition(tmp_path, [snapshot("g"), snapshot("h")], number=number)
    assert partitions_of_key(logs_of(tmp_path), ("g", ORDERS_ID, 0)) is None
