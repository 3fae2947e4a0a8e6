"""Rules about the topics in which coordinators keep their state, by the metadata log."""

from collections.abc import Iterator, Mapping
from typing import Any

from sharelens.findings.finding import ERROR, WARNING, Finding
from sharelens.findings.rule import Need, Rule
from sharelens.findings.signs import Signs, UnprunedState
from sharelens.findings.thresholds import UNPRUNED_BYTES, UNPRUNED_MS, UNSTABLE_MS, Thresholds
from sharelens.output.wording import clock, counted, place
from sharelens.parameters.times import lasted
from sharelens.tables.missing import NO_STATE, MissingState


def coordination_unwritable(signs: Signs, thresholds: Thresholds) -> Iterator[Finding]:
    """Partitions of the state and offsets topics that nobody can write to: no group of theirs gets on."""
    least_ms = thresholds.or_min_duration(UNSTABLE_MS)
    lasting = [each for each in signs.unwritable or () if signs.now_ms - each.since_ms >= least_ms]
    for topic in dict.fromkeys(each.topic for each in lasting):
        of_topic = sorted((each for each in lasting if each.topic == topic), key=lambda each: each.since_ms)
        worst = of_topic[0]
        other_text = f", and {counted(len(of_topic) - 1, 'more partition')}" if len(of_topic) > 1 else ""
        since = f"since {clock(worst.since_ms, signs.now_ms)} ({lasted(signs.now_ms - worst.since_ms)})"
        yield Finding(
            severity=ERROR,
            kind="coordination_unwritable",
            text=f"{topic}-{worst.partition} can't be written to {since}: {worst.why}{other_text}",
            question="status",
            topic=topic,
            partition=worst.partition,
            since_ms=worst.since_ms,
        )


def state_lost(signs: Signs, thresholds: Thresholds) -> Iterator[Finding]:
    """Initialized share partitions without a record of state, although the folder of their state partition is whole."""
    initialized_ms = {group.group_id: group.initialized_ms for group in signs.coordination}
    until_ms = signs.now_ms - thresholds.or_min_duration(UNSTABLE_MS)
    for state in signs.missing.states.items:
        since_ms = initialized_ms.get(state.group_id)
        if state.reason != NO_STATE or since_ms is None or since_ms > until_ms:
            continue
        text = f"{_at(signs, state)} is initialized since {clock(since_ms, signs.now_ms)} and has no state in state "
        text += f"partition {state.state_partition}, which is whole here"
        yield _of_state(
            signs, state, severity=ERROR, kind="state_lost", text=text, question="status", since_ms=since_ms
        )


def state_not_pruned(signs: Signs, thresholds: Thresholds) -> Iterator[Finding]:
    """State partitions whose log grows because a share partition gets no new snapshot."""
    for state in signs.unpruned:
        if state.held_up_ms < UNPRUNED_MS or state.written_bytes < UNPRUNED_BYTES:
            continue
        text = f"state partition {state.state_partition} can't be pruned from the snapshot of {_at(signs, state)} on, "
        text += f"{lasted(state.held_up_ms)} old: {state.written_bytes >> 20} MiB were written since"
        yield _of_state(
            signs, state, severity=WARNING, kind="state_not_pruned", text=text, question="cost",
            options=("--state-partitions",), since_ms=state.since_ms,
        )  # fmt: skip


def _at(signs: Signs, state: MissingState | UnprunedState) -> str:
    return place(signs.names.get(state.topic_id), state.topic_id, state.partition)


def _of_state(signs: Signs, state: MissingState | UnprunedState, **values: Any) -> Finding:
    """A finding about the state of one share partition."""
    return Finding(
        group_id=state.group_id,
        topic_id=state.topic_id,
        topic=signs.names.get(state.topic_id),
        partition=state.partition,
        share_partitions=1,
        **values,
    )


RULES: Mapping[str, Rule] = {
    "state_lost": Rule(
        kind="state_lost",
        subject="share partition",
        severities=(ERROR,),
        when="The coordinator's log says that a share partition is initialized, and its state partition, which is here "
        "without gaps, has no record of it.",
        threshold="one minute",
        decisive=(Need.STATE_LOG, Need.COORDINATOR_LOG),
        judge=state_lost,
    ),
    "state_not_pruned": Rule(
        kind="state_not_pruned",
        subject="state partition",
        severities=(WARNING,),
        when="The oldest of the newest snapshots of a state partition's share partitions is old, and the log grew "
        "since: Kafka prunes up to that snapshot (ShareCoordinatorOffsetsManager). Bytes are those of keys and values "
        "above the log start offset; there is no finding at an earlier moment, whose log start is not known.",
        threshold="15 minutes of log time and 100 MiB",
        decisive=(Need.STATE_LOG,),
        judge=state_not_pruned,
    ),
    "coordination_unwritable": Rule(
        kind="coordination_unwritable",
        subject="cluster",
        severities=(ERROR,),
        when="A partition of __share_group_state or __consumer_offsets has no leader, or fewer in-sync replicas than "
        "min.insync.replicas.",
        threshold="one minute",
        refining=(Need.METADATA_LOG,),
        judge=coordination_unwritable,
    ),
}
