"""The first screen of an incident: what is wrong now, the worst first, and one line a group."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.findings.consumers import kinds_by_group
from sharelens.findings.finding import ERROR, FINDING, INFO, IS_FOUND, NOT_JUDGED, WARNING, finding_rows
from sharelens.findings.group_rows import of_each
from sharelens.findings.outcomes import recent_attempts
from sharelens.findings.signs import ConsumerSign, Signs, StreamsSign
from sharelens.findings.thresholds import Thresholds
from sharelens.findings.verdict import Verdict, first_line
from sharelens.groups.schemas import SHARE, STREAMS
from sharelens.measures.settings.over_time import GroupSettings
from sharelens.output import Answer, Column, FindingCounts, Report, Row, number_text
from sharelens.output.layouts import Layout
from sharelens.output.wording import counted, name, place
from sharelens.parameters.filters import KeyFilter
from sharelens.parameters.times import lasted
from sharelens.questions.answers.command_lines import command, cut_options
from sharelens.questions.answers.completeness import closing_line
from sharelens.questions.answers.now import now_text
from sharelens.questions.findings.judged import judged
from sharelens.questions.findings.signs import signs, unknown_consumer_lags
from sharelens.source.request import CutChoice, Source
from sharelens.tables.port import Tables
from state_model.columnar.schemas import column

UNKNOWN_STATE = "unknown"
FAIL_ON_UNJUDGED, UNJUDGED = "not-judged", "not judged"
GROUP = pa.schema(
    [
        column("group_id", pa.string(), "group"),
        column("group_type", pa.string(), "share or streams"),
        column("state", pa.string(), "state of the group; unknown = no record of __consumer_offsets"),
        column("members", pa.int64(), "number of members; null = unknown"),
        column("share_partitions", pa.int64(), "share partitions"),
        column(
            "missing_share_partitions",
            pa.int64(),
            "initialized share partitions without state here: the other figures are lower bounds",
        ),
        column("lag", pa.int64(), "sum of the known lags; null = none is known"),
        column("lag_unknown", pa.int64(), "partitions whose lag is unknown"),
        column("standing_still", pa.int64(), "share partitions with a stall that lasts"),
        column("standing_since_ms", pa.int64(), "begin of the longest of them; null = none"),
        column("archived_recently", pa.int64(), "records that were archived in the last hour"),
        column("repeated_recently", pa.int64(), "deliveries after the first ones, of records settled in the last hour"),
        column("tasks", pa.int64(), "active tasks"),
        column("tasks_without_owner", pa.int64(), "active tasks that no member has"),
    ]
)

CONSUMER_GROUP = pa.schema(
    [
        column("group_id", pa.string(), "consumer group"),
        column("state", pa.string(), "state of the group"),
        column("members", pa.int64(), "number of members"),
        column("idle_members", pa.int64(), "members without partitions"),
        column("waiting_members", pa.int64(), "members that lack partitions of their target, or must give up some"),
        column("partitions", pa.int64(), "partitions that members have, those that they must give up, too"),
        column("partitions_without_owner", pa.int64(), "partitions that no member has, while the group has members"),
        column("lag", pa.int64(), "sum of the known lags of partitions with a committed offset; null = none is known"),
        column("lag_unknown", pa.int64(), "partitions with a committed offset whose lag is unknown"),
        column(
            "findings",
            pa.string(),
            "kinds of errors and warnings, `:unknown` if not judged; they count with --all-groups",
        ),
    ]
)


def headline(evidence: Tables, key_filter: KeyFilter, cut: CutChoice, settings: GroupSettings) -> str:
    """The first line of `overview`."""
    read = signs(evidence, key_filter, cut, settings, None)
    return first_line(judged(read, Thresholds(settings=settings)), read)


def overview(
    evidence: Tables,
    source: Source,
    key_filter: KeyFilter,
    cut: CutChoice,
    settings: GroupSettings,
    *,
    min_duration_ms: int | None = None,
    all_groups: bool = False,
) -> Report:
    """The answer to `sharelens overview`; `source` is what the commands for further questions name.

    `all_groups`: consumer groups count in the verdict, too; they have a list of their own anyhow.
    `min_duration_ms`: the shortest stall; None: by the lock duration (`sharelens.findings.thresholds`).

    Raises:
        UsageError: the evidence has none of the names, or --now lies before its last record.
    """
    thresholds = Thresholds(settings=settings, min_duration_ms=min_duration_ms)
    read = signs(evidence, key_filter, cut, settings, min_duration_ms, with_consumers=True)
    verdict = judged(read, thresholds, all_groups=all_groups)

    def ask(question: str, words: Iterable[str]) -> str:
        return command(source, question, [*words, *cut_options(question, cut)])

    rows = finding_rows(verdict.findings, ask)
    counts = f"{_counts(verdict)}{_short_ones(read, thresholds)}"
    return Report(
        headline=first_line(verdict, read),
        parts={
            "findings": Answer(
                table=rows, columns=FINDING_LAYOUT.columns(None, _since_column(read.now_ms)), none="no finding"
            ),
            "groups": groups_part(group_rows(read, thresholds)),
            **consumer_part(read, thresholds),
        },
        summary=f"{counts}\n{_audit_text(read, command(source, 'audit', []))}"
        f"\n{closing_line(evidence)}; {now_text(evidence, read.now_ms)}",
        warnings=(*read.warnings, *(unknown_consumer_lags(read) if all_groups else ()), *verdict.warnings),
    )


def groups_part(groups: pa.Table, group_types: Collection[str] = (SHARE, STREAMS)) -> Answer:
    """The `group_rows` of the types."""
    groups = groups.filter(pc.is_in(groups.column("group_type"), value_set=pa.array(list(group_types), pa.string())))
    kinds = " or ".join(group_types)
    return Answer(table=groups, columns=GROUP_LAYOUT.columns(_group_fields(groups)), none=f"no {kinds} group")


def consumer_part(read: Signs, thresholds: Thresholds) -> dict[str, Answer]:
    """The consumer groups, those with findings first; no part where there are none."""
    if not read.consumers:
        return {}
    kinds = kinds_by_group(read.consumers, thresholds, is_now_known=read.now.is_known)
    rows = [_consumer_row(sign, kinds.get(sign.group_id, ())) for sign in read.consumers]
    rows.sort(key=lambda row: (row["findings"] is None, -(row["lag"] or 0), row["group_id"]))
    table = pa.Table.from_pylist(rows, schema=CONSUMER_GROUP)
    return {"consumer_groups": Answer(table=table, columns=CONSUMER_LAYOUT.columns(None), none="no consumer group")}


def counted_findings(answered: Report, fail_on: str) -> FindingCounts:
    """What --fail-on counts: findings of the severity `fail_on` or a worse one, and what may be one and is not judged.

    With FAIL_ON_UNJUDGED what is not judged counts as found.
    """
    rows = answered.parts["findings"].table
    severities = [ERROR] if fail_on == ERROR else [ERROR, WARNING]
    results = rows.filter(pc.is_in(rows.column("severity"), value_set=pa.array(severities))).column("result")
    count, unjudged = (results.to_pylist().count(result) for result in (IS_FOUND, NOT_JUDGED))
    if fail_on == FAIL_ON_UNJUDGED:
        return FindingCounts(count=count + unjudged)
    return FindingCounts(count=count, unjudged=unjudged)


def _counts(verdict: Verdict) -> str:
    counts = [f"{severity} {verdict.count(severity)}" for severity in (ERROR, WARNING, INFO)]
    unjudged = f", not judged {len(verdict.unjudged)}" if verdict.unjudged else ""
    suppressed = f", suppressed {verdict.suppressed}" if verdict.suppressed else ""
    return f"findings: {', '.join(counts)}{unjudged}{suppressed}"


def _audit_text(read: Signs, audit: str) -> str:
    """Whether the coordinators were audited, and the command that does."""
    if read.audited is None:
        return f"audit: not run; {audit}"
    suppressed = f", {read.audited.suppressed} suppressed" if read.audited.suppressed else ""
    return f"audit: {counted(read.audited.rows.num_rows, 'finding')}{suppressed}; {audit}"


def _short_ones(read: Signs, thresholds: Thresholds) -> str:
    """The stalls that last, but not yet so long that they are one."""
    short = [
        row["duration_ms"]
        for row in read.stalls.select(["group_id", "duration_ms"]).to_pylist()
        if row["duration_ms"] < thresholds.stall(row["group_id"]).possible_ms
    ]
    if not short:
        return ""
    return f"; {counted(len(short), 'more head')} unmoved for {lasted(max(short))} at most: --min-duration 0 shows all"


def group_rows(read: Signs, thresholds: Thresholds) -> pa.Table:
    """GROUP rows: those with findings of size first."""
    lags = read.lag.group_by("group_id").aggregate(
        [("lag", "sum"), ("lag", "count", pc.CountOptions(mode="only_null")), ([], "count_all")]
    )
    sure_ms = of_each(read.stalls, "group_id", lambda group: thresholds.stall(group).sure_ms)
    standing = read.stalls.filter(pa.array(read.stalls.column("duration_ms").to_numpy() >= sure_ms))
    standing = standing.group_by("group_id").aggregate([([], "count_all"), ("since_ms", "min")])
    archived = read.archived.group_by("group_id").aggregate([("records", "sum")])
    repeated = recent_attempts(read).group_by("group_id").aggregate([("extra_deliveries", "sum")])
    by_group: dict[str, dict[str, Any]] = {group_id: {} for group_id in read.share_groups}
    for table in (lags, standing.rename_columns(["group_id", "standing", "since"]), archived, repeated, read.groups):
        for row in [] if table is None else table.to_pylist():
            by_group.setdefault(row["group_id"], {}).update(row)
    for group_id, count in read.missing.by_group.items():
        if group_id in by_group:
            by_group[group_id]["missing"] = count
    rows = [_group_row(group_id, row) for group_id, row in by_group.items()]
    rows += map(_streams_row, read.streams)
    rows.sort(key=_worst_first)
    return pa.Table.from_pylist(rows, schema=GROUP)


def _worst_first(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return *(-(row.get(size) or 0) for size in ("standing_still", "tasks_without_owner", "lag")), row["group_id"]


def _streams_row(sign: StreamsSign) -> dict[str, Any]:
    """A GROUP row; what only share groups have is null."""
    return {
        "group_id": sign.group_id,
        "group_type": STREAMS,
        "state": sign.state,
        "members": sign.members,
        "lag": sign.lag.records,
        "lag_unknown": sign.lag.unknown,
        "tasks": sign.tasks,
        "tasks_without_owner": len(sign.without_owner),
    }


def _consumer_row(sign: ConsumerSign, kinds: Sequence[str]) -> dict[str, Any]:
    """A CONSUMER_GROUP row."""
    return {
        "group_id": sign.group_id,
        "state": sign.state,
        "members": sign.members,
        "idle_members": sign.idle_members,
        "waiting_members": len(sign.waiting),
        "partitions": sign.partitions,
        "partitions_without_owner": len(sign.without_owner),
        "lag": sign.lag.records,
        "lag_unknown": sign.lag.unknown,
        "findings": ", ".join(kinds) or None,
    }


def _group_row(group_id: str, row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "group_id": group_id,
        "group_type": SHARE,
        "state": row.get("state", UNKNOWN_STATE),
        "members": row.get("member_count"),
        "share_partitions": row.get("count_all", 0),
        "missing_share_partitions": row.get("missing", 0),
        "lag": row.get("lag_sum"),
        "lag_unknown": row.get("lag_count", 0),
        "standing_still": row.get("standing", 0),
        "standing_since_ms": row.get("since"),
        "archived_recently": row.get("records_sum", 0),
        "repeated_recently": row.get("extra_deliveries_sum", 0),
    }


def screen(answered: Report) -> Iterator[tuple[str, str, str]]:
    """(severity, sentence, command) of each finding, for a screen."""
    for row in answered.parts["findings"].table.to_pylist():
        about = "" if row["group_id"] is None else f"{name(row['group_id'])}: "
        remedy = "" if row["remedy"] is None else f" ({row['remedy']})"
        yield _severity_cell(row), f"{about}{row['text']}{remedy}", row["command"]


def _since_column(now_ms: int) -> Column:
    """How long ago a moment is."""

    def cell(row: Row) -> str:
        since_ms = row["since_ms"]
        return number_text(None) if not isinstance(since_ms, int) else f"{lasted(max(0, now_ms - since_ms))} ago"

    return Column(heading="SINCE", cell=cell, right=True, fields=("since_ms",))


def _group_fields(groups: pa.Table) -> list[str]:
    """The fields of GROUP, without those of a type of group that is not there."""
    types = set(groups.column("group_type").to_pylist()) or {SHARE}
    absent = set().union(*(fields for of, fields in ONLY_OF.items() if of not in types))
    if not pc.any(pc.greater(groups.column("missing_share_partitions"), 0)).as_py():
        absent.add("missing_share_partitions")
    return [name for name in GROUP.names if name not in absent]


def _severity_cell(row: Row) -> str:
    return str(row["severity"]) if row["result"] == IS_FOUND else UNJUDGED


def _text_cell(row: Row) -> str:
    remedy = row["remedy"]
    return str(row["text"]) if remedy is None else f"{row['text']} ({remedy})"


def _place_cell(row: Row) -> str:
    partition = row["partition"]
    return place(row["topic"], row["topic_id"], partition) if isinstance(partition, int) else number_text(None)


FINDING_LAYOUT = Layout(
    schema=FINDING,
    fields="severity kind group_id topic size since_ms text command",
    cells=(
        Column(heading="SEVERITY", cell=_severity_cell, fields=("severity", "result")),
        Column(heading="TOPIC-PARTITION", cell=_place_cell, fields=("topic", "topic_id", "partition")),
        Column(heading="TEXT", cell=_text_cell, fields=("text", "remedy")),
        Column(heading="COMMAND", cell=lambda row: str(row["command"]), fields=("command",)),
    ),
)
GROUP_LAYOUT = Layout(
    schema=GROUP,
    headings={"tasks_without_owner": "WITHOUT-OWNER", "missing_share_partitions": "MISSING"},
    varies="columns of share groups, or of streams groups, only where there is such a group; group_type only with "
    "streams groups; missing_share_partitions only where some are missing",
    important="GROUP TYPE STATE MEMBERS MISSING LAG STANDING-STILL WITHOUT-OWNER ARCHIVED-RECENTLY REPEATED-RECENTLY "
    "TASKS STANDING-SINCE SHARE-PARTITIONS",
)
CONSUMER_LAYOUT = Layout(
    schema=CONSUMER_GROUP,
    headings={"partitions_without_owner": "WITHOUT-OWNER", "idle_members": "IDLE", "waiting_members": "WAITING"},
    important="GROUP STATE MEMBERS LAG FINDINGS WITHOUT-OWNER WAITING IDLE PARTITIONS",
)
ONLY_OF = {
    SHARE: {
        *("share_partitions", "missing_share_partitions", "standing_still", "standing_since_ms"),
        *("archived_recently", "repeated_recently"),
    },
    STREAMS: {"group_type", "tasks", "tasks_without_owner"},
}
"""Columns that only groups of one type have; the type itself is shown once there is a streams group."""
