"""Rules about lives of share partitions: what was lost, skipped, reset or created again."""

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.findings.about import about_group, offsets_remedy, other_partitions, where
from sharelens.findings.finding import ERROR, INFO, WARNING, Finding, Row
from sharelens.findings.group_rows import worst_of_groups
from sharelens.findings.rule import Need, Rule
from sharelens.findings.signs import Signs
from sharelens.findings.thresholds import Thresholds
from sharelens.measures.deletions import BY_GROUP, BY_OFFSETS, DELETION
from sharelens.output.wording import clock, counted, number, topic_name

NEWEST_FIRST = [("log_time_ms", "descending")]
BY: Mapping[str | None, str] = {
    BY_GROUP: "the group was deleted",
    BY_OFFSETS: "an administrator deleted its offsets",
}
"""What deleted share state, in words; by default the topic was deleted."""


def recreated(signs: Signs, thresholds: Thresholds) -> Iterator[Finding]:
    """Share partitions that were deleted and created again."""
    for row in worst_of_groups(_events(signs, "recreated"), NEWEST_FIRST):
        yield _event(signs, row, WARNING, "deleted_and_created", "was deleted and created again")


def reset(signs: Signs, thresholds: Thresholds) -> Iterator[Finding]:
    """Start offsets that were reset or went back."""
    for row in worst_of_groups(_events(signs, "reset", "start_offset_went_back"), NEWEST_FIRST):
        verb = f"was reset to start offset {number(row['start_offset_after'])}"
        yield _event(signs, row, WARNING, "start_offset_reset", verb)


def records_skipped(signs: Signs, thresholds: Thresholds) -> Iterator[Finding]:
    """Unfinished records that nobody will get: deleted by the topic's log start, or skipped by a reset forward."""
    below = [
        (start := signs.log_starts.get((row["topic_id"], row["partition"]))) is not None
        and 0 <= row["first_incomplete_offset"] < start
        for row in signs.stalls.select(["topic_id", "partition", "first_incomplete_offset"]).to_pylist()
    ]
    rows = signs.stalls.filter(pa.array(below, pa.bool_()))
    for row in worst_of_groups(rows, [("first_incomplete_offset", "ascending")]):
        start = signs.log_starts[row["topic_id"], row["partition"]]
        text = f"{where(signs, row)} begins at offset {number(start)}, and offset "
        text += f"{number(row['first_incomplete_offset'])} was not finished{other_partitions(row)}"
        yield about_group(
            signs, {**row, "size": start - row["first_incomplete_offset"]}, severity=ERROR, kind="records_skipped",
            text=text, question="stalled",
        )  # fmt: skip
    skipping = _events(signs, "reset")
    skipped = pc.subtract(
        pc.add(pc.subtract(skipping.column("skipped_last_offset"), skipping.column("skipped_first_offset")), 1),
        pc.fill_null(skipping.column("settled_skipped"), 0),
    )
    skipping = skipping.append_column("skipped", skipped).filter(pc.field("skipped") > 0)
    for row in worst_of_groups(skipping, [("skipped", "descending")]):
        verb = f"was reset forward over {counted(row['skipped'], 'unfinished record')}"
        yield _event(signs, {**row, "size": row["skipped"]}, WARNING, "records_skipped", verb)


def state_deleted(signs: Signs, thresholds: Thresholds) -> Iterator[Finding]:
    """Groups that lost all share partitions of a topic lately."""
    deleted = _events(signs, DELETION)
    live = set(zip(*(signs.lag.column(name).to_pylist() for name in ("group_id", "topic_id")), strict=True))
    live_names = {(group_id, signs.names.get(topic_id)) for group_id, topic_id in live}
    groups = signs.groups_by_id
    for topic_id in deleted.column("topic_id").unique().to_pylist():
        for row in worst_of_groups(deleted.filter(pc.field("topic_id") == topic_id), NEWEST_FIRST):
            if (row["group_id"], topic_id) in live:
                continue
            topic = topic_name(signs.names.get(topic_id), topic_id)
            at = clock(row["log_time_ms"], signs.now_ms)
            is_of_topic = row["deleted_by_inferred"] not in BY
            cause = f"topic {topic} was deleted" if is_of_topic else BY[row["deleted_by_inferred"]]
            text = f"lost all {counted(row['share_partitions'], 'share partition')} of {topic} at {at}: {cause}"
            group, name = groups.get(row["group_id"], {"members": ()}), signs.names.get(topic_id)
            subscribed = (row["group_id"], name) not in live_names and any(
                name in (each["subscribed_topics"] or ()) for each in group["members"]
            )
            remedy = None
            if signs.groups is None and is_of_topic:
                text = f"{text}, and whether members still subscribe to it is unknown"
                remedy = offsets_remedy(signs, row["group_id"])
            yield about_group(
                signs, {**row, "since_ms": row["log_time_ms"]}, severity=WARNING if subscribed or remedy else INFO,
                kind="state_deleted", text=text, question="life", remedy=remedy,
            )  # fmt: skip


def _events(signs: Signs, *events: str) -> pa.Table:
    return signs.events.filter(pc.is_in(signs.events.column("event"), value_set=pa.array(events)))


def _event(signs: Signs, row: Row, severity: str, kind: str, verb: str) -> Finding:
    at = clock(row["log_time_ms"], signs.now_ms)
    text = f"{where(signs, row)} {verb} at {at}{other_partitions(row)}"
    return about_group(
        signs, {**row, "since_ms": row["log_time_ms"]}, severity=severity, kind=kind, text=text, question="life"
    )


RULES: Mapping[str, Rule] = {
    rule.kind: rule
    for rule in (
        Rule(
            kind="records_skipped",
            subject="share partition",
            severities=(ERROR, WARNING),
            when="The topic begins above the first unfinished offset: retention or a deletion of records took what "
            "nobody had done. A warning where a reset of the last hour skipped unfinished records.",
            decisive=(Need.STATE_LOG,),
            refining=(Need.TOPIC_END,),
            judge=records_skipped,
        ),
        Rule(
            kind="start_offset_reset",
            subject="share partition",
            severities=(WARNING,),
            when="A start offset was reset or went back in the last hour.",
            decisive=(Need.STATE_LOG,),
            judge=reset,
        ),
        Rule(
            kind="deleted_and_created",
            subject="share partition",
            severities=(WARNING,),
            when="A share partition was deleted and created again in the last hour.",
            decisive=(Need.STATE_LOG,),
            judge=recreated,
        ),
        Rule(
            kind="state_deleted",
            subject="group",
            severities=(WARNING, INFO),
            when="A group lost all share partitions of a topic in the last hour: the topic, the group or its offsets "
            "were deleted. A warning where members still subscribe to the topic, and it was not created again.",
            decisive=(Need.STATE_LOG, Need.COORDINATOR_LOG),
            judge=state_deleted,
            unjudged="lost topics",
        ),
    )
}
