"""Rules about the members of share groups and the work that waits for them."""

import itertools
from collections.abc import Iterator, Mapping, Set
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.findings.about import about_group, lag_text, offsets_remedy, other_partitions, where
from sharelens.findings.finding import ERROR, INFO, WARNING, Finding, Row
from sharelens.findings.group_rows import sums_of_groups, worst_of_groups
from sharelens.findings.rule import Need, Rule
from sharelens.findings.signs import LagSample, ShareCoordination, Signs
from sharelens.findings.thresholds import (
    ABANDONED_MS,
    ACTIVE_MS,
    CLOSED_MS,
    EPOCHS_A_MINUTE,
    GROWTH_MS,
    GROWTH_SHARE,
    HOUR_MS,
    LARGE_SHARE,
    LEAST_GROWTH,
    LOOP_MS,
    MINUTE_MS,
    REPEATS,
    SMALL_LAG,
    UNASSIGNED_MS,
    UNSTABLE_MS,
    Thresholds,
)
from sharelens.groups.schemas import DELETING, EMPTY
from sharelens.measures.lag import NO_START
from sharelens.measures.settings.over_time import AUTO_OFFSET_RESET, EARLIEST
from sharelens.output.wording import clock, counted, number, place
from sharelens.parameters.times import lasted
from state_model.columnar.keys import SHARE_PARTITION_KEY, numbered_partitions
from state_model.topics import OFFSETS_TOPIC


def work_of_groups(signs: Signs) -> list[dict[str, Any]]:
    """The lag of each group with records to do, as `sums_of_groups`; counted again where Kafka's own count is unknown.

    `is_upper_bound`: whether offsets that hold no record, as markers of transactions, may be among them;
    `is_lower_bound`: whether share partitions of the group have no state here.
    """
    rows = signs.lag
    recounted = pc.is_null(rows.column("lag"))
    rows = rows.select(SHARE_PARTITION_KEY).append_column("work", signs.work).append_column("recounted", recounted)
    counted_again = rows.filter(pc.field("recounted") & (pc.field("work") > 0)).column("group_id")
    upper_bounds = set(counted_again.unique().to_pylist())
    return [
        {
            **row,
            "is_upper_bound": row["group_id"] in upper_bounds,
            "is_lower_bound": row["group_id"] in signs.missing.by_group,
        }
        for row in sums_of_groups(rows, "work")
    ]


def no_members(signs: Signs, thresholds: Thresholds) -> Iterator[Finding]:
    """Groups whose coordinator knows no member, with records to do; those of which that is unknown."""
    groups, finished, works = signs.groups_by_id, _active_groups(signs), work_of_groups(signs)
    for row in works:
        group = groups.get(row["group_id"])
        if group is None:
            yield _unknown_members(signs, row)
        elif group["state"] == EMPTY:
            yield _memberless(signs, row, group["last_change_ms"], row["group_id"] in finished)
    for row in _unknown_work(signs, {row["group_id"] for row in works}):
        group = groups.get(row["group_id"])
        if group is not None and group["state"] == EMPTY:
            yield _unknown_lag(signs, row)


def _active_groups(signs: Signs) -> set[str]:
    """The groups that finished records within a day."""
    is_recent = pc.field("hour_ms") >= signs.now_ms - ACTIVE_MS - HOUR_MS
    return set(signs.attempts.filter(is_recent & (pc.field("offsets") > 0)).column("group_id").unique().to_pylist())


def _memberless(signs: Signs, row: Row, since_ms: int, is_active: bool) -> Finding:
    """Where now is unknown, a group that had just closed at the end of the evidence may be without members for long."""
    lasting_ms = max(0, signs.now_ms - since_ms)
    has_closed, is_abandoned = lasting_ms < CLOSED_MS, lasting_ms >= ABANDONED_MS
    severity = ERROR if is_active and row["size"] > SMALL_LAG else WARNING
    text, remedy = f"{lag_text(row)}, no members since {clock(since_ms, signs.now_ms)}", None
    if has_closed and not signs.now.is_known:
        text, remedy = f"{text} ({lasted(lasting_ms)} at least); how long is not known", Need.NOW.remedy
    elif has_closed or is_abandoned:
        severity = INFO
    return about_group(
        signs,
        {**row, "since_ms": since_ms},
        severity=severity,
        kind="no_members",
        text=text,
        question="groups",
        remedy=remedy,
    )


def _unknown_members(signs: Signs, row: Row) -> Finding:
    return about_group(
        signs,
        row,
        severity=ERROR if row["size"] > SMALL_LAG else WARNING,
        kind="no_members",
        text=f"{lag_text(row)}, members unknown: {OFFSETS_TOPIC} has no record of the group here",
        question="groups",
        remedy=offsets_remedy(signs, row["group_id"]),
    )


def _unknown_work(signs: Signs, busy: Set[str]) -> list[dict[str, Any]]:
    """Groups but the `busy` ones, which have a known lag above 0, of which a share partition's lag can't be counted."""
    is_started = pc.not_equal(pc.fill_null(signs.lag.column("unknown_reason"), ""), NO_START)
    rows = signs.lag.filter(pc.and_(is_started, pc.is_null(signs.work)))
    order = [(name, "ascending") for name in SHARE_PARTITION_KEY]
    return [row for row in worst_of_groups(rows, order) if row["group_id"] not in busy]


def _unknown_lag(signs: Signs, row: Row) -> Finding:
    count = counted(row["share_partitions"], "share partition")
    return about_group(
        signs, row, severity=ERROR, kind="no_members", text=f"no members, and the lag of {count} is unknown",
        question="lag", remedy=Need.TOPIC_END.remedy,
    )  # fmt: skip


def not_started(signs: Signs, thresholds: Thresholds) -> list[Finding]:
    """Share partitions without a start offset in the log: nothing was written since they were made.

    Records that came before are delivered under `earliest` alone; the newest header says whether some came behind.
    """
    least_ms = thresholds.or_min_duration(UNSTABLE_MS)
    rows = signs.not_started.filter(pc.field("log_time_ms") <= signs.now_ms - least_ms)
    rows = rows.filter(pc.fill_null(rows.column("has_records"), True))
    result = []
    for row in worst_of_groups(rows, [("has_records", "descending"), ("log_time_ms", "ascending")]):
        since_ms = row["log_time_ms"]
        reset = thresholds.settings.of(row["group_id"], AUTO_OFFSET_RESET).value
        is_late = row["newest_batch_ms"] is not None and row["newest_batch_ms"] > since_ms
        is_due = row["has_records"] and (is_late or reset == EARLIEST)
        result.append(
            about_group(
                signs,
                {**row, "since_ms": since_ms},
                severity=WARNING if is_due else INFO,
                kind="not_started",
                text=f"no record of {where(signs, row)} done since {clock(since_ms, signs.now_ms)}"
                f"{_doubt(row, is_due, reset)}{other_partitions(row)}",
                question="lag",
                remedy=None if row["has_records"] else Need.HEADERS.remedy,
            )
        )
    return result


def _doubt(row: Row, is_due: bool, reset: str | None) -> str:
    if is_due:
        return ""
    if not row["has_records"]:
        return "; whether there are records is unknown"
    if reset is None:
        return "; its records may be older than the group, and share.auto.offset.reset is unknown"
    return f"; its records may be older than the group, and share.auto.offset.reset is {reset}"


def lag_growing(signs: Signs, thresholds: Thresholds) -> list[Finding]:
    """Groups with members whose lag rose from each sample to the next; share partitions of all moments count.

    Without headers the lag of earlier moments is unknown; one that is less than growth must be is clear all the same.
    """
    if len(signs.samples) < 2 or signs.now_ms - signs.samples[0].at_ms < GROWTH_MS:
        return []
    groups, lawful_growth = signs.groups_by_id, _lawful_growth(signs)
    rises, without_headers = _rises(signs), _groups_without_headers(signs)
    result = []
    for row in sums_of_groups(signs.lag, "lag"):
        group_id = row["group_id"]
        least = max(LEAST_GROWTH, LARGE_SHARE * row["size"], lawful_growth.get(group_id, 0))
        if groups.get(group_id, {}).get("state") == EMPTY or row["size"] < least:
            continue
        rise = rises.get(group_id)
        if rise is None and group_id in without_headers:
            text = f"{lag_text(row)}, and whether it grows is unknown"
            result.append(_growing(signs, row, text, Need.HEADERS.remedy))
        elif rise is not None and min(rise) > 0 and sum(rise) >= least:
            text = f"{lag_text(row)}, {number(sum(rise))} more than at {clock(signs.samples[0].at_ms, signs.now_ms)}"
            result.append(_growing(signs, row, text, None))
    return result


def _growing(signs: Signs, row: Row, text: str, remedy: str | None) -> Finding:
    return about_group(
        signs, {**row, "since_ms": signs.samples[0].at_ms}, severity=WARNING, kind="lag_growing", text=text,
        question="lag", remedy=remedy,
    )  # fmt: skip


def _groups_without_headers(signs: Signs) -> set[str]:
    """The groups with user partitions whose earlier ends nothing tells."""
    partition, partitions = numbered_partitions(signs.lag)
    has_none = np.array([place not in signs.with_headers for place in partitions], np.bool_)[partition]
    return set(signs.lag.column("group_id").filter(pa.array(has_none)).unique().to_pylist())


def _lawful_growth(signs: Signs) -> dict[str, float]:
    """By group the growth that is none: GROWTH_SHARE of the records that it lately finished in GROWTH_MS."""
    begin_ms = (signs.now_ms - GROWTH_MS) // HOUR_MS * HOUR_MS
    span_ms = max(GROWTH_MS, signs.now_ms - max(begin_ms, signs.first_ms))
    lately = signs.attempts.filter(pc.field("hour_ms") >= begin_ms)
    return {
        row["group_id"]: GROWTH_SHARE * row["size"] * GROWTH_MS / span_ms for row in sums_of_groups(lately, "offsets")
    }


def _rises(signs: Signs) -> dict[str, list[int]]:
    """By group the growth from each sample to the next, and to now."""
    now = LagSample(at_ms=signs.now_ms, rows=signs.lag.select([*SHARE_PARTITION_KEY, "lag"]))
    joined = signs.lag.select(SHARE_PARTITION_KEY)
    names = []
    for place_, sample in enumerate((*signs.samples, now)):
        names.append(f"lag_{place_}")
        rows = sample.rows.rename_columns([*SHARE_PARTITION_KEY, names[-1]])
        joined = joined.join(rows, keys=SHARE_PARTITION_KEY, join_type="inner")
    joined = joined.drop_null()
    sums = joined.group_by("group_id").aggregate([(name, "sum") for name in names]).to_pylist()
    return {
        row["group_id"]: [row[f"{after}_sum"] - row[f"{before}_sum"] for before, after in itertools.pairwise(names)]
        for row in sums
    }


def initialising_stuck(signs: Signs, thresholds: Thresholds) -> Iterator[Finding]:
    """Share partitions that the coordinator initializes or deletes without an end."""
    for group in signs.coordination:
        since_ms = group.initialized_ms
        for topic_id, partition in group.repeated[:1]:
            row = {
                "group_id": group.group_id, "topic_id": topic_id, "partition": partition,
                "share_partitions": len(group.repeated), "size": None, "since_ms": None,
            }  # fmt: skip
            text = f"{where(signs, row)} came into initialization {REPEATS} times or more in the last hour"
            text += other_partitions(row)
            yield about_group(signs, row, severity=ERROR, kind="initialising_stuck", text=text, question="groups")
        if not group.initializing or since_ms is None:
            continue
        lasting_ms = signs.now_ms - since_ms
        if lasting_ms < thresholds.or_min_duration(UNSTABLE_MS):
            continue
        topic_id, partition, status = group.initializing[0]
        name = place(signs.names.get(topic_id), topic_id, partition) if partition >= 0 else _topic(signs, topic_id)
        row = {
            "group_id": group.group_id, "topic_id": topic_id, "partition": max(0, partition), "since_ms": since_ms,
            "share_partitions": len(group.initializing), "size": None,
        }  # fmt: skip
        text = f"{name} is {'deleted' if status == DELETING else 'initialized'} since {clock(since_ms, signs.now_ms)} "
        text += f"({lasted(lasting_ms)}) without an end{other_partitions(row)}"
        yield about_group(signs, row, severity=ERROR, kind="initialising_stuck", text=text, question="groups")


def _topic(signs: Signs, topic_id: str) -> str:
    return f"topic {signs.names.get(topic_id, topic_id)}"


def unassigned(signs: Signs, thresholds: Thresholds) -> Iterator[Finding]:
    """User partitions with a lag that no member has, in groups with members."""
    behind = signs.lag.filter(pc.greater(signs.work, 0))
    least_ms = thresholds.or_min_duration(UNASSIGNED_MS)
    for group in signs.coordination:
        if not group.members or signs.now_ms - group.changed_ms < least_ms:
            continue
        rows = behind.filter(pc.field("group_id") == group.group_id)
        free = [
            (row["topic_id"], row["partition"]) not in group.assigned
            for row in rows.select(["topic_id", "partition"]).to_pylist()
        ]
        for row in worst_of_groups(rows.filter(pa.array(free, pa.bool_())), [("lag", "descending")]):
            yield _nobodys(signs, group, row)


def _nobodys(signs: Signs, group: ShareCoordination, row: Row) -> Finding:
    lasting = lasted(signs.now_ms - group.changed_ms)
    text = f"{where(signs, row)} is nobody's for {lasting}, with {counted(group.members, 'member')} in the group"
    return about_group(
        signs, {**row, "since_ms": group.changed_ms, "size": row["lag"]}, severity=ERROR, kind="unassigned",
        text=f"{text}{other_partitions(row)}", question="describe",
    )  # fmt: skip


def epoch_loop(signs: Signs, thresholds: Thresholds) -> Iterator[Finding]:
    """Groups that come to no rest: a new epoch every few seconds for minutes."""
    for group in signs.coordination:
        minutes = [
            sum(begin <= epoch_ms < begin + MINUTE_MS for epoch_ms in group.epochs_ms)
            for begin in range(signs.now_ms - LOOP_MS, signs.now_ms, MINUTE_MS)
        ]
        if min(minutes) >= EPOCHS_A_MINUTE:
            row = {"group_id": group.group_id, "size": sum(minutes), "since_ms": signs.now_ms - LOOP_MS}
            text = f"{number(sum(minutes))} group epochs in {lasted(LOOP_MS)}: members come and go"
            yield about_group(signs, row, severity=WARNING, kind="epoch_loop", text=text, question="rebalances")


RULES: Mapping[str, Rule] = {
    rule.kind: rule
    for rule in (
        Rule(
            kind="no_members",
            subject="group",
            severities=(ERROR, WARNING, INFO),
            when="A group without members has records to do. An error where it finished records within a day.",
            threshold="after 5 minutes; after 7 days information, as share groups never expire; a lag of 1 or 2 is a "
            "warning at most",
            decisive=(Need.COORDINATOR_LOG, Need.TOPIC_END, Need.NOW),
            judge=no_members,
            unjudged="members",
        ),
        Rule(
            kind="not_started",
            subject="share partition",
            severities=(WARNING, INFO),
            when="Nothing was done of a user partition since the group got it, although it has records that the group "
            "gets: newer ones, or older ones under `earliest`. Information where that is unknown.",
            threshold="one minute",
            decisive=(Need.STATE_LOG,),
            refining=(Need.TOPIC_END, Need.HEADERS, Need.SETTINGS),
            judge=not_started,
        ),
        Rule(
            kind="lag_growing",
            subject="group",
            severities=(WARNING,),
            when="The lag of a group with members rises over three samples.",
            threshold="10 minutes, 10 records, a tenth of the lag, 2 % of the records that the group finishes in them",
            decisive=(Need.STATE_LOG, Need.HEADERS),
            judge=lag_growing,
            unjudged="growth",
        ),
        Rule(
            kind="initialising_stuck",
            subject="group",
            severities=(ERROR,),
            when="Share partitions are in initialization or deletion, and nothing ends it, or come into initialization "
            "again and again.",
            threshold="one minute; three times in an hour",
            decisive=(Need.COORDINATOR_LOG,),
            judge=initialising_stuck,
        ),
        Rule(
            kind="unassigned",
            subject="share partition",
            severities=(ERROR,),
            when="A group has members, and none of them has a user partition with a lag.",
            threshold="two minutes",
            decisive=(Need.COORDINATOR_LOG,),
            refining=(Need.TOPIC_END,),
            judge=unassigned,
        ),
        Rule(
            kind="epoch_loop",
            subject="group",
            severities=(WARNING,),
            when="The group epoch rises all the time: members come and go.",
            threshold="six epochs in each of five minutes",
            decisive=(Need.COORDINATOR_LOG,),
            judge=epoch_loop,
        ),
    )
}
