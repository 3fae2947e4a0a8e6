"""Writes gold.dlq_reconciliation: dead letters and archived records; incremental by group.

A dead letter names a topic and no id, so share partitions of a group whose topics bore one name are judged together.
Groups without a dead letter, and without a record that was on its way to one (ARCHIVING), cost a look at two columns.
gold.poison_record names the records that were given up, and gets the causes of their dead letters
(`jobs.measure.letter_causes`); the histories give the states at the times of letters, and are streamed. A verdict whose
history rows retention dropped stays.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jobs import books, retained
from jobs.incarnations import newest_incarnations
from jobs.lake_settings import stored_settings
from jobs.measure import letter_causes, reading
from jobs.measure.files import MeasureFiles
from jobs.measure.inputs import PROGRESS, LakeInputs
from jobs.measure.reading import STATE, StateTopic, by_cluster
from jobs.measure.steps import in_one_step
from jobs.measure.touched import touched_since
from jobs.progress import Progress
from jobs.spark.executors import Engine
from sharelens.evidence.coverage import coverage
from sharelens.lake import bounded_scan, user_topics
from sharelens.lake.dlq_partitions import LETTERS_READ, partitions_in_books
from sharelens.lake.lake import Lake, LakeReader
from sharelens.lake.parquet import DataFile, ParquetSink
from sharelens.lake.slices import EVERY_RUN, SILVER, PartitionKey, slices
from sharelens.lake.tables import TABLES
from sharelens.measures.catalog import OF_TABLE
from sharelens.measures.dlq import schemas as words
from sharelens.measures.dlq.causes import Headers, without_letter_causes
from sharelens.measures.dlq.reach import LetterTopics, whole_since_ms
from sharelens.measures.dlq.reconciliation import (
    DLQ_POSITION,
    HISTORY_READ,
    LETTER_COLUMNS,
    ORDER,
    nameless_places,
    reconcile,
)
from sharelens.measures.poison import DEAD_LETTER
from sharelens.measures.schemas import POISON_RECORD
from sharelens.measures.settings.over_time import GROUP_NAMES
from sharelens.measures.topics.headers import NoRecords
from state_model.columnar.keys import PLACE_KEY, SHARE_PARTITION_KEY
from state_model.topics import RECORD_TOPICS, STATE_TOPIC

TABLE, LETTERS, GIVEN_UP = "gold.dlq_reconciliation", "silver.dlq_record", "gold.poison_record"
CLUSTER_GROUP = ["cluster_id", "group_id"]
GROUPS_A_TASK = 128
KEYS_AT_ONCE = 512
NAMED = pa.schema([("group_id", pa.string()), ("name", pa.string()), ("partition", pa.int32())])
"""Share partitions whose topics bore one name are judged together."""
DUE = pc.field("archiving_ms").is_valid()
"""The given up records that were on their way to a dead letter (ARCHIVING)."""
WITH_LETTER = pc.field("cause_source") == DEAD_LETTER
"""Those that may have the cause of a dead letter."""
RESTS_ON = ["cluster_id", "state_partition", "log_offset"]
"""Columns that name, in the reconciliation and in GIVEN_UP, the record with which something was given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Groups of one state topic to judge.

    `searched`: DLQ_PARTITION rows of the cluster.
    `begins_ms`: log time from which on no share partition's records are missing. `dropped_ms`: the same, where it is
    retention that took what came before; None where it took nothing.
    """

    topic: StateTopic
    run: int
    groups: tuple[str, ...]
    searched: pa.Table
    begins_ms: int | None
    dropped_ms: int | None


def run_reconcile(engine: Engine, lake: Lake, run: int, progress: Progress) -> dict[str, int]:
    """Judges the groups that have news, and returns the number of rows written by table."""
    if books.is_committed(lake, TABLE, "measure", run):
        return {}
    before = lake.transaction(TABLE, "measure") or 0
    touched = _touched(lake, before)
    tasks = list(_tasks(lake, run, touched))
    outcomes = engine.run("measure", reconcile_task, tasks, progress, size_bytes=_size_bytes(lake))
    replaced = pa.concat_tables([letter_causes.REPLACED.empty_table(), *(outcome.replaced for outcome in outcomes)])
    letter_causes.commit_causes(lake, run, [file for outcome in outcomes for file in outcome.causes], replaced)
    adds = [file for outcome in outcomes for file in outcome.verdicts]
    kept_files, removes = books.rewritten_without(lake, TABLE, _rows_of(touched))
    books.commit(lake, TABLE, "measure", run, [*adds, *kept_files], removes)
    return {TABLE: sum(file.record_count for file in adds)}


def _concerned(lake: Lake, before: int) -> pa.Table:
    """The groups that have a dead letter, a row in the table, or a record that went on its way to a dead letter after
    run `before`."""
    groups = [
        _different(lake, table, CLUSTER_GROUP, where)
        for table, where in (
            (LETTERS, pc.field("group_id").is_valid()),
            (TABLE, pc.field("group_id").is_valid()),
            (GIVEN_UP, DUE & (pc.field("run_id") > before)),
        )
    ]
    return pa.concat_tables(groups).group_by(CLUSTER_GROUP).aggregate([])


def _different(lake: LakeReader, table: str, columns: Sequence[str], where: pc.Expression) -> pa.Table:
    """The different values of some columns together, of the rows that meet a condition; file by file."""
    schema = TABLES[table].schema
    tables = [pa.schema([(name, schema.field(name).type) for name in columns]).empty_table()]
    for fragment in lake.snapshot(table).dataset().get_fragments(filter=where):
        rows = fragment.to_table(schema=schema, columns=list(columns), filter=where)
        tables.append(rows.group_by(list(columns)).aggregate([]).cast(tables[0].schema))
    return pa.concat_tables(tables).group_by(list(columns)).aggregate([])


def _touched(lake: Lake, before: int) -> pa.Table:
    """The concerned groups with news since run `before`: of their share partitions, their dead letters, any topic for
    dead letters (what a topic holds decides what is missing), or the beginning of a state partition."""
    if not letter_causes.has_causes(lake):
        return _concerned(lake, 0)
    later = books.extents(lake, (pc.field("run_id") > before) & (pc.field("status") == "taken"))
    looked_into = [row for row in later if row["topic"] not in RECORD_TOPICS]
    if any(row["content"] == "log_record" or row["rebuild"] for row in looked_into):
        return _concerned(lake, 0)
    if lake.snapshot(LETTERS).files and _begins_otherwise(lake, before, later):
        return _concerned(lake, 0)
    named = lake.snapshot("silver.name").dataset().count_rows(filter=pc.field("run_id") > before)
    groups = _concerned(lake, 0 if named else before)
    if groups.num_rows == 0:
        return groups
    places = (
        touched_since(lake, before, settings=GROUP_NAMES).select(CLUSTER_GROUP).group_by(CLUSTER_GROUP).aggregate([])
    )
    return groups.join(places, keys=CLUSTER_GROUP, join_type="left semi")


def _rows_of(groups: pa.Table) -> pc.Expression | None:
    """The rows of these groups in the table."""
    drop: pc.Expression | None = None
    for cluster_id, rows in by_cluster(groups):
        group_ids = rows.column("group_id").combine_chunks()
        is_of_groups = (pc.field("cluster_id") == cluster_id) & pc.field("group_id").isin(group_ids)
        drop = is_of_groups if drop is None else drop | is_of_groups
    return drop


def _tasks(lake: Lake, run: int, touched: pa.Table) -> Iterator[Task]:
    if touched.num_rows == 0:
        return
    incarnations = newest_incarnations(lake)
    dropped, view = _dropped(lake), lake.view()
    begins = _begins(lake, dropped)
    for cluster_id, rows in by_cluster(touched):
        topic = StateTopic(lake=view, cluster_id=cluster_id, log_topic_id=incarnations.get(cluster_id, ""))
        dropped_times = [cut.time_ms for key, cut in dropped.items() if key[:2] == (cluster_id, topic.log_topic_id)]
        groups = rows.column("group_id").sort().to_pylist()
        searched = _searched(lake, topic)
        for first in range(0, len(groups), GROUPS_A_TASK):
            yield Task(
                topic=topic,
                run=run,
                groups=tuple(groups[first : first + GROUPS_A_TASK]),
                searched=searched,
                begins_ms=begins.get((cluster_id, topic.log_topic_id)),
                dropped_ms=max(dropped_times, default=None),
            )


def _searched(lake: Lake, topic: StateTopic) -> pa.Table:
    """DLQ_PARTITION rows of a cluster."""

    def read_letters(where: pc.Expression) -> Iterator[pa.Table]:
        condition = (pc.field("cluster_id") == topic.cluster_id) & where
        return bounded_scan.tables(lake.snapshot(LETTERS).dataset(), LETTERS_READ, condition)

    books_rows = topic.scan(books.EXTENT, TABLES[books.EXTENT].schema.names, pc.scalar(True))
    return partitions_in_books(books_rows.to_pylist(), read_letters)


def _begins(lake: Lake, dropped: Mapping[PartitionKey, retained.Cut]) -> dict[tuple[str, str], int]:
    """For each state topic the log time from which on the lake has all its partitions."""
    beginnings: dict[tuple[str, str], list[tuple[int, int]]] = {}
    pieces_of = slices(lake.snapshot("silver.share_record"), SILVER, runs=EVERY_RUN)
    for key, pieces in pieces_of.items():
        offset = min(piece.first_offset for piece in pieces)
        time_ms = min(piece.oldest_ms for piece in pieces)
        if (cut := dropped.get(key)) is not None:
            offset, time_ms = max(offset, cut.offset), max(time_ms, cut.time_ms)
        beginnings.setdefault(key[:2], []).append((offset, time_ms))
    return {topic: begins for topic, firsts in beginnings.items() if (begins := whole_since_ms(firsts)) is not None}


def _begins_otherwise(lake: Lake, before: int, later: Sequence[dict[str, Any]]) -> bool:
    """Whether the `later` extents change from when on the lake has all state partitions.

    Those do that reach below earlier ones, and those of a partition without earlier ones that lacks its first records.
    """
    news = [row for row in later if row["topic"] == STATE_TOPIC and row["content"] == "log_record"]
    if any(row["rebuild"] for row in news):
        return True
    earlier = (pc.field("topic") == STATE_TOPIC) & (pc.field("status") == "taken") & (pc.field("run_id") <= before)
    earlier_partitions = books.by_partition(books.extents(lake, earlier)).keys()
    fresh = [coverage(rows).covered for key, rows in books.by_partition(news).items() if key not in earlier_partitions]
    return any(covered[0][0] > 0 for covered in fresh if covered)


def _dropped(lake: Lake) -> dict[PartitionKey, retained.Cut]:
    """The retention cut of each state partition that has one."""
    return {**retained.cuts(lake, retained.SILVER), **retained.cuts(lake, retained.HISTORY)}


def _size_bytes(lake: Lake) -> int:
    """About how much the tasks read."""
    tables = (LETTERS, STATE)
    files = [file for name in tables for file in lake.snapshot(name).files]
    return sum(int(str(file["size_bytes"])) for file in files)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """New files of the reconciliation and of GIVEN_UP by a task, and the rows of GIVEN_UP that it replaces."""

    verdicts: tuple[DataFile, ...]
    causes: tuple[DataFile, ...]
    replaced: pa.Table


def reconcile_task(task: Task) -> Outcome:
    """Judges the groups of a task and writes their rows; runs on an executor."""
    lake, replaced = task.topic.lake, [letter_causes.REPLACED.empty_table()]
    with ParquetSink(lake, TABLES[TABLE], constants={"run_id": task.run}) as sink, _given_up_files(lake) as files:
        for judged in _judged(task):
            rows = judged.rows
            replaced.append(letter_causes.write_causes(files, judged.given_up, judged.stated_rows, rows, task.run))
            sink.write(rows, cluster_id=task.topic.cluster_id)
    return Outcome(verdicts=tuple(sink.files), causes=tuple(files.files), replaced=pa.concat_tables(replaced))


def _given_up_files(lake: LakeReader) -> MeasureFiles:
    return MeasureFiles(lake, OF_TABLE[GIVEN_UP])


class Judged(NamedTuple):
    """DLQ_RECONCILIATION rows of some share partitions, and their rows of GIVEN_UP.

    `stated_rows`: the same rows without causes from dead letters.
    """

    rows: pa.Table
    given_up: pa.Table
    stated_rows: pa.Table


def _judged(task: Task) -> Iterator[Judged]:
    """The verdicts, a bounded number of share partitions at a time."""
    topic = task.topic
    of_groups = pc.field("group_id").isin(pa.array(task.groups, pa.string()))
    letters = topic.scan(LETTERS, LETTER_COLUMNS, of_groups)
    names = user_topics.names(topic.scan, pc.scalar(True))
    settings = stored_settings(topic.lake, topic.cluster_id).groups
    letter_topics = LetterTopics.of(letters, task.searched)
    of_cluster_groups = of_groups & (pc.field("cluster_id") == topic.cluster_id)
    of_topic = pc.field("log_topic_id") == topic.log_topic_id
    measured = _different(topic.lake, PROGRESS, PLACE_KEY, of_cluster_groups & of_topic)
    due = _different(topic.lake, GIVEN_UP, SHARE_PARTITION_KEY, of_cluster_groups & (DUE | WITH_LETTER))
    nameless = nameless_places(measured, names)
    verdicts = _verdicts(topic, of_groups, task.dropped_ms)
    for keys, letters_of_keys in _together(measured, due, letters, names):
        every_row = in_one_step(keys.append_column("whole", pa.repeat(True, keys.num_rows)), 0)
        inputs = LakeInputs(reading.Task(topic=topic, run=task.run, before=0, keys=every_row))
        given_up = letter_causes.given_up(inputs)
        stated_rows = without_letter_causes(given_up, _headers(inputs))
        rows = reconcile(
            stated_rows.select(POISON_RECORD.names).cast(POISON_RECORD),
            letters_of_keys,
            inputs.history_parts(HISTORY_READ),
            _only(names, keys),
            letter_topics,
            settings,
            begins_ms=task.begins_ms,
            nameless=nameless,
        )
        yield Judged(rows=_with_verdicts(rows, verdicts), given_up=given_up, stated_rows=stated_rows)


def _headers(inputs: LakeInputs) -> Headers:
    return lambda begins: NoRecords.of(inputs.headers(begins))


def _verdicts(topic: StateTopic, of_groups: pc.Expression, dropped_ms: int | None) -> pa.Table:
    """DLQ_RECONCILIATION rows of unexpected letters whose verdict rests on records that retention dropped since."""
    if dropped_ms is None:
        return words.DLQ_RECONCILIATION.empty_table()
    sure = of_groups & (pc.field("status") == words.UNEXPECTED) & (pc.field("dead_lettered_ms") < dropped_ms)
    return topic.scan(TABLE, words.DLQ_RECONCILIATION.names, sure)


def _with_verdicts(rows: pa.Table, verdicts: pa.Table) -> pa.Table:
    """The rows, with the earlier verdict where the records of a letter are gone."""
    if verdicts.num_rows == 0:
        return rows
    at = pa.array(np.arange(rows.num_rows))
    lost = rows.select([*DLQ_POSITION, "status"]).append_column("row", at).filter(pc.field("status") == words.UNKNOWN)
    lost = lost.join(verdicts.select(DLQ_POSITION), keys=DLQ_POSITION, join_type="left semi")
    again = verdicts.join(lost.select(DLQ_POSITION), keys=DLQ_POSITION, join_type="left semi")
    stays = np.ones(rows.num_rows, np.bool_)
    stays[lost.column("row").to_numpy()] = False
    row_parts = [rows.filter(pa.array(stays)), again.select(rows.column_names).cast(rows.schema)]
    return pa.concat_tables(row_parts).sort_by(ORDER)


def rests_on(lake: Lake) -> pa.Table:
    """RESTS_ON columns of the records that verdicts rest on; retention keeps them as long as the letters."""
    return _different(lake, TABLE, RESTS_ON, pc.field("log_offset").is_valid())


def _only(names: Mapping[str, str], keys: pa.Table) -> dict[str, str]:
    """The names of the topics of some share partitions."""
    ids = keys.column("topic_id").unique().to_pylist()
    return {topic_id: names[topic_id] for topic_id in ids if topic_id in names}


def _together(
    measured: pa.Table, due: pa.Table, letters: pa.Table, names: Mapping[str, str]
) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Share partitions (SHARE_PARTITION_KEY) with the dead letters that may be theirs, whole names together.

    Share partitions that neither have a record on its way to a dead letter nor are named by one are left out.
    """
    named = [_named(rows, names) for rows in (measured, due, letters.filter(pc.is_valid(letters.column("topic"))))]
    names_to_judge = pa.concat_tables([rows.select(NAMED.names).cast(NAMED) for rows in named[1:]])
    order = [(name, "ascending") for name in NAMED.names]
    names_to_judge = names_to_judge.group_by(NAMED.names).aggregate([]).sort_by(order)
    for first in range(0, names_to_judge.num_rows, KEYS_AT_ONCE):
        names_at_once = names_to_judge.slice(first, KEYS_AT_ONCE)
        keys, named_letters = (
            rows.join(names_at_once, keys=NAMED.names, join_type="left semi") for rows in (named[0], named[2])
        )
        yield (
            keys.select(PLACE_KEY).sort_by([(name, "ascending") for name in PLACE_KEY]),
            named_letters.select(LETTER_COLUMNS),
        )


def _named(rows: pa.Table, names: Mapping[str, str]) -> pa.Table:
    """The rows with the name of their topic, known by its id or as it is written."""
    column = "topic_id" if "topic_id" in rows.column_names else "topic"
    topics = rows.column(column).dictionary_encode().combine_chunks()
    labels = pa.array([names.get(text, text) for text in topics.dictionary.to_pylist()], pa.string())
    return rows.append_column("name", labels.take(topics.indices))
