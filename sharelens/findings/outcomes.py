"""Rules about what became of records lately: archived, delivered again, missing as dead letters."""

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.findings.about import about_group, share_remedy, spread
from sharelens.findings.finding import ERROR, WARNING, Finding
from sharelens.findings.group_rows import first_hours, sums_of_groups
from sharelens.findings.rule import Need, Rule
from sharelens.findings.signs import Signs
from sharelens.findings.thresholds import (
    BURST_MS,
    BURST_SHARE,
    HOUR_MS,
    LARGE_BURST_SHARE,
    LARGE_SHARE,
    LEAST_BURST,
    LEAST_GROWTH,
    RECENT_MS,
    Thresholds,
)
from sharelens.measures.dlq.schemas import NO_TOPIC_KNOWN, TOPIC_NOT_HELD
from sharelens.measures.poison import DELIVERY_LIMIT, UNKNOWN
from sharelens.measures.settings.over_time import LOWEST_DELIVERY_COUNT_LIMIT
from sharelens.output.wording import clock, counted, number

UNJUDGED_LETTERS: Mapping[str, tuple[str, Need]] = {
    TOPIC_NOT_HELD: ("the dead-letter topic is not in the evidence", Need.LETTERS),
    NO_TOPIC_KNOWN: ("the dead-letter topic is unknown", Need.GROUP_SETTINGS),
}
"""Why dead letters are not judged, and what settles it."""


def recent_attempts(signs: Signs) -> pa.Table:
    """The settled records of the hours of which outcomes are recent."""
    return signs.attempts.filter(pc.field("hour_ms") >= (signs.now_ms - RECENT_MS) // HOUR_MS * HOUR_MS)


def archived(signs: Signs, thresholds: Thresholds) -> Iterator[Finding]:
    """Records that groups archived recently.

    Without headers a marker of a transaction looks like a record that was rejected at its first delivery: where a group
    archived nothing else, that may be lawful.
    """
    without_headers, with_records = set(), set()
    kinds = signs.archived.group_by(["group_id", "topic_id", "partition", "cause", "delivery_count"]).aggregate([])
    for row in kinds.to_pylist():
        has_headers = (row["topic_id"], row["partition"]) in signs.with_headers
        if not has_headers:
            without_headers.add(row["group_id"])
        if has_headers or row["cause"] != UNKNOWN or row["delivery_count"] > 1:
            with_records.add(row["group_id"])
    for row in _recent(signs, signs.archived, "records"):
        since = f"{spread(row)} since {clock(row['since_ms'], signs.now_ms)}"
        text = f"archived {counted(row['size'], 'record')}{since}"
        if row["group_id"] in without_headers:
            text = f"archived up to {counted(row['size'], 'offset')}{since}, markers of transactions included"
        remedy = None if row["group_id"] in with_records else Need.HEADERS.remedy
        yield about_group(
            signs, row, severity=WARNING, kind="records_archived", text=text, question="poison", remedy=remedy
        )


def redelivered(signs: Signs, thresholds: Thresholds) -> Iterator[Finding]:
    """Groups of which many of the deliveries of recently settled records were repeated ones."""
    attempts = recent_attempts(signs)
    deliveries = {row["group_id"]: row["size"] for row in sums_of_groups(attempts, "deliveries")}
    for row in _recent(signs, attempts, "extra_deliveries"):
        count = deliveries[row["group_id"]]
        if row["size"] >= max(LEAST_GROWTH, LARGE_SHARE * count):
            text = f"{number(row['size'])} of {counted(count, 'delivery', 'deliveries')} of records settled since "
            text += f"{clock(row['since_ms'], signs.now_ms)} were repeated ones{spread(row)}"
            yield about_group(
                signs, row, severity=WARNING, kind="redelivery_burst", text=text, question="redelivered",
                remedy=share_remedy(signs, row["group_id"]),
            )  # fmt: skip


def limit_burst(signs: Signs, thresholds: Thresholds) -> Iterator[Finding]:
    """Groups that lately archived many records at the delivery count limit."""
    begin_ms = signs.now_ms - BURST_MS
    lately = signs.archived.filter(pc.field("last_outcome_ms") >= begin_ms)
    at_limit = lately.filter(pc.field("cause") == DELIVERY_LIMIT)
    of_hours = signs.attempts.filter(pc.field("hour_ms") >= begin_ms // HOUR_MS * HOUR_MS)
    outcomes = {row["group_id"]: row["size"] for row in sums_of_groups(of_hours, "offsets")}
    since_ms = max(begin_ms, signs.first_ms)
    since = clock(since_ms, signs.now_ms)
    bursts = _bursts(at_limit, outcomes)
    for group, row in bursts.items():
        count = max(outcomes.get(group, 0), row["size"])
        text = f"{counted(row['size'], 'record')} archived at the delivery count limit since {since}, "
        text += f"of {counted(count, 'outcome')} of the hour{spread(row)}"
        severity = ERROR if row["size"] >= LARGE_BURST_SHARE * count else WARNING
        yield about_group(
            signs, {**row, "since_ms": since_ms}, severity=severity, kind="limit_burst", text=text, question="poison",
            remedy=share_remedy(signs, group),
        )  # fmt: skip
    may_reach = pc.field("delivery_count") >= LOWEST_DELIVERY_COUNT_LIMIT
    may_be = lately.filter(pc.field("cause").isin([DELIVERY_LIMIT, UNKNOWN]) & may_reach)
    for group, row in _bursts(may_be, outcomes).items():
        if group not in bursts:
            text = f"{counted(row['size'], 'record')} archived since {since}{spread(row)}: the cause is unknown"
            yield about_group(
                signs, {**row, "since_ms": since_ms}, severity=WARNING, kind="limit_burst", text=text,
                question="poison", remedy=Need.SETTINGS.remedy,
            )  # fmt: skip


def _bursts(rows: pa.Table, outcomes: Mapping[str, int]) -> dict[str, dict[str, Any]]:
    """The groups of which the rows are many, and a large part of all outcomes."""
    return {
        row["group_id"]: row
        for row in sums_of_groups(rows, "records")
        if row["size"] >= max(LEAST_BURST, BURST_SHARE * outcomes.get(row["group_id"], 0))
    }


def missing_letters(signs: Signs, thresholds: Thresholds) -> Iterator[Finding]:
    """Dead letters that are due and did not come; those of which the dead-letter topic is not in the evidence."""
    for row in sums_of_groups(signs.missing_letters, "records"):
        text = f"{counted(row['size'], 'dead letter')} missing{spread(row)}"
        yield about_group(signs, row, severity=ERROR, kind="dead_letters_missing", text=text, question="dlq")
    for reason, (why, need) in UNJUDGED_LETTERS.items():
        for row in sums_of_groups(signs.unjudged_letters.filter(pc.field("reason") == reason), "records"):
            text = f"whereabouts of {counted(row['size'], 'record')} given up not judged{spread(row)}: {why}"
            yield about_group(
                signs, row, severity=ERROR, kind="dead_letters_missing", text=text, question="dlq",
                remedy=need.remedy,
            )  # fmt: skip


def _recent(signs: Signs, rows: pa.Table, column: str) -> list[dict[str, Any]]:
    """The sums by group of outcomes, with `since_ms`: their first hour, as far as the evidence has it."""
    hours = first_hours(rows, column)
    return [{**row, "since_ms": max(signs.first_ms, hours[row["group_id"]])} for row in sums_of_groups(rows, column)]


RULES: Mapping[str, Rule] = {
    rule.kind: rule
    for rule in (
        Rule(
            kind="dead_letters_missing",
            subject="group",
            severities=(ERROR,),
            when="Dead letters are due by the group's settings, or as records were archiving, and the "
            "dead-letter topic does not have them.",
            decisive=(Need.STATE_LOG, Need.LETTERS),
            refining=(Need.SETTINGS,),
            judge=missing_letters,
            unjudged="dead letters",
        ),
        Rule(
            kind="limit_burst",
            subject="group",
            unjudged="bursts at the delivery count limit",
            severities=(ERROR, WARNING),
            when="Many records reached the delivery count limit in a few minutes; an error where they are half of the "
            "outcomes of their hour.",
            threshold="10 records and 5 % of the outcomes, in 5 minutes",
            decisive=(Need.STATE_LOG, Need.SETTINGS),
            judge=limit_burst,
        ),
        Rule(
            kind="redelivery_burst",
            subject="group",
            severities=(WARNING,),
            when="Many deliveries of records that were settled in the last hour were repeated ones.",
            threshold="10 deliveries and a tenth of all",
            decisive=(Need.STATE_LOG,),
            judge=redelivered,
        ),
        Rule(
            kind="records_archived",
            subject="group",
            severities=(WARNING,),
            when="A group archived records in the last hour.",
            decisive=(Need.STATE_LOG, Need.HEADERS),
            judge=archived,
            unjudged="archived offsets",
        ),
    )
}
