"""Control records of the early design in the logs of user topics, decoded."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.early_draft_records import EARLY_DRAFT_RECORD, early_draft_records
from sharelens.evidence.reading import read_whole
from sharelens.kafka_log.layout import scan_log_directory
from sharelens.kafka_log.union import LogPartition, unite
from sharelens.output import Column, Row, Stream, number_text
from sharelens.output.layouts import Layout
from sharelens.output.wording import counted
from sharelens.parameters.filters import KeyFilter
from sharelens.source.request import Source
from state_model.errors import UsageError
from state_model.topics import INTERNAL_TOPICS


def records(source: Source, key_filter: KeyFilter) -> Stream:
    """The answer to `sharelens records --early-draft`: records by topic, partition and offset.

    Raises:
        UsageError: the source is no log directory, or the filter leaves no partition of a user topic.
    """
    if not source.log_dirs:
        raise UsageError("records: --early-draft reads segments of user topics; give --log-dir")
    directories = [scan_log_directory(uri, include_deleted=source.include_deleted) for uri in source.log_dirs]
    partitions = [partition for partition in unite(directories) if _is_chosen(partition, key_filter)]
    if not partitions:
        raise UsageError("records: --early-draft: the log directory has no partition of a user topic that was named")
    problems: Counter[str] = Counter()

    def batches() -> Iterator[pa.RecordBatch]:
        for partition in partitions:
            for chunk in read_whole(partition, include_uncommitted=source.include_uncommitted):
                problems.update(chunk.problems.column("reason").to_pylist())
                rows = early_draft_records(pa.Table.from_batches([chunk.records]))
                if key_filter.groups:
                    rows = rows.filter(pc.is_in(rows.column("group_id"), value_set=pa.array(sorted(key_filter.groups))))
                yield from rows.to_batches()

    return Stream(
        schema=EARLY_DRAFT_RECORD,
        batches=batches(),
        columns=LAYOUT.columns(),
        summary=f"read: {counted(len(partitions), 'partition')} of user topics",
        warnings=lambda: [f"{counted(count, 'range')} could not be read: {why}" for why, count in problems.items()],
        none="no control record of the early design",
    )


def _is_chosen(partition: LogPartition, key_filter: KeyFilter) -> bool:
    if partition.topic in INTERNAL_TOPICS:
        return False
    if key_filter.partitions and partition.partition not in key_filter.partitions:
        return False
    of_topic = [choice for choice in key_filter.topics if choice.text in (partition.topic, partition.topic_id)]
    is_named = any(choice.partitions is None or partition.partition in choice.partitions for choice in of_topic)
    return is_named or not key_filter.topics


def _states(row: Row) -> str:
    states = cast(Sequence[Row] | None, row["states"])
    if states is None:
        return number_text(None)
    parts = (
        f"{state['base_offset']}-{state['last_offset']} {state['state']}/{state['delivery_count']}" for state in states
    )
    return ", ".join(parts) or number_text(None)


LAYOUT = Layout(
    schema=EARLY_DRAFT_RECORD,
    fields="topic partition log_offset timestamp_ms type group_id checkpoint_epoch start_offset end_offset "
    "back_offset states error",
    cells=(Column(heading="STATES", cell=_states, fields=("states",)),),
    sentences="error",
    important="TOPIC PARTITION LOG-OFFSET TYPE GROUP START-OFFSET END-OFFSET BACK-OFFSET STATES",
)
