"""What a lake says of user topics, groups and delivery ranges is what the log directory says."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from sharelens.evidence.as_of import LogPrefix
from sharelens.measures.topics import TopicPartition
from sharelens.questions.evidence import Evidence, Keys
from sharelens.questions.opening import open_evidence
from sharelens.source.request import Source
from tests.datasets import dataset, kinds_first
from tests.processes.in_process import recorded_lake


def begins_of(evidence: Evidence) -> dict[TopicPartition, int]:
    """Each user partition with its smallest start offset."""
    states = evidence.states(Keys(), LogPrefix()).select(["topic_id", "partition", "start_offset"])
    rows = [row for row in states.to_pylist() if row["start_offset"] >= 0]
    ordered = sorted(rows, key=lambda row: -row["start_offset"])
    return {(row["topic_id"], row["partition"]): row["start_offset"] for row in ordered}


def tables_of(evidence: Evidence, begins: dict[TopicPartition, int]) -> Iterator[tuple[str, pa.Table]]:
    cover = evidence.cover()
    middle_ms = (min(part.first_ms or 0 for part in cover) + max(part.last_ms or 0 for part in cover)) // 2
    yield "extents", evidence.topic_extents(begins)
    batches = list(evidence.topic_batches(begins))
    yield "batches", pa.concat_tables(batches) if batches else pa.table({})
    yield "groups", evidence.group_records()
    group = evidence.share_partitions().sort_by("group_id").column("group_id")[0].as_py()
    yield "group", evidence.group_records(frozenset([group]))
    for cut in (
        LogPrefix(),
        LogPrefix(as_of_ms=middle_ms),
        LogPrefix(at_offsets={part.state_partition: 10 for part in cover}),
    ):
        yield f"deliveries {cut}", evidence.deliveries(Keys(), cut)
        yield f"deliveries of {group} {cut}", evidence.deliveries(Keys(groups=frozenset([group])), cut)


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
    rows = evidence.deliveries(Keys(), cut)
    still = rows.filter(rows.column("is_open"))
    assert 0 < still.num_rows < rows.num_rows
    lists = evidence.states(Keys(), cut).column("state_batches").to_pylist()
    assert still.num_rows == sum(map(len, lists))
