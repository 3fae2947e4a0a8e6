"""Topic ids and names: from partition directories, group records and --topic-names into silver.name."""

from collections.abc import Sequence

import pyarrow as pa

from jobs import books
from sharelens.evidence.schemas import NAME
from sharelens.kafka_log.union import LogPartition
from sharelens.lake.lake import Lake
from sharelens.lake.parquet import write_rows
from sharelens.lake.tables import TABLES
from state_model.uuids import ZERO_UUID

NAMES = "silver.name"
KEY = ["cluster_id", "topic_id", "topic", "source"]


def new_names(lake: Lake, names: pa.Table) -> pa.Table:
    """The rows of `names` (NAME with cluster_id) that the lake lacks; one row for each KEY."""
    known_keys = {tuple(row.values()) for row in lake.snapshot(NAMES).rows(KEY).to_pylist()}
    keep = []
    for row in names.select(KEY).to_pylist():
        key = tuple(row.values())
        keep.append(key not in known_keys)
        known_keys.add(key)
    return names.filter(pa.array(keep, pa.bool_()))


def unknown_names(
    lake: Lake, cluster_id: str, partitions: Sequence[LogPartition], topic_names: dict[str, str]
) -> pa.Table:
    """NAME rows from partition directories and --topic-names that the lake lacks."""
    names = {(p.topic_id, p.topic, "partition.metadata") for p in partitions if p.topic_id != ZERO_UUID}
    names |= {(topic_id, topic, "topic_names") for topic_id, topic in topic_names.items()}
    rows = [
        {"topic_id": topic_id, "topic": topic, "source": source, "valid_from_ms": None}
        for topic_id, topic, source in sorted(names)
    ]
    return new_names(lake, books.of_cluster(pa.Table.from_pylist(rows, schema=NAME), cluster_id))


def commit_names(lake: Lake, stage: str, run: int, names: pa.Table) -> None:
    """Commits names to silver.name for a stage of a run."""
    books.commit(lake, NAMES, stage, run, write_rows(lake, TABLES[NAMES], names, {"run_id": run}))
