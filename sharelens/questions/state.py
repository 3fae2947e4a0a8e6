"""The state of share partitions: now, as of a time, or at offsets of the state log."""

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.as_of import LogPrefix
from sharelens.measures.topics.extents import names_of_topics
from sharelens.output import Answer, Column, Row, by_importance, name_cell, name_column, number_column, number_text
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.answers.checked import with_coordinators
from sharelens.questions.answers.completeness import (
    check_cut,
    closing_line,
    incomplete_rows,
    misplaced_warnings,
    prefix_of,
)
from sharelens.questions.answers.naming import ensure_known, resolve
from sharelens.questions.answers.shape import constant, named_batches, ranges_column
from sharelens.source.request import CutChoice
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_states
from sharelens.tables.where import Keys
from state_model.columnar.keys import SHARE_PARTITION_ORDER

FIELDS = (
    "cluster_id",
    "group_id",
    "topic_id",
    "topic",
    "partition",
    "snapshot_epoch",
    "state_epoch",
    "leader_epoch",
    "start_offset",
    "delivery_complete_count",
    "create_timestamp_ms",
    "write_timestamp_ms",
    "state_partition",
    "log_offset",
    "below_log_start",
    "state_batches",
    "completeness",
    "completeness_reason",
)


def state_table(
    evidence: Tables, keys: Keys, cut: LogPrefix, extra_columns: tuple[str, ...] = ()
) -> tuple[pa.Table, list[str]]:
    """The answer's rows (FIELDS), sorted by group_id, topic_id, partition, and warnings about misplaced ones.

    Deleted share partitions are absent, misplaced rows left out. `extra_columns`: columns of the state behind FIELDS.
    """
    placed = read_states(evidence, keys, cut).sort_by(SHARE_PARTITION_ORDER)
    states = placed.filter(pc.invert(placed.column("misplaced")))
    columns = {name: states.column(name) for name in (*FIELDS, *extra_columns) if name in states.column_names}
    columns["cluster_id"] = constant(evidence.cluster_id, states.num_rows, pa.string())
    names = evidence.names(states.column("topic_id").unique().to_pylist())
    columns["topic"] = names_of_topics(states.column("topic_id"), names)
    columns["state_batches"] = named_batches(states.column("state_batches"))
    table = pa.table({name: columns[name] for name in (*FIELDS, *extra_columns)})
    return table, misplaced_warnings(placed.filter(placed.column("misplaced")), names)


def state(evidence: Tables, key_filter: KeyFilter, cut: CutChoice, *, verbose: bool = False) -> Answer:
    """The answer to `sharelens state`."""
    keys = resolve(evidence, key_filter)
    prefix = prefix_of(cut)
    table, misplaced = state_table(evidence, keys, prefix)
    warnings = check_cut(evidence, prefix) + misplaced
    if table.num_rows == 0:
        ensure_known(evidence, key_filter, keys)
    summary = closing_line(evidence, incomplete_rows(table.column("completeness")))
    return Answer(
        table=table,
        columns=text_columns(verbose=verbose),
        summary=summary,
        warnings=tuple(warnings),
        none="no live share partition",
    )


def checked_state(evidence: Tables, key_filter: KeyFilter, cut: CutChoice, *, verbose: bool = False) -> Answer:
    """The answer to `sharelens state`, with what the coordinators of a running cluster say."""
    return with_coordinators(evidence, state(evidence, key_filter, cut, verbose=verbose), cut)


def topic_cell(row: Row) -> str:
    """The topic's name, or its id where the name is unknown."""
    return name_cell(row["topic_id"] if row["topic"] is None else row["topic"])


def completeness_cell(row: Row) -> str:
    """`complete`, or the mark with its reason behind a colon."""
    reason = row["completeness_reason"]
    return number_text(row["completeness"]) if reason is None else f"{row['completeness']}:{reason}"


TOPIC = Column(heading="TOPIC", cell=topic_cell, fields=("topic",))
COMPLETENESS = Column(heading="COMPLETENESS", cell=completeness_cell, fields=("completeness", "completeness_reason"))
IMPORTANT = "GROUP TOPIC PARTITION START-OFFSET RECORD-OFFSETS COMPLETENESS DELIVERY-COMPLETE-COUNT"


def text_columns(*, verbose: bool) -> tuple[Column, ...]:
    """Kafka's words and order first, ours after."""
    columns = (
        name_column("GROUP", "group_id"),
        TOPIC,
        number_column("PARTITION", "partition"),
        number_column("LEADER-EPOCH", "leader_epoch"),
        number_column("START-OFFSET", "start_offset"),
        number_column("DELIVERY-COMPLETE-COUNT", "delivery_complete_count"),
        number_column("STATE-EPOCH", "state_epoch"),
        number_column("SNAPSHOT-EPOCH", "snapshot_epoch"),
        number_column("STATE-PARTITION", "state_partition"),
        number_column("STATE-LOG-OFFSET", "log_offset"),
        COMPLETENESS,
        ranges_column(verbose=verbose),
    )
    return by_importance(columns, IMPORTANT)
