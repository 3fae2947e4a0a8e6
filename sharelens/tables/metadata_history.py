"""The cluster's metadata over time: rows of a lake, or of the metadata log beside other logs."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.conditions import filter_rows
from sharelens.evidence.metadata_tables import configuration_rows, topic_rows
from sharelens.tables.port import Tables
from sharelens.tables.reading import read
from sharelens.tables.where import Where

PARTITIONS, CONFIGURATION = "gold.topic_history", "gold.configuration_history"
NO_LEADER = -1


def topic_history(evidence: Tables, columns: Sequence[str], condition: pc.Expression | None = None) -> pa.Table | None:
    """Columns of the TOPIC_HISTORY rows with a condition; None: there is no metadata log."""
    if evidence.stored(PARTITIONS):
        return read(evidence, PARTITIONS, columns, Where(columns=condition))
    history = evidence.metadata.history
    return None if history is None else filter_rows(topic_rows(history), condition).select(columns)


def configuration_history(
    evidence: Tables, columns: Sequence[str], condition: pc.Expression | None = None
) -> pa.Table | None:
    """Columns of the CONFIGURATION_HISTORY rows with a condition; None: there is no metadata log."""
    if evidence.stored(CONFIGURATION):
        return read(evidence, CONFIGURATION, columns, Where(columns=condition))
    history = evidence.metadata.history
    return None if history is None else filter_rows(configuration_rows(history), condition).select(columns)


def in_force(rows: pa.Table | None, as_of_ms: int | None) -> pa.Table | None:
    """The rows in force at a moment; None: at the end."""
    if rows is None:
        return None
    if as_of_ms is None:
        return rows.filter(pc.is_null(rows.column("valid_to_ms")))
    ends_later = pc.fill_null(pc.greater(rows.column("valid_to_ms"), as_of_ms), True)
    return rows.filter(pc.and_(pc.less_equal(rows.column("valid_from_ms"), as_of_ms), ends_later))


def leaders(evidence: Tables, topic: str, as_of_ms: int | None = None) -> dict[int, int]:
    """The broker that leads each partition of a topic at a moment (None: the end), as far as the metadata log says."""
    columns = ["partition", "leader", "valid_from_ms", "valid_to_ms"]
    rows = in_force(topic_history(evidence, columns, pc.field("topic") == topic), as_of_ms)
    pairs = () if rows is None else rows.select(["partition", "leader"]).to_pylist()
    return {row["partition"]: row["leader"] for row in pairs if row["leader"] != NO_LEADER}


def has_metadata_log(evidence: Tables) -> bool:
    """Whether the evidence has records of the metadata log."""
    history = evidence.metadata.history
    return history is not None and history.end_offset > 0
