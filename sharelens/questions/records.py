"""Decoded records of the state log, as Kafka's own formatter would print them, with our names."""

from collections.abc import Iterator
from itertools import chain

import pyarrow as pa

from sharelens.output import Column, Row, Stream, name_cell
from sharelens.output.layouts import Layout
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.answers.completeness import closing_line
from sharelens.questions.answers.missing import nameless
from sharelens.questions.answers.naming import ensure_known, resolve
from sharelens.questions.answers.shape import named_batches, ranges_column
from sharelens.tables.port import RECORDS, Tables
from sharelens.tables.where import Order, Span, Where
from state_model.columnar.schemas import SHARE_RECORD

FIELDS = (
    *("state_partition", "log_offset", "timestamp_ms", "type", "group_id", "topic_id", "partition", "snapshot_epoch"),
    *("state_epoch", "leader_epoch", "start_offset", "delivery_complete_count", "create_timestamp_ms"),
    *("write_timestamp_ms", "state_batches"),
)
LAYOUT = Layout(
    schema=pa.schema(
        [SHARE_RECORD.field("record_type" if name == "type" else name).with_name(name) for name in FIELDS]
    ),
    fields="group_id topic_id partition leader_epoch start_offset type timestamp_ms state_partition log_offset "
    "snapshot_epoch state_epoch delivery_complete_count state_batches",
    headings={"topic_id": "TOPIC"},
    cells=(ranges_column(verbose=False),),
    important="GROUP TOPIC PARTITION TYPE RECORD-OFFSETS START-OFFSET TIMESTAMP STATE-LOG-OFFSET",
)


def records(evidence: Tables, key_filter: KeyFilter, span: Span, *, verbose: bool = False) -> Stream:
    """The answer to `sharelens records`: (state_partition, log_offset) order; rows are read as they are written."""
    keys = resolve(evidence, key_filter)
    parts = evidence.scan(RECORDS, where=Where(keys=keys, span=span), order=Order.LOG)
    first = next((part for part in parts if part.num_rows), None)
    if first is None:
        ensure_known(evidence, key_filter, keys)
    topic_ids: set[str] = set()

    def batches() -> Iterator[pa.RecordBatch]:
        for part in chain([] if first is None else [first], parts):
            topic_ids.update(part.column("topic_id").unique().drop_null().to_pylist())
            yield from _answer_rows(part).to_batches()

    return Stream(
        schema=_answer_rows(SHARE_RECORD.empty_table()).schema,
        batches=batches(),
        columns=LAYOUT.columns(None, _topic_column(evidence), ranges_column(verbose=verbose)),
        summary=closing_line(evidence),
        warnings=lambda: nameless(len(topic_ids - evidence.names(topic_ids).keys())),
        none="no record",
    )


def _answer_rows(rows: pa.Table) -> pa.Table:
    """SHARE_RECORD rows with the columns of the answer."""
    columns = {name: rows.column(name) for name in FIELDS if name in rows.column_names}
    columns["type"] = rows.column("record_type")
    columns["state_batches"] = named_batches(rows.column("state_batches"))
    return pa.table({name: columns[name] for name in FIELDS})


def _topic_column(evidence: Tables) -> Column:
    def cell(row: Row) -> str:
        topic_id = str(row["topic_id"])
        return name_cell(evidence.names([topic_id]).get(topic_id, topic_id))

    return Column(heading="TOPIC", cell=cell, fields=("topic_id",))
