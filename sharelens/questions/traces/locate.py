"""The partition, offset and timestamp of user records with a key or near a time.

Keys are compared where they are read, in bounded memory. No byte of a record is kept, shown or written. A lake holds no
user records: there a time finds ranges of offsets by their batch headers, and a key nothing.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.conditions import filter_rows
from sharelens.evidence.reading import first_offset, read_chunks
from sharelens.kafka_log import reader
from sharelens.kafka_log.layout import LogDirectory, scan_log_directory
from sharelens.kafka_log.union import LogPartition, unite
from sharelens.output import Answer, Column, Row, name_cell, number_text
from sharelens.output.layouts import Layout
from sharelens.output.wording import listed
from sharelens.parameters.filters import KeyFilter, TopicChoice
from sharelens.questions.answers.missing import HOW_TOPICS, unseen
from sharelens.questions.answers.naming import resolve
from sharelens.questions.answers.shape import ABOUT, constant
from sharelens.source.request import Source
from sharelens.tables.opening import in_directories, open_evidence
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_share_partitions, read_topic_batches
from state_model.columnar.schemas import column
from state_model.errors import UsageError
from state_model.topics import INTERNAL_TOPICS, UNKNOWN_CLUSTER

MAX_ROWS = 1_000_000
RECORD, BATCH_HEADER = "record", "batch_header"
SCHEMA = pa.schema(
    [
        *(field for field in ABOUT if field.name != "group_id"),
        column("offset", pa.int64(), "offset of the record; of a batch header the batch's first offset"),
        column("last_offset", pa.int64(), "the same offset; of a batch header the batch's last offset"),
        column("timestamp_ms", pa.int64(), "timestamp of the record; of a batch header that of the first record"),
        column("timestamp_max_ms", pa.int64(), "the same timestamp; of a batch header the newest one"),
        column("timestamp_type", pa.string(), "CreateTime (a producer's clock) or LogAppendTime (a broker's)"),
        column("found_in", pa.string(), "record, or batch_header: a lake has no user records"),
        column("transactional", pa.bool_(), "written in a transaction; `trace` says whether it was aborted"),
        column("below_log_start", pa.bool_(), "lies below the log start offset"),
        column("uncommitted", pa.bool_(), "was at or above the high watermark"),
        column("completeness", pa.string(), "incomplete where a batch of the partition can't be read"),
        column("completeness_reason", pa.string(), "the first reason; null = complete"),
    ]
)
TRANSACTIONAL = 1 << 4
NEVER_SHOWN = "keys and values are never stored or shown; whether a transaction was aborted: see `trace`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """The searched records: with this key (None: any) and a timestamp in [from_ms, to_ms); None: no bound."""

    key: bytes | None = None
    from_ms: int | None = None
    to_ms: int | None = None

    @property
    def timed(self) -> bool:
        """Whether the time is bounded."""
        return self.from_ms is not None or self.to_ms is not None

    def wants(self, oldest: pa.Array, newest: pa.Array) -> pa.Array:
        """Which of some spans of time touch the wanted one."""
        reaches = pc.greater_equal(newest, self.from_ms if self.from_ms is not None else -(1 << 63))
        return reaches if self.to_ms is None else pc.and_(reaches, pc.less(oldest, self.to_ms))


def locate(source: Source, key_filter: KeyFilter, sought: Sought, row_limit: int | None = None) -> Answer:
    """The answer to `sharelens locate`: at most so many places, by topic id, partition and offset.

    Raises:
        UsageError: no such topic or partition, or a key with a lake.
    """
    match_limit = MAX_ROWS if row_limit is None else min(row_limit, MAX_ROWS)
    if source.lake is None:
        return _in_logs(source, key_filter, sought, match_limit)
    if sought.key is not None:
        raise UsageError(
            "locate: a lake has no user records and no keys; give --log-dir DIR with the "
            "topic's folders, or --around TIME for ranges of offsets"
        )
    with open_evidence(source) as evidence:
        return _in_lake(evidence, key_filter, sought, match_limit)


@dataclass(slots=True)
class _MatchList:
    """Rows so far, at most `match_limit`, and unreadable batches."""

    match_limit: int
    tables: list[pa.Table]
    rows: int = 0
    full: bool = False

    def take(self, rows: pa.Table) -> None:
        """Adds rows as far as there is room."""
        room = self.match_limit - self.rows
        self.full = self.full or rows.num_rows > room
        if rows.num_rows and room:
            self.tables.append(rows.slice(0, room))
            self.rows += self.tables[-1].num_rows

    def answer(
        self, summary: str, cluster_id: str | None, lost: dict[tuple[str, int], str], missing: Sequence[str] = ()
    ) -> Answer:
        """The answer; rows of a partition with unreadable batches are incomplete."""
        table = pa.concat_tables([SCHEMA.empty_table().select(_READ), *self.tables]).combine_chunks()
        places = zip(table.column("topic_id").to_pylist(), table.column("partition").to_pylist(), strict=True)
        reasons = [lost.get(place) for place in places]
        marks = ["complete" if reason is None else "incomplete" for reason in reasons]
        table = table.add_column(0, SCHEMA.field("cluster_id"), constant(cluster_id, table.num_rows, pa.string()))
        table = table.append_column("completeness", pa.array(marks, pa.string()))
        table = table.append_column("completeness_reason", pa.array(reasons, pa.string()))
        limit_warning = (
            f"stopped at {self.match_limit} places; there are more: raise --limit, or narrow --partition, --from, --to"
        )
        return Answer(
            table=table.cast(SCHEMA),
            columns=LAYOUT.columns(),
            summary=summary,
            warnings=(*missing, *([limit_warning] if self.full else [])),
            none="no such record",
        )


_READ = [name for name in SCHEMA.names if name not in ("cluster_id", "completeness", "completeness_reason")]


def _in_logs(source: Source, key_filter: KeyFilter, sought: Sought, match_limit: int) -> Answer:
    source = in_directories(source)
    if (live := source.live) is not None:
        for choice in key_filter.topics:
            if choice.text not in INTERNAL_TOPICS:
                live.ensure_records(choice.text)
    directories = [
        scan_log_directory(uri, include_deleted=source.include_deleted, leaves_out_unreadable=True)
        for uri in source.log_dirs
    ]
    left_out = [folder.warning for directory in directories for folder in directory.unreadable]
    chosen = _chosen(directories, key_filter)
    matches = _MatchList(match_limit=match_limit, tables=[])
    unreadable: Counter[str] = Counter()
    lost: dict[tuple[str, int], str] = {}
    for records, problems in _searched(chosen, sought, uncommitted=source.include_uncommitted):
        for problem in problems.select(["topic_id", "partition", "reason"]).to_pylist():
            unreadable[problem["reason"]] += 1
            lost.setdefault((problem["topic_id"], problem["partition"]), problem["reason"])
        matches.take(_matches(records, sought))
        if matches.full:
            break
    summary = ", ".join(f"{reason} {count}" for reason, count in sorted(unreadable.items())) or "none"
    cluster = source.cluster_id or next(
        (directory.cluster_id for directory in directories if directory.cluster_id), UNKNOWN_CLUSTER
    )
    names = ", ".join(sorted({name_cell(partition.topic) for partition in chosen}))
    return matches.answer(
        f"searched {len(chosen)} partitions of {names}; not readable: {summary}\n{NEVER_SHOWN}", cluster, lost, left_out
    )


def _chosen(directories: Sequence[LogDirectory], key_filter: KeyFilter) -> list[LogPartition]:
    """The partitions of the topics that the filter names, by topic, id and number."""
    partitions = unite(directories)
    chosen: list[LogPartition] = []
    for choice in key_filter.topics:
        if choice.text in INTERNAL_TOPICS:
            raise UsageError(f"locate: {choice.text} has no user records; see `sharelens records`")
        of_topic = [part for part in partitions if choice.text in (part.topic, part.topic_id)]
        matching = [part for part in of_topic if _is_selected(part.partition, choice, key_filter.partitions)]
        if not matching:
            names = sorted({part.topic for part in partitions if part.topic not in INTERNAL_TOPICS})
            missing = (
                f"topic {name_cell(choice.text)}" if not of_topic else f"such partition of {name_cell(choice.text)}"
            )
            have = f"partitions there: {listed(str(part.partition) for part in of_topic)}"
            where = ", ".join(directory.uri for directory in directories)
            have = (
                have if of_topic else f"topics there: {listed(names)}" if names else f"no user topic is: {HOW_TOPICS}"
            )
            raise UsageError(f"no {missing} in {where}; {have}")
        chosen += matching
    return sorted(chosen, key=lambda part: (part.topic_id, part.partition))


def _is_selected(number: int, choice: TopicChoice, partitions: frozenset[int]) -> bool:
    return (choice.partitions is None or number in choice.partitions) and (not partitions or number in partitions)


def _searched(
    partitions: Sequence[LogPartition], sought: Sought, *, uncommitted: bool
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """Records (LOG_RECORD) that may match and problems, in bounded chunks, by partition and in offset order."""
    for partition in partitions:
        begin = first_offset(partition)
        end = reader.readable_end(partition, include_uncommitted=uncommitted)
        for first, last in _ranges(partition, begin, end, sought) if sought.timed else [(begin, end)]:
            for chunk in read_chunks(partition, first, last, include_uncommitted=uncommitted):
                yield chunk.records, chunk.problems


def _ranges(partition: LogPartition, begin: int, end: int, sought: Sought) -> Iterator[tuple[int, int]]:
    """Ranges of offsets (half-open) of the batches whose headers touch the wanted time."""
    pending: tuple[int, int] | None = None
    for headers in reader.scan_batches(partition, begin, end):
        matching = headers.filter(sought.wants(headers.column("base_timestamp_ms"), headers.column("max_timestamp_ms")))
        columns = (matching.column(name).to_pylist() for name in ("base_offset", "last_offset"))
        for first, last in zip(*columns, strict=True):
            if pending is not None and first <= pending[1]:
                pending = (pending[0], last + 1)
                continue
            if pending is not None:
                yield pending
            pending = (first, last + 1)
    if pending is not None:
        yield pending


def _matches(records: pa.RecordBatch, sought: Sought) -> pa.Table:
    """The places of matching records; nothing of the records themselves."""
    stamps = records.column("timestamp_ms")
    matching = pc.and_(pc.invert(records.column("is_control")), sought.wants(stamps, stamps))
    if sought.key is not None:
        same = pc.equal(records.column("key"), pa.scalar(sought.key, pa.binary()))
        matching = pc.and_(matching, pc.fill_null(same, False))
    rows = pa.Table.from_batches([records.select([name for name in records.schema.names if name in _KEPT_COLUMNS])])
    rows = rows.filter(matching)
    marks = pc.not_equal(pc.bit_wise_and(rows.column("attributes"), pa.scalar(TRANSACTIONAL, pa.int16())), 0)
    columns = {name: rows.column(name) for name in rows.column_names}
    columns |= {"last_offset": columns["offset"], "timestamp_max_ms": columns["timestamp_ms"], "transactional": marks}
    columns["found_in"] = constant(RECORD, rows.num_rows, pa.string())
    return pa.table({name: columns[name] for name in _READ})


_KEPT_COLUMNS = (
    "topic_id", "topic", "partition", "offset", "timestamp_ms", "timestamp_type", "attributes", "below_log_start",
    "uncommitted",
)  # fmt: skip


def _in_lake(evidence: Tables, key_filter: KeyFilter, sought: Sought, match_limit: int) -> Answer:
    keys = resolve(evidence, key_filter)
    share_partitions = filter_rows(read_share_partitions(evidence), keys.expression()).select(["topic_id", "partition"])
    places = [
        (row["topic_id"], row["partition"])
        for row in share_partitions.group_by(share_partitions.column_names).aggregate([]).to_pylist()
    ]
    matches = _MatchList(match_limit=match_limit, tables=[])
    for batches in read_topic_batches(evidence, dict.fromkeys(places, 0)):
        data = batches.filter(pc.is_null(batches.column("control_type")))
        data = data.filter(sought.wants(data.column("base_timestamp_ms"), data.column("max_timestamp_ms")))
        columns = {name: data.column(name) for name in _READ if name in data.column_names}
        columns |= {"offset": data.column("base_offset"), "timestamp_ms": data.column("base_timestamp_ms")}
        columns["timestamp_max_ms"] = data.column("max_timestamp_ms")
        columns["found_in"] = constant(BATCH_HEADER, data.num_rows, pa.string())
        matches.take(pa.table({name: columns[name] for name in _READ}))
        if matches.full:
            break
    summary = (
        f"searched the batch headers of {len(places)} partitions, from the smallest start offset in share "
        "state on; a lake has no user records: --log-dir finds single ones"
    )
    missing = unseen(evidence, places, HOW_TOPICS)
    return matches.answer(summary, evidence.cluster_id, {}, missing)


def _offsets_cell(row: Row) -> str:
    first, last = row["offset"], row["last_offset"]
    return number_text(first) if first == last else f"{first}-{last}"


LAYOUT = Layout(
    schema=SCHEMA,
    fields="topic partition offset timestamp_ms timestamp_max_ms timestamp_type found_in transactional completeness",
    headings={"timestamp_type": "CLOCK"},
    cells=(Column(heading="RECORD-OFFSET", cell=_offsets_cell, right=True, fields=("offset", "last_offset")),),
    important="TOPIC PARTITION RECORD-OFFSET TIMESTAMP FOUND-IN CLOCK",
)
