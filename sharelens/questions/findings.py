"""Findings: what is wrong now, the worst first, as one line for each group and kind.

kind                    severity   when
evidence_old            warning    now lies long after the last time the brokers' files tell
stuck                   error      a share partition makes no progress for the least duration of a stall
no_members              error      a group without members has records to do
not_started             warning    a group has done no record of a user partition with records since it got it
lag_growing             warning    the lag of a group is larger than it was
members_unknown         info       a group has records to do, and its members are not in the evidence
deleted_and_created     warning    a share partition was created again, recently
start_offset_reset      warning    a start offset was reset or went back, recently
records_archived        warning    a group archived records, recently
dead_letters_missing    error      dead letters are due and missing
redelivery_burst        warning    more than a tenth of the recent deliveries were repeated ones
evidence_gap            warning    the state log has gaps, or records that can't be read
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from measures.stalls import MIN_DURATION_MS, SILENT
from sharelens.questions.group_rows import lag_of_groups, sums_of_groups, worst_of_groups
from sharelens.questions.signs import Signs
from sharelens.times import lasted
from sharelens.wording import clock, counted, number, place
from state_model.columnar.keys import SHARE_PARTITION_KEY

ERROR, WARNING, INFO = "error", "warning", "info"
OLD_EVIDENCE_MS = 600_000
"""So long after the last record, the silence of the whole log is a finding."""
LEAST_GROWTH = 10
LARGE_SHARE = 0.1
"""Growth of less than LEAST_GROWTH records, or of a tenth of the lag, is none; nor is a smaller share of repeats."""
DEAD, EMPTY = "DEAD", "EMPTY"

FINDING = pa.schema(
    [
        pa.field("severity", pa.string()),
        pa.field("kind", pa.string()),
        pa.field("group_id", pa.string()),
        pa.field("topic_id", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("share_partitions", pa.int64()),
        pa.field("size", pa.int64()),
        pa.field("since_ms", pa.int64()),
        pa.field("text", pa.string()),
        pa.field("command", pa.string()),
    ]
)
Row = Mapping[str, Any]
Command = Callable[[str, list[str]], str]
"""A command line from the name of a command and its options."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A row of FINDING; `question` is the command that explains it, with `options`.

    `topic_id`, `partition`: of the worst share partition, of `share_partitions` in all. `size`: records, None: unknown.
    """

    severity: str
    kind: str
    text: str
    question: str
    options: tuple[str, ...] = ()
    group_id: str | None = None
    topic_id: str | None = None
    topic: str | None = None
    partition: int | None = None
    share_partitions: int = 0
    size: int | None = None
    since_ms: int | None = None


def findings(signs: Signs, min_duration_ms: int = MIN_DURATION_MS) -> list[Finding]:
    """The findings, the worst first: by kind, then by size."""
    without_members = _without_members(signs)
    silent_groups = {finding.group_id for finding in without_members}
    return [
        *_old_evidence(signs),
        *_stuck(signs, silent_groups, min_duration_ms),
        *without_members,
        *_missing_letters(signs),
        *_not_started(signs, min_duration_ms),
        *_growing(signs, silent_groups),
        *_events(signs),
        *_archived(signs),
        *_redelivered(signs),
        *_gaps(signs),
        *_unknown_members(signs),
    ]


def finding_rows(rows: Iterable[Finding], command: Command) -> pa.Table:
    """FINDING rows."""
    columns = [
        {name: getattr(row, name) for name in FINDING.names if name != "command"}
        | {"command": command(row.question, list(row.options))}
        for row in rows
    ]
    return pa.Table.from_pylist(columns, schema=FINDING)


def _old_evidence(signs: Signs) -> Iterator[Finding]:
    age_ms = signs.now_ms - signs.last_ms
    if age_ms >= OLD_EVIDENCE_MS and signs.last_ms:
        yield Finding(
            severity=WARNING,
            kind="evidence_old",
            text=f"the evidence ends {lasted(age_ms)} ago: nothing was written to the state log since",
            question="status",
            since_ms=signs.last_ms,
        )


def _stuck(signs: Signs, explained: set[str | None], min_duration_ms: int) -> list[Finding]:
    """One for each group; silence of a group without members is explained by that."""
    rows = signs.stalls.filter(pc.greater_equal(signs.stalls.column("duration_ms"), min_duration_ms))
    silent = pc.equal(rows.column("kind"), SILENT)
    of_explained = pc.is_in(rows.column("group_id"), value_set=pa.array(sorted(filter(None, explained)), pa.string()))
    rows = rows.filter(pc.invert(pc.and_(silent, of_explained)))
    result = []
    for row, count in worst_of_groups(rows, [("duration_ms", "descending"), ("finished_behind", "descending")]):
        where = place(signs.names.get(row["topic_id"]), row["topic_id"], row["partition"])
        offset = row["first_incomplete_offset"]
        silent_now = row["kind"] == SILENT
        verb = "makes no progress in" if silent_now else f"stands still at offset {number(offset)} of"
        end = row["end_offset"]
        result.append(
            _of_group(
                signs,
                row,
                severity=ERROR,
                kind="stuck",
                text=f"{verb} {where} since {clock(row['since_ms'], signs.now_ms)} "
                f"({lasted(row['duration_ms'])}, {row['kind']}){_more(count)}",
                question="stalled" if silent_now else "trace",
                options=() if silent_now else (f"--topic={_typed_topic(signs, row)}", f"--offset={offset}"),
                share_partitions=count,
                size=None if end is None else max(0, end - offset),
                since_ms=row["since_ms"],
            )
        )
    return result


def _without_members(signs: Signs) -> list[Finding]:
    """Groups whose coordinator knows no member, with records to do."""
    if signs.groups is None:
        return []
    empty = signs.groups.filter(pc.equal(signs.groups.column("state"), EMPTY))
    since = dict(zip(empty.column("group_id").to_pylist(), empty.column("last_change_ms").to_pylist(), strict=True))
    return [
        _of_group(
            signs,
            row,
            severity=ERROR,
            kind="no_members",
            text=f"lag {number(row['lag_sum'])}, no members since {clock(since[row['group_id']], signs.now_ms)}"
            f"{_more(row['share_partitions'])}",
            question="groups",
            share_partitions=row["share_partitions"],
            size=row["lag_sum"],
            since_ms=since[row["group_id"]],
        )
        for row in lag_of_groups(signs.lag)
        if row["group_id"] in since
    ]


def _not_started(signs: Signs, min_duration_ms: int) -> list[Finding]:
    """Share partitions without a start offset in the log: nothing was written since they were made.

    Without the end of the user partition it is unknown whether there is a record to do.
    """
    rows = signs.not_started
    rows = rows.filter(pc.less_equal(rows.column("log_time_ms"), signs.now_ms - min_duration_ms))
    rows = rows.filter(pc.fill_null(rows.column("has_records"), True))
    result = []
    for row, count in worst_of_groups(rows, [("has_records", "descending"), ("log_time_ms", "ascending")]):
        where = place(signs.names.get(row["topic_id"]), row["topic_id"], row["partition"])
        known = "" if row["has_records"] else "; whether there are records is unknown"
        result.append(
            _of_group(
                signs,
                row,
                severity=WARNING if row["has_records"] else INFO,
                kind="not_started",
                text=f"no record of {where} done since {clock(row['log_time_ms'], signs.now_ms)}{known}{_more(count)}",
                question="lag",
                share_partitions=count,
                since_ms=row["log_time_ms"],
            )
        )
    return sorted(result, key=lambda finding: finding.severity != WARNING)


def _unknown_members(signs: Signs) -> list[Finding]:
    """Groups with records to do of which the group coordinator's log is not in the evidence."""
    known = set() if signs.groups is None else set(signs.groups.column("group_id").to_pylist())
    unknown = [row for row in lag_of_groups(signs.lag) if row["group_id"] not in known]
    return [
        _of_group(
            signs,
            row,
            severity=INFO,
            kind="members_unknown",
            text=f"lag {number(row['lag_sum'])}, members unknown: __consumer_offsets has no record of the group here",
            question="groups",
            options=(),
            share_partitions=row["share_partitions"],
            size=row["lag_sum"],
        )
        for row in unknown
    ]


def _growing(signs: Signs, explained: set[str | None]) -> list[Finding]:
    """Groups whose lag is larger than it was; the share partitions of both moments count."""
    if signs.earlier_lag is None or signs.earlier_ms is None:
        return []
    earlier = signs.earlier_lag.rename_columns([*SHARE_PARTITION_KEY, "lag_before"])
    both = signs.lag.select([*SHARE_PARTITION_KEY, "lag"]).join(earlier, keys=SHARE_PARTITION_KEY, join_type="inner")
    both = both.filter(pc.and_(pc.is_valid(both.column("lag")), pc.is_valid(both.column("lag_before"))))
    both = both.append_column("growth", pc.subtract(both.column("lag"), both.column("lag_before")))
    sums = both.group_by("group_id").aggregate([("lag", "sum"), ("growth", "sum")])
    growth = {row["group_id"]: row["growth_sum"] for row in sums.to_pylist()}
    result = []
    for row in lag_of_groups(signs.lag):
        more = growth.get(row["group_id"], 0)
        if row["group_id"] in explained or more < max(LEAST_GROWTH, LARGE_SHARE * row["lag_sum"]):
            continue
        result.append(
            _of_group(
                signs,
                row,
                severity=WARNING,
                kind="lag_growing",
                text=f"lag {number(row['lag_sum'])}, {number(more)} more than at "
                f"{clock(signs.earlier_ms, signs.now_ms)}{_more(row['share_partitions'])}",
                question="lag",
                share_partitions=row["share_partitions"],
                size=row["lag_sum"],
                since_ms=signs.earlier_ms,
            )
        )
    return result


def _events(signs: Signs) -> Iterator[Finding]:
    """Recent resets and creations of share partitions that were there before."""
    for kind, events, verb in (
        ("deleted_and_created", ("recreated",), "was deleted and created again"),
        ("start_offset_reset", ("reset", "start_offset_went_back"), "was set back to start offset"),
    ):
        rows = signs.events.filter(pc.is_in(signs.events.column("event"), value_set=pa.array(events)))
        for row, count in worst_of_groups(rows, [("log_time_ms", "descending")]):
            where = place(signs.names.get(row["topic_id"]), row["topic_id"], row["partition"])
            offset = f" {number(row['start_offset_after'])}" if kind == "start_offset_reset" else ""
            yield _of_group(
                signs,
                row,
                severity=WARNING,
                kind=kind,
                text=f"{where} {verb}{offset} at {clock(row['log_time_ms'], signs.now_ms)}{_more(count)}",
                question="life",
                share_partitions=count,
                since_ms=row["log_time_ms"],
            )


def _archived(signs: Signs) -> list[Finding]:
    """Records that groups archived recently."""
    rows = signs.attempts.filter(pc.equal(signs.attempts.column("outcome"), "archived"))
    return [
        _of_group(
            signs,
            row,
            severity=WARNING,
            kind="records_archived",
            text=f"archived {counted(row['size'], 'record')} since {clock(row['since_ms'], signs.now_ms)}"
            f"{_more(row['share_partitions'])}",
            question="poison",
            share_partitions=row["share_partitions"],
            size=row["size"],
            since_ms=row["since_ms"],
        )
        for row in sums_of_groups(rows, "offsets", signs.first_ms)
    ]


def _missing_letters(signs: Signs) -> list[Finding]:
    rows = signs.missing_letters
    rows = rows.append_column("hour_ms", pa.nulls(rows.num_rows, pa.int64()))
    return [
        _of_group(
            signs,
            row,
            severity=ERROR,
            kind="dead_letters_missing",
            text=f"{counted(row['size'], 'dead letter')} missing{_more(row['share_partitions'])}",
            question="dlq",
            share_partitions=row["share_partitions"],
            size=row["size"],
        )
        for row in sums_of_groups(rows, "records", signs.first_ms)
    ]


def _redelivered(signs: Signs) -> list[Finding]:
    """Groups of which many of the recent deliveries were repeated ones."""
    deliveries = {row["group_id"]: row["size"] for row in sums_of_groups(signs.attempts, "deliveries", signs.first_ms)}
    return [
        _of_group(
            signs,
            row,
            severity=WARNING,
            kind="redelivery_burst",
            text=f"{number(row['size'])} of {counted(deliveries[row['group_id']], 'delivery', 'deliveries')} since "
            f"{clock(row['since_ms'], signs.now_ms)} were repeated ones{_more(row['share_partitions'])}",
            question="redelivered",
            share_partitions=row["share_partitions"],
            size=row["size"],
            since_ms=row["since_ms"],
        )
        for row in sums_of_groups(signs.attempts, "extra_deliveries", signs.first_ms)
        if row["size"] >= max(LEAST_GROWTH, LARGE_SHARE * deliveries[row["group_id"]])
    ]


def _gaps(signs: Signs) -> Iterator[Finding]:
    """Ranges of the state log that the evidence lacks behind its beginning, and what could not be read."""
    gaps = [
        loss
        for part in signs.cover
        for loss in part.losses
        if loss.group_id is None and loss.first_offset >= part.log_start_offset
    ]
    quarantined = sum(part.quarantined for part in signs.cover)
    if gaps or quarantined:
        lost = sum(loss.last_offset - loss.first_offset + 1 for loss in gaps)
        yield Finding(
            severity=WARNING,
            kind="evidence_gap",
            text=f"{counted(lost, 'record')} of the state log are missing here, {number(quarantined)} in quarantine",
            question="status",
            size=lost,
        )


def _of_group(signs: Signs, row: Row, *, question: str, options: tuple[str, ...] = (), **fields: Any) -> Finding:
    """A finding about the group of a row, whose share partition is the worst one."""
    topic_id = str(row["topic_id"])
    return Finding(
        group_id=row["group_id"],
        topic_id=topic_id,
        topic=signs.names.get(topic_id),
        partition=row["partition"],
        question=question,
        options=(f"--group={row['group_id']}", *options),
        **fields,
    )


def _typed_topic(signs: Signs, row: Row) -> str:
    """`payments:3` for --topic; the topic's id where its name is unknown or another topic has it too."""
    topic = signs.names.get(row["topic_id"])
    is_clear = topic is not None and list(signs.names.values()).count(topic) == 1
    return f"{topic if is_clear else row['topic_id']}:{row['partition']}"


def _more(share_partitions: int) -> str:
    return f", and {counted(share_partitions - 1, 'more share partition')}" if share_partitions > 1 else ""
