"""What a lake says of user topics, groups and delivery ranges is what the log directory says."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from sharelens.evidence.as_of import DELIVERY_ORDER, LogPrefix
from sharelens.measures.topics.extents import TopicPartition
from sharelens.source.request import Source
from sharelens.tables.opening import open_evidence
from sharelens.tables.port import DELIVERIES, Tables
from sharelens.tables.reading import (
    read,
    read_group_records,
    read_share_partitions,
    read_states,
    read_topic_batches,
    read_topic_extents,
)
from sharelens.tables.where import Keys, Where
from tests.datasets import dataset, kinds_first
from tests.processes.in_process import recorded_lake


def begins_of(evidence: Tables) -> dict[TopicPartition, int]:
    """Each user partition with its smallest start offset."""
    states = read_states(evidence, Keys(), LogPrefix()).select(["topic_id", "partition", "start_offset"])
    rows = [row for row in states.to_pylist() if row["start_offset"] >= 0]
    ordered = sorted(rows, key=lambda row: -row["start_offset"])
    return {(row["topic_id"], row["partition"]): row["start_offset"] for row in ordered}


def tables_of(evidence: Tables, begins: dict[TopicPartition, int]) -> Iterator[tuple[str, pa.Table]]:
    cover = evidence.cover()
    middle_ms = (min(part.first_ms or 0 for part in cover) + max(part.last_ms or 0 for part in cover)) // 2
    yield "extents", read_topic_extents(evidence, begins)
    batches = list(read_topic_batches(evidence, begins))
    yield "batches", pa.concat_tables(batches) if batches else pa.table({})
    yield "groups", read_group_records(evidence)
    group = read_share_partitions(evidence).sort_by("group_id").column("group_id")[0].as_py()
    yield "group", read_group_records(evidence, frozenset([group]))
    for cut in (
        LogPrefix(),
        LogPrefix(as_of_ms=middle_ms),
        LogPrefix(at_offsets={part.state_partition: 10 for part in cover}),
    ):
        yield f"deliveries {cut}", read(evidence, DELIVERIES, where=Where(cut=cut)).sort_by(DELIVERY_ORDER)
        yield (
            f"deliveries of {group} {cut}",
            read(evidence, DELIVERIES, where=Where(keys=Keys(groups=frozenset([group])), cut=cut)).sort_by(
                DELIVERY_ORDER
            ),
        )


@pytest.mark.parametrize("name", kinds_first())
def test_lake_and_log_directory_say_the_same_of_topics_groups_and_ranges(name: str) -> None:
    logs = dataset(name) / "logs"
    straight = open_evidence(Source(log_dirs=(str(logs),)))
    lake = open_evidence(Source(lake=str(recorded_lake(name))))
    begins = begins_of(straight)
    rows = 0
    for (content, ours), (_, lakes) in zip(tables_of(straight, begins), tables_of(lake, begins), strict=True):
        assert lakes.equals(ours), content
        rows += ours.num_rows
    assert rows > 10


def test_ranges_that_ended_after_the_cut_are_open_there(tmp_path: Path) -> None:
    logs = dataset("basic") / "logs"
    evidence = open_evidence(Source(log_dirs=(str(logs),)))
    cut = LogPrefix(at_offsets={part.state_partition: 20 for part in evidence.cover()})
    rows = read(evidence, DELIVERIES, where=Where(cut=cut)).sort_by(DELIVERY_ORDER)
    still = rows.filter(rows.column("is_open"))
    assert 0 < still.num_rows < rows.num_rows
    lists = read_states(evidence, Keys(), cut).column("state_batches").to_pylist()
    assert still.num_rows == sum(map(len, lists))
