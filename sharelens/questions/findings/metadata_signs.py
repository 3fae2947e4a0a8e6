"""What the metadata log says of topics: partitions of coordinators that can't be written to, and settings."""

from collections.abc import Mapping, Sequence

import pyarrow.compute as pc

from sharelens.findings.signs import InternalPartition
from sharelens.tables.metadata_history import NO_LEADER, configuration_history, in_force, topic_history
from sharelens.tables.port import Tables
from state_model.topics import OFFSETS_TOPIC, STATE_TOPIC

TOPIC = "topic"
MIN_INSYNC, RETENTION = "min.insync.replicas", "retention.ms"


def unwritable(evidence: Tables, as_of_ms: int | None) -> Sequence[InternalPartition] | None:
    """The partitions of the state and offsets topics that can't be written to; None: no metadata log."""
    columns = ["topic", "partition", "leader", "isr", "valid_from_ms", "valid_to_ms"]
    is_internal = pc.field("topic").isin([STATE_TOPIC, OFFSETS_TOPIC])
    of_coordinators = in_force(topic_history(evidence, columns, is_internal), as_of_ms)
    if of_coordinators is None:
        return None
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
    columns = ["entity", "value", "valid_from_ms", "valid_to_ms"]
    is_named = (pc.field("entity_type") == TOPIC) & (pc.field("key") == name)
    of_topics = in_force(configuration_history(evidence, columns, is_named), as_of_ms)
    if of_topics is None:
        return {}
    pairs = zip(of_topics.column("entity").to_pylist(), of_topics.column("value").to_pylist(), strict=True)
    return {entity: int(value) for entity, value in pairs if value is not None and value.isdecimal()}
