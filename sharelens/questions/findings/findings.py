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
audit_error             error      the audit has errors: records that no healthy broker writes
audit_warning           warning    the audit has warnings of the last hour
redelivery_burst        warning    more than a tenth of the deliveries of recently settled records were repeated ones
evidence_gap            warning    the state log has gaps, or records that can't be read

Those about streams groups (`streams_findings`) stand after the ones of share groups of the same kind.
"""

from collections.abc import Iterator, Set
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.stalls.intervals import MIN_DURATION_MS, SILENT
from sharelens.output.wording import clock, counted, number, place
from sharelens.parameters.times import lasted
from sharelens.questions.findings import streams_findings as streams
from sharelens.questions.findings.audit_signs import of_audit
from sharelens.questions.findings.finding import ERROR, INFO, WARNING, Finding, Row
from sharelens.questions.findings.group_rows import first_hours, sums_of_groups, worst_of_groups
from sharelens.questions.findings.signs import Signs
from state_model.columnar.keys import SHARE_PARTITION_KEY

OLD_EVIDENCE_MS = 600_000
"""So long after the last record, the silence of the whole log is a finding."""
LEAST_GROWTH = 10
LARGE_SHARE = 0.1
"""Growth of less than LEAST_GROWTH records, or of a tenth of the lag, is none; nor is a smaller share of repeats."""
EMPTY = "EMPTY"


def findings(signs: Signs, min_duration_ms: int = MIN_DURATION_MS) -> list[Finding]:
    """The findings, the worst first: by kind, then by size."""
    without_members = _without_members(signs)
    memberless = {str(finding.group_id) for finding in without_members}
    return [
        *_old_evidence(signs),
        *_stuck(signs, memberless, min_duration_ms),
        *without_members,
        *streams.without_members(signs.streams),
        *streams.not_working(signs.streams, min_duration_ms),
        *_missing_letters(signs),
        *of_audit(signs, ERROR),
        *_not_started(signs, min_duration_ms),
        *_growing(signs, memberless),
        *streams.growing(signs.streams),
        *streams.rebalancing(signs.streams, min_duration_ms),
        *_events(signs),
        *_archived(signs),
        *_redelivered(signs),
        *of_audit(signs, WARNING),
        *_gaps(signs),
        *_unknown_members(signs),
    ]


def _old_evidence(signs: Signs) -> Iterator[Finding]:
    age_ms = signs.now_ms - signs.last_ms
    if signs.cover and age_ms >= OLD_EVIDENCE_MS and signs.last_ms:
        yield Finding(
            severity=WARNING,
            kind="evidence_old",
            text=f"the evidence ends {lasted(age_ms)} ago: nothing was written to the state log since",
            question="status",
            since_ms=signs.last_ms,
        )


def _stuck(signs: Signs, memberless: Set[str], min_duration_ms: int) -> list[Finding]:
    """One for each group; that a group without members is silent is no finding of its own."""
    rows = signs.stalls.filter(pc.field("duration_ms") >= min_duration_ms)
    is_silent = pc.field("kind") == SILENT
    rows = rows.filter(~(is_silent & pc.field("group_id").isin(pa.array(sorted(memberless), pa.string()))))
    result = []
    for row in worst_of_groups(rows, [("duration_ms", "descending"), ("finished_behind", "descending")]):
        offset, end = row["first_incomplete_offset"], row["end_offset"]
        where = _where(signs, row)
        silent = row["kind"] == SILENT
        standing = f"makes no progress in {where}" if silent else f"stands still at offset {number(offset)} of {where}"
        result.append(
            _of_group(
                signs,
                row | {"size": None if end is None else max(0, end - offset)},
                severity=ERROR,
                kind="stuck",
                text=f"{standing} since {clock(row['since_ms'], signs.now_ms)} "
                f"({lasted(row['duration_ms'])}, {row['kind']}){_other_partitions_text(row)}",
                question="stalled" if silent else "trace",
                options=() if silent else (f"--topic={_typed_topic(signs, row)}", f"--offset={offset}"),
            )
        )
    return result


def _without_members(signs: Signs) -> list[Finding]:
    """Groups whose coordinator knows no member, with records to do."""
    if signs.groups is None:
        return []
    empty = signs.groups.filter(pc.field("state") == EMPTY)
    since = dict(zip(empty.column("group_id").to_pylist(), empty.column("last_change_ms").to_pylist(), strict=True))
    return [
        _of_group(
            signs,
            row | {"since_ms": since[row["group_id"]]},
            severity=ERROR,
            kind="no_members",
            text=f"{_lag(row)}, no members since {clock(since[row['group_id']], signs.now_ms)}",
            question="groups",
        )
        for row in sums_of_groups(signs.lag, "lag")
        if row["group_id"] in since
    ]


def _not_started(signs: Signs, min_duration_ms: int) -> list[Finding]:
    """Share partitions without a start offset in the log: nothing was written since they were made.

    Without the end of the user partition it is unknown whether there is a record to do.
    """
    rows = signs.not_started.filter(pc.field("log_time_ms") <= signs.now_ms - min_duration_ms)
    rows = rows.filter(pc.fill_null(rows.column("has_records"), True))
    result = []
    for row in worst_of_groups(rows, [("has_records", "descending"), ("log_time_ms", "ascending")]):
        since_ms = row["log_time_ms"]
        unknown_hint = "" if row["has_records"] else "; whether there are records is unknown"
        result.append(
            _of_group(
                signs,
                row | {"since_ms": since_ms},
                severity=WARNING if row["has_records"] else INFO,
                kind="not_started",
                text=f"no record of {_where(signs, row)} done since {clock(since_ms, signs.now_ms)}{unknown_hint}"
                f"{_other_partitions_text(row)}",
                question="lag",
            )
        )
    return sorted(result, key=lambda finding: finding.severity != WARNING)


def _unknown_members(signs: Signs) -> list[Finding]:
    """Groups with records to do of which the group coordinator's log is not in the evidence."""
    known_groups = set() if signs.groups is None else set(signs.groups.column("group_id").to_pylist())
    return [
        _of_group(
            signs,
            row,
            severity=INFO,
            kind="members_unknown",
            text=f"{_lag(row)}, members unknown: __consumer_offsets has no record of the group here",
            question="groups",
        )
        for row in sums_of_groups(signs.lag, "lag")
        if row["group_id"] not in known_groups
    ]


def _growing(signs: Signs, memberless: Set[str]) -> list[Finding]:
    """Groups whose lag is larger than it was; the share partitions of both moments count."""
    if signs.earlier_lag is None or signs.earlier_ms is None:
        return []
    earlier = signs.earlier_lag.rename_columns([*SHARE_PARTITION_KEY, "lag_before"])
    both_lags = signs.lag.select([*SHARE_PARTITION_KEY, "lag"]).join(
        earlier, keys=SHARE_PARTITION_KEY, join_type="inner"
    )
    growths = pc.subtract(both_lags.column("lag"), both_lags.column("lag_before"))
    sums = both_lags.append_column("growth", growths).group_by("group_id").aggregate([("growth", "sum")])
    growth = {row["group_id"]: row["growth_sum"] or 0 for row in sums.to_pylist()}
    return [
        _of_group(
            signs,
            row | {"since_ms": signs.earlier_ms},
            severity=WARNING,
            kind="lag_growing",
            text=f"{_lag(row)}, {number(growth[row['group_id']])} more than at {clock(signs.earlier_ms, signs.now_ms)}",
            question="lag",
        )
        for row in sums_of_groups(signs.lag, "lag")
        if row["group_id"] not in memberless
        and growth.get(row["group_id"], 0) >= max(LEAST_GROWTH, LARGE_SHARE * row["size"])
    ]


def _events(signs: Signs) -> Iterator[Finding]:
    """Recent resets and creations of share partitions that were there before."""
    for kind, events, verb in (
        ("deleted_and_created", ("recreated",), "was deleted and created again"),
        ("start_offset_reset", ("reset", "start_offset_went_back"), "was reset to start offset"),
    ):
        rows = signs.events.filter(pc.is_in(signs.events.column("event"), value_set=pa.array(events)))
        for row in worst_of_groups(rows, [("log_time_ms", "descending")]):
            offset = f" {number(row['start_offset_after'])}" if kind == "start_offset_reset" else ""
            at = clock(row["log_time_ms"], signs.now_ms)
            yield _of_group(
                signs,
                row | {"since_ms": row["log_time_ms"]},
                severity=WARNING,
                kind=kind,
                text=f"{_where(signs, row)} {verb}{offset} at {at}{_other_partitions_text(row)}",
                question="life",
            )


def _archived(signs: Signs) -> list[Finding]:
    """Records that groups archived recently."""
    return [
        _of_group(
            signs,
            row,
            severity=WARNING,
            kind="records_archived",
            text=f"archived {counted(row['size'], 'record')}{_spread(row)} "
            f"since {clock(row['since_ms'], signs.now_ms)}",
            question="poison",
        )
        for row in _recent(signs, signs.archived, "records")
    ]


def _missing_letters(signs: Signs) -> list[Finding]:
    return [
        _of_group(
            signs,
            row,
            severity=ERROR,
            kind="dead_letters_missing",
            text=f"{counted(row['size'], 'dead letter')} missing{_spread(row)}",
            question="dlq",
        )
        for row in sums_of_groups(signs.missing_letters, "records")
    ]


def _redelivered(signs: Signs) -> list[Finding]:
    """Groups of which many of the deliveries of recently settled records were repeated ones."""
    deliveries = {row["group_id"]: row["size"] for row in sums_of_groups(signs.attempts, "deliveries")}
    return [
        _of_group(
            signs,
            row,
            severity=WARNING,
            kind="redelivery_burst",
            text=f"{number(row['size'])} of {counted(deliveries[row['group_id']], 'delivery', 'deliveries')} "
            f"of records settled since {clock(row['since_ms'], signs.now_ms)} were repeated ones{_spread(row)}",
            question="redelivered",
        )
        for row in _recent(signs, signs.attempts, "extra_deliveries")
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


def _recent(signs: Signs, rows: pa.Table, column: str) -> list[dict[str, Any]]:
    """The sums by group of outcomes, with `since_ms`: their first hour, as far as the evidence has it."""
    hours = first_hours(rows, column)
    return [row | {"since_ms": max(signs.first_ms, hours[row["group_id"]])} for row in sums_of_groups(rows, column)]


def _of_group(
    signs: Signs, row: Row, *, severity: str, kind: str, text: str, question: str, options: tuple[str, ...] = ()
) -> Finding:
    """A finding about the group of a row, whose share partition is the worst one."""
    topic_id = str(row["topic_id"])
    return Finding(
        severity=severity,
        kind=kind,
        text=text,
        question=question,
        options=(f"--group={row['group_id']}", *options),
        group_id=row["group_id"],
        topic_id=topic_id,
        topic=signs.names.get(topic_id),
        partition=row["partition"],
        share_partitions=row["share_partitions"],
        size=row.get("size"),
        since_ms=row.get("since_ms"),
    )


def _where(signs: Signs, row: Row) -> str:
    return place(signs.names.get(row["topic_id"]), row["topic_id"], row["partition"])


def _typed_topic(signs: Signs, row: Row) -> str:
    """`payments:3` for --topic; the topic's id where its name is unknown or another topic has it too."""
    topic = signs.names.get(row["topic_id"])
    is_clear = topic is not None and list(signs.names.values()).count(topic) == 1
    return f"{topic if is_clear else row['topic_id']}:{row['partition']}"


def _lag(row: Row) -> str:
    return f"lag {number(row['size'])}{_spread(row)}"


def _spread(row: Row) -> str:
    """Where a sum comes from, if from more than one share partition."""
    return f" in {counted(row['share_partitions'], 'share partition')}" if row["share_partitions"] > 1 else ""


def _other_partitions_text(row: Row) -> str:
    """How many share partitions there are besides the one that the text names."""
    other_count = row["share_partitions"] - 1
    return f", and {counted(other_count, 'more share partition')}" if other_count else ""
