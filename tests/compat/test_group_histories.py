"""Histories and rebalances of the groups in recorded logs: the kernel gives the rows of the record-by-record form."""

import pyarrow as pa
import pytest

from sharelens.groups.columns import many_histories
from sharelens.groups.histories import share_histories, streams_histories
from sharelens.groups.intervals import Histories
from sharelens.groups.replay import is_of_types
from sharelens.groups.streams_rebalance_columns import many_streams_rebalances
from sharelens.groups.streams_rebalances import streams_rebalances_by_record
from sharelens.kafka_log.layout import scan_log_directory
from sharelens.kafka_log.union import unite
from sharelens.tables.logs.groups import read_records_of_groups
from state_model.streams.records import STREAMS_TYPES
from state_model.topics import OFFSETS_TOPIC
from tests.datasets import STREAMS_SETS, dataset, scenarios


def records_of(name: str) -> pa.Table:
    """GROUP_RECORD rows of a recorded log."""
    partitions = unite([scan_log_directory(str(dataset(name) / "logs"))])
    return read_records_of_groups([part for part in partitions if part.topic == OFFSETS_TOPIC], None, True)


@pytest.mark.parametrize("name", [*scenarios(), *STREAMS_SETS])
def test_rows_are_those_of_the_reference(name: str) -> None:
    records = records_of(name)
    reference = Histories.of(share_histories(records), streams_histories(records))
    assert not records.num_rows or reference.groups.num_rows
    for expected, rows in zip(reference, many_histories(records), strict=True):
        assert rows.to_pylist() == expected.to_pylist()
        assert rows.schema.equals(expected.schema, check_metadata=True)


@pytest.mark.parametrize("name", ["streams", *STREAMS_SETS])
def test_rebalances_are_those_of_the_reference(name: str) -> None:
    records = records_of(name)
    expected = streams_rebalances_by_record(records)
    assert expected.num_rows
    assert many_streams_rebalances(records.filter(is_of_types(records, STREAMS_TYPES))).equals(expected)


def test_recorded_logs_have_groups_of_both_types() -> None:
    groups = [many_histories(records_of(name)).groups for name in ("basic", "streams-basic")]
    assert [set(rows["group_type"].to_pylist()) for rows in groups] == [{"share"}, {"streams"}]
