"""What happened to a group, in the order of time: one list from all logs, each entry with the record that proves it.

Resets, creations and deletions, members, epochs, stalls, and archived, repeated and dead-lettered records, minute by
minute. Times are those of the writers: of the share coordinator, of the group coordinator and of the broker.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from measures import groups, stalls
from measures.offset_counts import offset_counts
from measures.settings import GroupSettings
from sharelens.filters import KeyFilter
from sharelens.output import Answer, by_importance, name_column, number_column, text_column, time_column
from sharelens.questions.completeness import evidence_line
from sharelens.questions.dlq_filter import DeadLetterFilter
from sharelens.questions.evidence import Evidence, Span
from sharelens.questions.given_up import given_up_stream
from sharelens.questions.life import event_rows
from sharelens.questions.measured import Scope, scope
from sharelens.questions.now import now_of, now_text
from sharelens.questions.poison import in_span, without_gaps
from sharelens.questions.redelivered import redelivered_stream
from sharelens.questions.stalled import long_enough, stall_stream
from sharelens.questions.state import TOPIC
from sharelens.request import CutChoice
from sharelens.times import lasted
from sharelens.wording import counted, number
from state_model.topics import OFFSETS_TOPIC, STATE_TOPIC

TIMELINE = pa.schema(
    [
        pa.field("at_ms", pa.int64()),
        pa.field("event", pa.string()),
        pa.field("group_id", pa.string()),
        pa.field("topic_id", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("records", pa.int64()),
        pa.field("text", pa.string()),
        pa.field("log_topic", pa.string()),
        pa.field("log_partition", pa.int32()),
        pa.field("log_offset", pa.int64()),
    ]
)
MINUTE_MS = 60_000
ORDER = [(name, "ascending") for name in ("at_ms", "topic", "partition", "event", "log_offset", "text")]
Entry = dict[str, Any]


def timeline(
    evidence: Evidence, key_filter: KeyFilter, cut: CutChoice, span: Span, settings: GroupSettings, min_duration_ms: int
) -> Answer:
    """The answer to `sharelens timeline`; `span` bounds the times of the entries.

    Raises:
        UsageError: the evidence has none of the names.
    """
    scoped = scope(evidence, key_filter, cut)
    now_ms = now_of(evidence, cut)
    stalling = stall_stream(scoped, span, settings, now_ms, min_duration_ms=min_duration_ms)
    entries = [
        *_life(event_rows(scoped)),
        *_members(evidence, scoped),
        *_stalls(long_enough(rows, min_duration_ms) for rows in stalling),
        *_archived(scoped, span, settings),
        *_redelivered(scoped, span),
        *_dead_letters(evidence, key_filter, scoped),
    ]
    names = evidence.names({entry["topic_id"] for entry in entries if entry["topic_id"] is not None})
    rows = [entry | {"topic": names.get(entry["topic_id"])} for entry in entries if _is_in(span, entry["at_ms"])]
    table = pa.Table.from_pylist(rows, schema=TIMELINE).sort_by(ORDER)
    counts = {row["values"]: row["counts"] for row in pc.value_counts(table.column("event")).to_pylist()}
    totals = ", ".join(f"{event} {counts[event]}" for event in sorted(counts)) or "none"
    return Answer(
        table=table,
        columns=TEXT_COLUMNS,
        summary=f"entries: {totals}\n{evidence_line(evidence.cover())}; {now_text(evidence, now_ms)}",
        warnings=scoped.warnings,
        none="nothing happened",
    )


def _is_in(span: Span, at_ms: int) -> bool:
    return (span.from_ms is None or at_ms >= span.from_ms) and (span.to_ms is None or at_ms < span.to_ms)


def _entry(row: Entry, event: str, at_ms: int, text: str, records: int | None = None, **proof: Any) -> Entry:
    """An entry about the share partition of a row; its proof is a record of the state log unless `proof` says else."""
    of_state = {
        "log_topic": STATE_TOPIC,
        "log_partition": row.get("state_partition"),
        "log_offset": row.get("log_offset"),
    }
    about = {name: row.get(name) for name in ("group_id", "topic_id", "partition")}
    return {**about, "at_ms": at_ms, "event": event, "records": records, "text": text, **of_state, **proof}


def _life(rows: pa.Table) -> Iterator[Entry]:
    for row in rows.to_pylist():
        before, after = row["start_offset_before"], row["start_offset_after"]
        is_known = after is not None and after >= 0 and before != after
        was = "" if before is None or before < 0 else f"{number(before)} to "
        text = f"start offset {was}{number(after)}" if is_known else ""
        yield _entry(row, row["event"], row["log_time_ms"], text)


def _members(evidence: Evidence, scoped: Scope) -> Iterator[Entry]:
    """Members that join, change and leave, and the group's epochs, by the group coordinator's log."""
    selected = frozenset(scoped.places.column("group_id").unique().to_pylist())
    there: set[tuple[str, str]] = set()
    for row in evidence.group_records(selected).to_pylist():
        kind, member = row["record_type"], (row["group_id"], row["member_id"])
        proof = {"log_topic": OFFSETS_TOPIC, "log_partition": row["partition"], "log_offset": row["log_offset"]}
        about = {"group_id": row["group_id"]}
        value: dict[str, Any] = {} if row["is_tombstone"] else json.loads(row["value_json"])
        if kind == groups.MEMBER and row["is_tombstone"]:
            there.discard(member)
            yield _entry(about, "member_left", row["timestamp_ms"], row["member_id"], **proof)
        elif kind == groups.MEMBER:
            event = "member_changed" if member in there else "member_joined"
            there.add(member)
            text = f"{row['member_id']} ({value['clientId']} on {value['clientHost']})"
            yield _entry(about, event, row["timestamp_ms"], text, **proof)
        elif kind == groups.GROUP and row["is_tombstone"]:
            yield _entry(about, "group_deleted", row["timestamp_ms"], "", **proof)
        elif kind == groups.GROUP:
            yield _entry(about, "rebalanced", row["timestamp_ms"], f"group epoch {value['epoch']}", **proof)


def _stalls(tables: Iterable[pa.Table]) -> Iterator[Entry]:
    for rows in tables:
        for row in rows.filter(pc.not_equal(rows.column("kind"), stalls.IDLE)).to_pylist():
            where = f"at offset {number(row['first_incomplete_offset'])}: {row['kind']}"
            text = f"{where}, {lasted(row['duration_ms'])}"
            yield _entry(row, "stall_began", row["since_ms"], text if row["until_ms"] is None else where)
            if row["until_ms"] is not None:
                yield _entry(row, "stall_ended", row["until_ms"], f"{text}, {row['ended_by']}")


def _archived(scoped: Scope, span: Span, settings: GroupSettings) -> Iterator[Entry]:
    parts = (without_gaps(in_span(rows, span)) for rows in given_up_stream(scoped, settings))
    for row in _by_minute(parts, "last_outcome_ms", "offset", "log_offset", "cause"):
        text = f"{counted(row['records'], 'record')}, cause {row['value']}"
        yield _entry(row, "archived", row["at_ms"], text, row["records"])


def _redelivered(scoped: Scope, span: Span) -> Iterator[Entry]:
    for row in _by_minute(redelivered_stream(scoped, span), "last_ms", "first_offset", "last_log_offset", "kind"):
        text = f"{counted(row['records'], 'record')}, {row['value']}"
        yield _entry(row, "redelivered", row["at_ms"], text, row["records"])


def _dead_letters(evidence: Evidence, key_filter: KeyFilter, scoped: Scope) -> Iterator[Entry]:
    """Dead letters minute by minute; their headers name topics, so a filter by topic leaves them out."""
    if key_filter.topics or key_filter.partitions:
        return
    selected = frozenset(scoped.places.column("group_id").unique().to_pylist())
    letters = evidence.dead_letters(DeadLetterFilter(groups=selected))
    minutes = pc.multiply(pc.divide(letters.column("timestamp_ms"), MINUTE_MS), MINUTE_MS)
    keys = ["group_id", "dlq_topic", "dlq_partition", "minute"]
    sums = (
        letters.append_column("minute", minutes)
        .group_by(keys)
        .aggregate([([], "count_all"), ("timestamp_ms", "min"), ("dlq_offset", "min")])
    )
    for row in sums.to_pylist():
        proof = {
            "log_topic": row["dlq_topic"],
            "log_partition": row["dlq_partition"],
            "log_offset": row["dlq_offset_min"],
        }
        text = f"{counted(row['count_all'], 'dead letter')} in {row['dlq_topic']}"
        yield _entry(
            {"group_id": row["group_id"]}, "dead_letters", row["timestamp_ms_min"], text, row["count_all"], **proof
        )


def _by_minute(tables: Iterable[pa.Table], time: str, first: str, log_offset: str, value: str) -> Iterator[Entry]:
    """Ranges of record offsets as sums by share partition, minute of `time` and `value`, each with its first record."""
    keys = ["group_id", "topic_id", "partition", "state_partition", "minute", value]
    functions = [("records", "sum"), (time, "min"), (log_offset, "min")]
    parts = []
    for rows in tables:
        sizes = offset_counts(rows, first)
        minutes = pc.multiply(pc.divide(rows.column(time), MINUTE_MS), MINUTE_MS)
        sized = rows.append_column("records", sizes).append_column("minute", minutes)
        sums = sized.group_by(keys).aggregate(functions)
        parts.append(sums.rename_columns([*keys, "records", time, log_offset]))
    if not parts:
        return
    for row in pa.concat_tables(parts).group_by(keys).aggregate(functions).to_pylist():
        yield row | {
            "records": row["records_sum"],
            "at_ms": row[f"{time}_min"],
            "log_offset": row[f"{log_offset}_min"],
            "value": row[value],
        }


TEXT_COLUMNS = by_importance(
    (
        time_column("AT", "at_ms"),
        name_column("EVENT", "event"),
        name_column("GROUP", "group_id"),
        TOPIC,
        number_column("PARTITION", "partition"),
        number_column("RECORDS", "records"),
        text_column("TEXT", "text"),
        name_column("LOG-TOPIC", "log_topic"),
        number_column("LOG-PARTITION", "log_partition"),
        number_column("LOG-OFFSET", "log_offset"),
    ),
    "AT EVENT TEXT TOPIC PARTITION RECORDS GROUP LOG-OFFSET LOG-PARTITION LOG-TOPIC",
)
