"""Start offsets in records that are not decoded yet.

`ingest` needs them to read the headers of user topics in the same run; else the headers wait for the next interval.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from jobs import books
from jobs.decode.topic_starts import lowest, named_starts
from jobs.progress import Progress
from jobs.spark import executors
from jobs.spark.executors import Engine
from sharelens.evidence.schemas import DECODED_FROM
from sharelens.kafka_log.schemas import LOG_RECORD
from sharelens.lake.lake import Lake
from sharelens.lake.slices import BRONZE, Slice, read_unit, slices, units
from sharelens.lake.table_schemas import TOPIC_START
from sharelens.measures.topics.headers import begins_of
from state_model.topics import STATE_TOPIC


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Units of bronze rows of the state topic for one executor task."""

    units: tuple[tuple[Slice, ...], ...]


def starts_task(task: Task) -> pa.Table:
    """TOPIC_START rows of the records in the units; runs on an executor."""
    from sharelens.evidence.decoding import decode_rows  # deferred: most runs find no such records

    starts = [TOPIC_START.empty_table()]
    for unit in task.units:
        starts.append(named_starts(decode_rows(read_unit(unit, LOG_RECORD)).records))
    return lowest(pa.concat_tables(starts))


def undecoded_lowest(engine: Engine, lake: Lake, cluster_id: str, progress: Progress) -> Mapping[tuple[str, int], int]:
    """Per user partition (topic id, partition) the smallest start offset in records that are not decoded yet."""
    decoded_run, ingested_run = books.done(lake, "decode"), books.done(lake, "ingest")
    if decoded_run >= ingested_run:
        return {}
    state_partitions = {
        key
        for key, row in books.changed(lake, decoded_run, ["log_record"]).items()
        if row["topic"] == STATE_TOPIC and key[0] == cluster_id
    }
    fresh = slices(lake.snapshot(DECODED_FROM), BRONZE, runs=(decoded_run + 1, ingested_run), only=state_partitions)
    weighed = [
        (tuple(unit), sum(piece.size_bytes for piece in unit))
        for _, pieces in sorted(fresh.items())
        for unit in units(pieces)
    ]
    tasks = [Task(units=tuple(group)) for group in executors.binned(weighed)]
    size_bytes = sum(size for _, size in weighed)
    starts = engine.run("start offsets", starts_task, tasks, progress, size_bytes=size_bytes)
    return begins_of(pa.concat_tables([TOPIC_START.empty_table(), *starts]))
