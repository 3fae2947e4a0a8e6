"""What the metadata log says of topics: partitions of coordinators that can't be written to, and settings."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.metadata_tables import configuration_rows, topic_rows
from sharelens.findings.signs import InternalPartition
from sharelens.tables.port import Tables
from sharelens.tables.reading import read
from sharelens.tables.where import Where
from state_model.topics import OFFSETS_TOPIC, STATE_TOPIC

PARTITIONS, CONFIGURATION = "gold.topic_history", "gold.configuration_history"
TOPIC = "topic"
MIN_INSYNC, RETENTION = "min.insync.replicas", "retention.ms"
NO_LEADER = -1


def unwritable(evidence: Tables, as_of_ms: int | None) -> Sequence[InternalPartition] | None:
    """The partitions of the state and offsets topics that can't be written to; None: no metadata log."""
    rows = _in_force(_partitions(evidence), as_of_ms)
    if rows is None:
        return None
    of_coordinators = rows.filter(pc.field("topic").isin([STATE_TOPIC, OFFSETS_TOPIC]))
    least = topic_settings(evidence, MIN_INSYNC, as_of_ms)
    return [
        InternalPartition(topic=row["topic"], partition=row["partition"], why=why, since_ms=row["valid_from_ms"])
        for row in of_coordinators.to_pylist()
        if (why := _why(row["leader"], len(row["isr"]), least.get(row["topic"])))
    ]


def _why(leader: int, in_sync: int, least: int | None) -> str | None:
    if leader == NO_LEADER:
        return "it has no leader"
    return None if least is None or in_sync >= least else f"{in_sync} in-sync replicas, and {MIN_INSYNC} is {least}"


def topic_settings(evidence: Tables, name: str, as_of_ms: int | None) -> Mapping[str, int]:
    """A setting of topics as a number, by name of the topic, as far as the metadata log says it."""
    rows = _in_force(_configuration(evidence), as_of_ms)
    if rows is None:
        return {}
    of_topics = rows.filter((pc.field("entity_type") == TOPIC) & (pc.field("key") == name))
    pairs = zip(of_topics.column("entity").to_pylist(), of_topics.column("value").to_pylist(), strict=True)
    return {entity: int(value) for entity, value in pairs if value is not None and value.isdecimal()}


def _partitions(evidence: Tables) -> pa.Table | None:
    if evidence.stored(PARTITIONS):
        columns = ["topic", "partition", "leader", "isr", "valid_from_ms", "valid_to_ms"]
        return read(evidence, PARTITIONS, columns, Where(columns=pc.field("topic").isin([STATE_TOPIC, OFFSETS_TOPIC])))
    history = evidence.metadata.history
    return None if history is None else topic_rows(history)


def _configuration(evidence: Tables) -> pa.Table | None:
    if evidence.stored(CONFIGURATION):
        columns = ["entity_type", "entity", "key", "value", "valid_from_ms", "valid_to_ms"]
        return read(evidence, CONFIGURATION, columns, Where(columns=pc.field("entity_type") == TOPIC))
    history = evidence.metadata.history
    return None if history is None else configuration_rows(history)


def _in_force(rows: pa.Table | None, as_of_ms: int | None) -> pa.Table | None:
    """The rows in force at a moment; None: at the end."""
    if rows is None:
        return None
    if as_of_ms is None:
        return rows.filter(pc.is_null(rows.column("valid_to_ms")))
    ends_later = pc.fill_null(pc.greater(rows.column("valid_to_ms"), as_of_ms), True)
    return rows.filter(pc.and_(pc.less_equal(rows.column("valid_from_ms"), as_of_ms), ends_later))
