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


def has_metadata_log(evidence: Tables) -> bool:
    """Whether the evidence has records of the metadata log."""
    history = evidence.metadata.history
    return history is not None and history.end_offset > 0
