"""The state of share partitions: now, as of a time, or at offsets of the state log."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.as_of import LogPrefix
from sharelens.measures.topics.extents import names_of_topics
from sharelens.output import Answer
from sharelens.output.layouts import Layout
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.answers.checked import with_coordinators
from sharelens.questions.answers.completeness import (
    check_cut,
    closing_line,
    incomplete_rows,
    misplaced_warnings,
    prefix_of,
)
from sharelens.questions.answers.missing import without_state
from sharelens.questions.answers.naming import ensure_known, resolve
from sharelens.questions.answers.shape import answer_schema, constant, named_batches, ranges_column
from sharelens.source.request import CutChoice
from sharelens.tables.metadata_history import PARTITIONS, leaders
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_states
from sharelens.tables.where import Keys
from state_model.columnar.keys import SHARE_PARTITION_ORDER
from state_model.columnar.schemas import SHARE_PARTITION_STATE
from state_model.topics import STATE_TOPIC

FIELDS = (
    *("cluster_id", "group_id", "topic_id", "topic", "partition", "snapshot_epoch", "state_epoch", "leader_epoch"),
    *("start_offset", "delivery_complete_count", "create_timestamp_ms", "write_timestamp_ms", "state_partition"),
    *("log_offset", "below_log_start", "state_batches", "completeness", "completeness_reason"),
)
LAYOUT = Layout(
    schema=pa.schema([answer_schema(SHARE_PARTITION_STATE).field(name) for name in FIELDS]),
    fields="group_id topic partition leader_epoch start_offset delivery_complete_count state_epoch snapshot_epoch "
    "state_partition log_offset completeness state_batches",
    cells=(ranges_column(verbose=False),),
    important="GROUP TOPIC PARTITION START-OFFSET RECORD-OFFSETS COMPLETENESS DELIVERY-COMPLETE-COUNT",
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
    warnings = check_cut(evidence, prefix) + misplaced + without_state(evidence.missing, key_filter.groups)
    if table.num_rows == 0:
        ensure_known(evidence, key_filter, keys)
    closing = closing_line(evidence, incomplete_rows(table.column("completeness")))
    summary = "\n".join([*_leading_brokers(evidence, table, cut), closing])
    return Answer(
        table=table,
        columns=LAYOUT.columns(None, ranges_column(verbose=verbose)),
        summary=summary,
        warnings=tuple(warnings),
        none="no live share partition",
    )


def _leading_brokers(evidence: Tables, table: pa.Table, cut: CutChoice) -> Iterator[str]:
    """Of one share partition in a lake the brokers that lead it and its state, as far as the metadata log says."""
    if table.num_rows != 1 or cut.at_offsets or not evidence.stored(PARTITIONS):
        return
    (row,) = table.select(["topic", "partition", "state_partition"]).to_pylist()
    places = ((row["topic"], row["partition"], "leader"), (STATE_TOPIC, row["state_partition"], "share coordinator"))
    for topic, number, role in places:
        leader = None if topic is None else leaders(evidence, topic, cut.as_of_ms).get(number)
        if leader is not None:
            yield f"{role}: broker {leader}, which leads {topic}-{number}"


def checked_state(evidence: Tables, key_filter: KeyFilter, cut: CutChoice, *, verbose: bool = False) -> Answer:
    """The answer to `sharelens state`, with what the coordinators of a running cluster say."""
    return with_coordinators(evidence, state(evidence, key_filter, cut, verbose=verbose), cut)
