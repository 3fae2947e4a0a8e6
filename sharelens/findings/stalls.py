"""Rules about share partitions whose first incomplete offset stands."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.findings.about import about_group, offsets_remedy, other_partitions, typed_topic, where
from sharelens.findings.finding import ERROR, INFO, WARNING, Finding, Row
from sharelens.findings.group_rows import of_each, worst_of_groups
from sharelens.findings.rule import Need, Rule
from sharelens.findings.signs import Signs
from sharelens.findings.thresholds import (
    FILLING_LOCKS,
    FILLING_SHARE,
    LEAST_STALL_MS,
    RETENTION_SHARE,
    SMALL_LAG,
    Thresholds,
)
from sharelens.groups.schemas import EMPTY
from sharelens.measures.stalls.intervals import FOREVER, SILENT
from sharelens.output.wording import clock, counted, number
from sharelens.parameters.times import lasted
from state_model.columnar.codes import ints
from state_model.columnar.keys import Ints

STUCK, ABANDONED, MAY_BE_ABANDONED, UNJUDGED, SAYS_MEMBERS, LAWFUL = range(6)
WORST_FIRST = [("duration_ms", "descending"), ("finished_behind", "descending")]


def stuck(signs: Signs, thresholds: Thresholds) -> Iterator[Finding]:
    """One finding a group and result: its longest stall."""
    results = _results(signs, thresholds)
    for result, finding_of in enumerate((_stuck, _abandoned, _maybe_abandoned, _unjudged, _without_member_log)):
        for row in worst_of_groups(signs.stalls.filter(pa.array(results == result)), WORST_FIRST):
            yield finding_of(signs, row, thresholds)
    waiting = signs.lag.filter(pc.greater(signs.work, SMALL_LAG))
    is_silent = [_is_silent(signs, row, thresholds) for row in waiting.to_pylist()]
    for row in worst_of_groups(waiting.filter(pa.array(is_silent, pa.bool_())), [("log_time_ms", "ascending")]):
        yield _silent(signs, row)


def _is_silent(signs: Signs, row: Row, thresholds: Thresholds) -> bool:
    """Whether a group with members, for which records wait, writes nothing, and no header says since when they wait."""
    group = signs.groups_by_id.get(row["group_id"])
    return (
        (row["topic_id"], row["partition"]) not in signs.with_headers
        and (group is not None and group["state"] != EMPTY)
        and signs.now_ms - row["log_time_ms"] >= thresholds.stall(row["group_id"]).sure_ms
    )


def _silent(signs: Signs, row: Row) -> Finding:
    idle_ms = signs.now_ms - row["log_time_ms"]
    text = f"not judged: records wait in {counted(row['share_partitions'], 'share partition')} without a state write "
    text += f"for {lasted(idle_ms)}; since when they wait is unknown"
    return about_group(signs, row, severity=ERROR, kind="stuck", text=text, question="lag", remedy=Need.HEADERS.remedy)


def _results(signs: Signs, thresholds: Thresholds) -> Ints:
    """What each stall is: STUCK to SAYS_MEMBERS, LAWFUL.

    Silence of a group without members is lawful; without its log nobody knows whether it has any.
    """
    rows, groups = signs.stalls, signs.groups_by_id
    most_ms = FOREVER if signs.now.is_known else LEAST_STALL_MS
    possible_ms = of_each(rows, "group_id", lambda group: min(thresholds.stall(group).possible_ms, most_ms))
    sure_ms = of_each(rows, "group_id", lambda group: thresholds.stall(group).sure_ms)
    is_known = of_each(rows, "group_id", lambda group: group in groups) > 0
    is_empty = of_each(rows, "group_id", lambda group: groups.get(group, {}).get("state") == EMPTY) > 0
    is_silent = pc.equal(rows.column("kind"), SILENT).to_numpy()
    lasting_ms = rows.column("duration_ms").to_numpy()
    is_sure = lasting_ms >= sure_ms
    conditions = {
        LAWFUL: (lasting_ms < possible_ms) | (is_silent & is_empty),
        SAYS_MEMBERS: is_silent & ~is_known,
        ABANDONED: is_empty & is_sure,
        MAY_BE_ABANDONED: is_empty,
        STUCK: is_sure,
    }
    results: Ints = np.select(list(conditions.values()), list(conditions), UNJUDGED)
    return results


def _stuck(signs: Signs, row: Row, thresholds: Thresholds) -> Finding:
    return _standing(signs, row, ERROR)


def _abandoned(signs: Signs, row: Row, thresholds: Thresholds) -> Finding:
    """Without headers the offset may hold a marker of a transaction, and no record."""
    has_headers = (row["topic_id"], row["partition"]) in signs.with_headers
    remedy = None if has_headers else Need.HEADERS.remedy
    return _standing(signs, row, INFO, "; the group has no members", remedy)


def _maybe_abandoned(signs: Signs, row: Row, thresholds: Thresholds) -> Finding:
    return replace(_unjudged(signs, row, thresholds), severity=INFO)


def _standing(signs: Signs, row: Row, severity: str, remark: str = "", remedy: str | None = None) -> Finding:
    offset, end = row["first_incomplete_offset"], row["end_offset"]
    is_silent = row["kind"] == SILENT
    at = where(signs, row)
    standing = f"makes no progress in {at}" if is_silent else f"stands still at offset {number(offset)} of {at}"
    least = "" if signs.now.is_known else "at least "
    return about_group(
        signs,
        {**row, "size": None if end is None else max(0, end - offset)},
        severity=severity,
        kind="stuck",
        text=f"{standing} since {clock(row['since_ms'], signs.now_ms)} "
        f"({least}{lasted(row['duration_ms'])}, {row['kind']}){other_partitions(row)}{remark}",
        question="stalled" if is_silent else "trace",
        options=() if is_silent else (f"--topic={typed_topic(signs, row)}", f"--offset={offset}"),
        remedy=remedy,
    )


def _unjudged(signs: Signs, row: Row, thresholds: Thresholds) -> Finding:
    """Stalls that are one or none: by how long a lock lasts, or by how late it is now."""
    heads = counted(row["share_partitions"], "share partition")
    behind = ", finished records behind" if row["finished_behind"] else ""
    if signs.now.is_known:
        text = f"not yet judged: {heads} unmoved for up to {lasted(row['duration_ms'])}{behind}; "
        text += "the lock duration is unknown"
        need = Need.SETTINGS
    else:
        text = f"not judged: {heads} unmoved for at least {lasted(row['duration_ms'])}{behind}; "
        text += "how long is not known"
        need = Need.NOW
    return about_group(
        signs, row, severity=ERROR, kind="stuck", text=text, question="stalled",
        options=("--min-duration=0",), remedy=need.remedy,
    )  # fmt: skip


def _without_member_log(signs: Signs, row: Row, thresholds: Thresholds) -> Finding:
    text = f"not judged: no state written for {lasted(row['duration_ms'])}, and whether it has members is unknown"
    return about_group(
        signs, row, severity=ERROR, kind="stuck", text=text, question="stalled",
        options=("--min-duration=0",), remedy=offsets_remedy(signs, row["group_id"]),
    )  # fmt: skip


def window_filling(signs: Signs, thresholds: Thresholds) -> Iterator[Finding]:
    """Share partitions that will soon deliver nothing: their record locks are nearly used behind an unmoved head."""
    rows = signs.stalls
    lock_ms = of_each(rows, "group_id", lambda group: -1 if (ms := thresholds.lock_ms(group)) is None else ms)
    limit, used, behind, lasting_ms = (
        ints(rows, name) for name in ("window_limit", "window_used", "finished_behind", "duration_ms")
    )
    is_filling = (limit * FILLING_SHARE <= used) & (used < limit) & (behind > 0)
    is_filling &= (lock_ms >= 0) & (lasting_ms >= FILLING_LOCKS * lock_ms)
    for row in worst_of_groups(rows.filter(pa.array(is_filling)), [("window_used", "descending")]):
        text = f"{where(signs, row)} uses {number(row['window_used'])} of {number(row['window_limit'])} record locks "
        text += f"behind offset {number(row['first_incomplete_offset'])}{other_partitions(row)}"
        size = {**row, "size": row["window_used"]}
        yield about_group(
            signs, size, severity=WARNING, kind="window_filling", text=text, question="stalled",
            options=("--min-duration=0",),
        )  # fmt: skip


def retention_near(signs: Signs, thresholds: Thresholds) -> Iterator[Finding]:
    """Records that wait so long that retention will soon delete them before anybody has done them."""
    rows = signs.stalls
    retention_ms = of_each(rows, "topic_id", lambda topic: signs.retention_ms.get(topic, -1))
    is_near = (retention_ms >= 0) & (ints(rows, "duration_ms") >= RETENTION_SHARE * retention_ms)
    for row in worst_of_groups(rows.filter(pa.array(is_near)), WORST_FIRST):
        retention = lasted(signs.retention_ms[row["topic_id"]])
        text = f"offset {number(row['first_incomplete_offset'])} of {where(signs, row)} waits for "
        text += f"{lasted(row['duration_ms'])}, and retention.ms is {retention}{other_partitions(row)}"
        yield about_group(signs, row, severity=WARNING, kind="retention_near", text=text, question="stalled")


RULES: Mapping[str, Rule] = {
    rule.kind: rule
    for rule in (
        Rule(
            kind="stuck",
            subject="share partition",
            severities=(ERROR, INFO),
            when="The first incomplete offset does not move: others behind it are finished, its dead letter is "
            "pending, or nothing is written although there are records. A group without members is information.",
            threshold="max(10 s, three lock durations); three minutes where the lock duration is unknown",
            decisive=(Need.STATE_LOG, Need.NOW, Need.SETTINGS),
            refining=(Need.HEADERS,),
            judge=stuck,
            unjudged="stalls",
        ),
        Rule(
            kind="window_filling",
            subject="share partition",
            severities=(WARNING,),
            when="Most record locks are used behind an offset that does not move, while later records finish.",
            threshold="80 % of share.partition.max.record.locks, three lock durations",
            decisive=(Need.STATE_LOG,),
            refining=(Need.SETTINGS,),
            judge=window_filling,
        ),
        Rule(
            kind="retention_near",
            subject="share partition",
            severities=(WARNING,),
            when="The oldest unfinished record waits so long that the topic's retention will soon delete it.",
            threshold="80 % of retention.ms",
            decisive=(Need.STATE_LOG,),
            refining=(Need.METADATA_LOG,),
            judge=retention_near,
        ),
    )
}
