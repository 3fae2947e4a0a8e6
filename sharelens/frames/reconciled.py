"""Dead letters against the records that groups gave up: rows of gold.dlq_reconciliation.

    given_up.transform(frames.dlq_reconciliation, letters, history, topic_names=names, searched=searched)

A dead letter names a topic and no id, so share partitions of a group whose topics bear one name are judged together, in
one task, by `sharelens.measures.dlq.reconciliation`. What a task needs to know of all others comes to it in a row of
its own.
"""

from collections import deque
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from sharelens.frames.refusals import Argument, refuse_duplicates, refuse_other_ids
from sharelens.frames.shapes import checked, in_envelope, in_groups, nullable_struct, timed_schema, together
from sharelens.kafka_log.dead_letter_records import DLQ_RECORD
from sharelens.lake.dlq_partitions import DLQ_PARTITION, PLACE
from sharelens.lake.parquet import conform
from sharelens.measures.dlq.causes import LIFE, with_letter_causes
from sharelens.measures.dlq.reach import LetterTopics, whole_since_ms
from sharelens.measures.dlq.reconciliation import DLQ_POSITION, HISTORY_READ, LETTER_COLUMNS, reconcile
from sharelens.measures.dlq.reconciliation import ORDER as VERDICT_ORDER
from sharelens.measures.dlq.schemas import DLQ_RECONCILIATION
from sharelens.measures.schemas import POISON_RECORD
from sharelens.measures.settings.over_time import NO_SETTINGS, GroupSettings
from state_model.columnar.keys import SHARE_PARTITION_KEY, STATE_PARTITION_KEY
from state_model.columnar.schemas import SHARE_PARTITION_HISTORY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NAMED = ["group_id", "name", "partition"]
"""Share partitions whose topics bear one name are a group of rows."""
_NAME = pa.schema([pa.field("topic_id", pa.string(), nullable=False), ("topic", pa.string())])
_SEARCHED = pa.schema(
    [DLQ_PARTITION.field(name).with_nullable(False) for name in PLACE]
    + [DLQ_PARTITION.field(name) for name in ("log_start_offset", "held_back")]
)
_REACH = pa.schema([*_SEARCHED, DLQ_PARTITION.field("oldest_ms")])
_TOPIC = pa.schema([DLQ_RECORD.field(name) for name in ("group_id", "dlq_topic")])
_LETTER = pa.schema([DLQ_RECORD.field(name) for name in LETTER_COLUMNS])
_HISTORY = pa.schema([SHARE_PARTITION_HISTORY.field(name) for name in HISTORY_READ])
_BEGINNING = pa.schema([SHARE_PARTITION_HISTORY.field(name) for name in ("log_offset", "log_time_ms")])
_AROUND = pa.schema(
    [
        pa.field("beginnings", pa.list_(nullable_struct(_BEGINNING))),
        pa.field("has_nameless", pa.bool_()),
        pa.field("topic_ids", pa.list_(pa.string())),
        pa.field("dlq_topics", pa.list_(pa.string())),
        pa.field("searched", pa.list_(nullable_struct(_REACH))),
    ]
)
"""What a group of rows needs to know of all others: the first record of each state partition, whether a share partition
of the group and partition has a topic without a name, the ids of the name, the topics with dead letters of the group,
and the partitions that were searched."""
_ROW_KEYS = {
    "poison_records": (*SHARE_PARTITION_KEY, "state_partition", "life_log_offset", "first_offset"),
    "dead_letters": ("dlq_topic_id", "dlq_partition", "dlq_offset"),
}
_PARTS = {"around": _AROUND, "given_up": POISON_RECORD, "letter": _LETTER, "history": _HISTORY}
"""The rows of a group, in this order; those of the history are streamed."""
_ENVELOPE = pa.schema(
    [pa.field("group_id", pa.string()), pa.field("name", pa.string()), pa.field("partition", pa.int32())]
    + [pa.field("part", pa.int32())]
    + [pa.field(name, nullable_struct(schema)) for name, schema in _PARTS.items()]
)


def dlq_reconciliation(
    poison_records: "DataFrame",
    dead_letters: "DataFrame",
    share_partition_history: "DataFrame",
    *,
    topic_names: "DataFrame",
    searched: "DataFrame",
    settings: GroupSettings = NO_SETTINGS,
) -> "DataFrame":
    """The records that groups gave up with their dead letters: matched, duplicate, missing, unexpected, unknown.

    All of one cluster and one incarnation of the state topic.

    Args:
        poison_records: rows of `frames.poison_records` or gold.poison_record, all of them.
        dead_letters: rows of `frames.dead_letters` or silver.dlq_record, all of them; those whose headers name no
            record are left out.
        share_partition_history: rows of `frames.share_partition_history` or gold.share_partition_history, whole.
        topic_names: `topic_id` and `topic`, a row an id (silver.name).
        searched: `dlq_topic`, `dlq_topic_id`, `dlq_partition`, `log_start_offset` and `held_back` (offsets above the
            high watermark that were left out), a row for each partition that was searched for dead letters.
        settings: of the groups (`frames.group_settings`); without them a group's dead letters are due in the topic that
            has some of it, and nothing is missing where no topic has one.

    Returns:
        DLQ_RECONCILIATION rows (the columns of gold.dlq_reconciliation but cluster_id and run_id), in no order.

    Raises:
        UsageError: a column is missing or has another type.
    """
    function = "dlq_reconciliation"
    names = checked(topic_names, _NAME, function, "topic_names").dropDuplicates(["topic_id"])
    places = checked(searched, _SEARCHED, function, "searched")
    letters = checked(dead_letters, _LETTER, function, "dead_letters")
    given_up = _with_name(checked(poison_records, POISON_RECORD, function, "poison_records"), "topic_id", names)
    history_columns = pa.schema([SHARE_PARTITION_HISTORY.field(name) for name in (*STATE_PARTITION_KEY, *HISTORY_READ)])
    history = checked(share_partition_history, history_columns, function, "share_partition_history")
    readable = _with_name(letters.dropna(subset=["group_id", "topic", "partition", "offset"]), "topic", names)
    of_letters = readable.select(*_NAMED).distinct()
    judged = given_up.where("archiving_ms is not null").select(*_NAMED).union(of_letters).distinct()
    parts = {
        "around": _around(judged, letters, history, names, places),
        "given_up": given_up.join(judged, _NAMED, "left_semi"),
        "letter": readable,
        "history": _with_name(history, "topic_id", names).join(of_letters, _NAMED, "left_semi"),
    }
    rows = together(_enveloped(parts[name], name) for name in _PARTS)
    timed = timed_schema(DLQ_RECONCILIATION)

    def compute(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from conform(_reconciled(batches, settings), timed).to_batches()

    return in_groups(rows, _NAMED, ["part"], compute, timed)


_VERDICT = pa.schema(
    [DLQ_RECONCILIATION.field(name) for name in (*LIFE, "first_offset", "cause", "cause_source", *DLQ_POSITION)]
)
_CAUSES = {"given_up": POISON_RECORD, "verdict": _VERDICT}
_CAUSES_ENVELOPE = pa.schema(
    [POISON_RECORD.field(name).with_nullable(True) for name in SHARE_PARTITION_KEY]
    + [pa.field(name, nullable_struct(schema)) for name, schema in _CAUSES.items()]
)


def with_causes(poison_records: "DataFrame", verdicts: "DataFrame", function: str) -> "DataFrame":
    """POISON_RECORD rows with the causes of their dead letters; `verdicts`: rows of `dlq_reconciliation` about them."""
    frames = {
        "given_up": checked(poison_records, POISON_RECORD, function, "poison_records"),
        "verdict": verdicts.where("dlq_offset is not null").select(*_VERDICT.names),
    }
    rows = together(
        in_envelope(
            frame,
            {name: F.col(name) for name in SHARE_PARTITION_KEY} | {part: F.struct(*_CAUSES[part].names)},
            _CAUSES_ENVELOPE,
        )
        for part, frame in frames.items()
    )
    timed = timed_schema(POISON_RECORD)

    def compute(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        of_key = pa.Table.from_batches(list(batches))
        given_up, verdict = (
            _fields(of_key.filter(pc.is_valid(of_key.column(part).combine_chunks().field(key))), part, schema)
            for (part, schema), key in zip(_CAUSES.items(), ("last_offset", "dlq_offset"), strict=True)
        )
        yield from conform(with_letter_causes(given_up, verdict.sort_by(VERDICT_ORDER)), timed).to_batches()

    return in_groups(rows, SHARE_PARTITION_KEY, [], compute, timed)


def _with_name(rows: "DataFrame", column: str, names: "DataFrame") -> "DataFrame":
    """The rows with `name`: that of the topic whose id the column holds; what has no name stands for itself."""
    known_names = F.broadcast(names.select(F.col("topic_id").alias("known_id"), F.col("topic").alias("known_name")))
    named = rows.join(known_names, F.col(column) == F.col("known_id"), "left")
    return named.withColumn("name", F.coalesce("known_name", column)).drop("known_id", "known_name")


def _around(
    judged: "DataFrame", letters: "DataFrame", history: "DataFrame", names: "DataFrame", searched: "DataFrame"
) -> "DataFrame":
    """A row of _AROUND for each group of rows."""
    firsts = history.groupBy(*STATE_PARTITION_KEY).agg(*(F.min(name).alias(name) for name in _BEGINNING.names))
    beginnings = firsts.agg(F.collect_list(F.struct(*_BEGINNING.names)).alias("beginnings"))
    oldest = letters.groupBy(*PLACE).agg(F.min("timestamp_ms").alias("oldest_ms"))
    reach = searched.join(F.broadcast(oldest), PLACE, "left").agg(
        F.collect_list(F.struct(*_REACH.names)).alias("searched")
    )
    of_groups = letters.groupBy("group_id").agg(F.collect_set("dlq_topic").alias("dlq_topics"))
    ids = names.groupBy(F.col("topic").alias("name")).agg(F.collect_list("topic_id").alias("topic_ids"))
    places = history.select("group_id", "topic_id", "partition").distinct()
    nameless = places.join(names, "topic_id", "left_anti").select("group_id", "partition").distinct()
    nameless = nameless.withColumn("has_nameless", F.lit(True))
    rows = judged
    for single in (beginnings, reach):
        rows = rows.crossJoin(F.broadcast(single))
    for keyed_rows, key in ((of_groups, ["group_id"]), (ids, ["name"]), (nameless, ["group_id", "partition"])):
        rows = rows.join(keyed_rows, key, "left")
    return rows


def _enveloped(rows: "DataFrame", part: str) -> "DataFrame":
    """Rows of a part as _ENVELOPE rows."""
    columns = {name: F.col(name) for name in _NAMED} | {
        "part": F.lit(list(_PARTS).index(part)),
        part: F.struct(*_PARTS[part].names),
    }
    return in_envelope(rows, columns, _ENVELOPE)


def _reconciled(batches: Iterator[pa.RecordBatch], settings: GroupSettings) -> pa.Table:
    """DLQ_RECONCILIATION rows of a group of rows."""
    head, rest = list[pa.RecordBatch](), iter(batches)
    for batch in rest:
        head.append(batch)
        if pc.max(batch.column("part")).as_py() == len(_PARTS) - 1:
            break
    before = pa.Table.from_batches(head)
    rows_by_argument = {"poison_records": _part(before, "given_up"), "dead_letters": _part(before, "letter")}
    for name, part_rows in rows_by_argument.items():
        argument = Argument("dlq_reconciliation", name)
        refuse_other_ids(part_rows, argument, _ROW_KEYS[name])
        refuse_duplicates(part_rows, argument, _ROW_KEYS[name])
    (around,) = _part(before, "around").to_pylist()
    key = {name: before.column(name)[0].as_py() for name in _NAMED}
    of_group = [{"group_id": key["group_id"], "dlq_topic": topic} for topic in around["dlq_topics"] or ()]
    last = pa.Table.from_batches(head[-1:])
    history = chain([last], (pa.Table.from_batches([batch]) for batch in rest))
    rows = reconcile(
        rows_by_argument["poison_records"],
        rows_by_argument["dead_letters"],
        (_part(table, "history") for table in history),
        dict.fromkeys(around["topic_ids"] or (), key["name"]),
        LetterTopics.of(pa.Table.from_pylist(of_group, _TOPIC), pa.Table.from_pylist(around["searched"], _REACH)),
        settings,
        begins_ms=whole_since_ms((first["log_offset"], first["log_time_ms"]) for first in around["beginnings"]),
        nameless={(key["group_id"], key["partition"])} if around["has_nameless"] else frozenset(),
    )
    deque(history, maxlen=0)
    return rows


def _part(rows: pa.Table, name: str) -> pa.Table:
    """The rows of one part, of the part's schema."""
    return _fields(rows.filter(pc.field("part") == list(_PARTS).index(name)), name, _PARTS[name])


def _fields(rows: pa.Table, column: str, schema: pa.Schema) -> pa.Table:
    """The fields of a column of structs, as rows of `schema`."""
    structs = rows.column(column).combine_chunks()
    return pa.table(dict(zip(structs.type.names, structs.flatten(), strict=True))).cast(schema)
