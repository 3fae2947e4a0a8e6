"""Rules about streams groups."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from sharelens.findings.finding import ERROR, INFO, WARNING, Finding
from sharelens.findings.model_groups import about_sign, lag_text, of_kind, without_members, worst_first
from sharelens.findings.rule import Need, Rule
from sharelens.findings.signs import Signs, StreamsSign
from sharelens.findings.thresholds import (
    GROWTH_MS,
    LARGE_SHARE,
    LEAST_GROWTH,
    STREAMS_GROWTH_SHARE,
    UNSTABLE_MS,
    Thresholds,
)
from sharelens.groups.schemas import NOT_READY, UNSETTLED
from sharelens.output.group_words import not_ready_reason, task_name
from sharelens.output.wording import clock, counted, first_of, number
from sharelens.parameters.times import lasted

TASKS_NAMED = 5


def no_members(signs: Signs, thresholds: Thresholds) -> list[Finding]:
    """Groups whose coordinator knows no member, with records to do, or of which that is unknown."""
    return worst_first(without_members, signs.streams, signs, thresholds)


def not_ready(signs: Signs, thresholds: Thresholds) -> list[Finding]:
    """Groups that wait for their topology or their topics."""
    return worst_first(_not_ready, signs.streams, signs, thresholds)


def tasks_without_owner(signs: Signs, thresholds: Thresholds) -> list[Finding]:
    """Groups with tasks that nobody processes."""
    return worst_first(_ownerless, signs.streams, signs, thresholds)


def lag_growing(signs: Signs, thresholds: Thresholds) -> list[Finding]:
    """Groups with members whose lag is larger than it was."""
    return worst_first(_growing, signs.streams, signs, thresholds)


def rebalancing(signs: Signs, thresholds: Thresholds) -> list[Finding]:
    """Groups that do not come to rest."""
    return worst_first(_rebalancing, signs.streams, signs, thresholds)


def found_in(groups: Sequence[StreamsSign], thresholds: Thresholds) -> list[Finding]:
    """What is found of some groups until a moment at which the evidence goes on."""
    kinds = (without_members, _not_ready, _ownerless, _growing, _rebalancing)
    rows = chain.from_iterable(of_kind(kind, groups, thresholds, is_now_known=True) for kind in kinds)
    return [row for row in rows if row.remedy is None]


def _not_ready(sign: StreamsSign, thresholds: Thresholds, is_now_known: bool) -> Iterator[Finding]:
    """A start is lawfully not ready for a moment, and such a group writes nothing more."""
    if sign.state != NOT_READY:
        return
    duration_ms = sign.now_ms - sign.since_ms
    reason = not_ready_reason(sign.topology_epoch, sign.validated_topology_epoch)
    tail = f"{reason}; {counted(sign.members, 'member')}"
    if duration_ms >= thresholds.or_min_duration(UNSTABLE_MS):
        least = "" if is_now_known else "at least "
        since = f"since {clock(sign.since_ms, sign.now_ms)} ({least}{lasted(duration_ms)})"
        yield about_sign(sign, ERROR, "not_ready", f"not ready {since}: {tail}", "describe", "--state")
    elif not is_now_known:
        text = f"not yet judged: NOT_READY for at least {lasted(duration_ms)}: {tail}"
        yield about_sign(sign, ERROR, "not_ready", text, "describe", "--state", remedy=Need.NOW.remedy)


def _ownerless(sign: StreamsSign, thresholds: Thresholds, is_now_known: bool) -> Iterator[Finding]:
    until_ms = sign.now_ms - thresholds.or_min_duration(UNSTABLE_MS)
    tasks = {task: since_ms for task, since_ms in sign.without_owner.items() if since_ms <= until_ms}
    if tasks and sign.members:
        since_ms = min(tasks.values())
        names = first_of(list(tasks), lambda task: task_name(*task), TASKS_NAMED)
        since = f"since {clock(since_ms, sign.now_ms)} ({lasted(sign.now_ms - since_ms)})"
        text = f"{counted(len(tasks), 'active task')} without an owner {since}: {names}"
        yield about_sign(
            sign, ERROR, "tasks_without_owner", text, "describe", "--tasks", size=len(tasks), since=since_ms
        )


def _growing(sign: StreamsSign, thresholds: Thresholds, is_now_known: bool) -> Iterator[Finding]:
    growth, records = sign.lag.growth, sign.lag.records
    if growth is None or records is None or sign.now_ms - sign.window_ms < GROWTH_MS:
        return
    if growth >= max(LEAST_GROWTH, LARGE_SHARE * records, STREAMS_GROWTH_SHARE * sign.lag.finished):
        text = f"{lag_text(sign)}, {number(growth)} more than at {clock(sign.window_ms, sign.now_ms)}"
        yield about_sign(sign, WARNING, "lag_growing", text, "describe", size=records, since=sign.window_ms)


def _rebalancing(sign: StreamsSign, thresholds: Thresholds, is_now_known: bool) -> Iterator[Finding]:
    least_ms = thresholds.or_min_duration(UNSTABLE_MS)
    lasting_ms, window_ms = sign.now_ms - sign.since_ms, sign.now_ms - sign.window_ms
    if sign.state in UNSETTLED and lasting_ms >= least_ms:
        text = f"not stable since {clock(sign.since_ms, sign.now_ms)} ({lasted(lasting_ms)}), "
        text += f"{counted(sign.epochs, 'group epoch')} since then"
        yield about_sign(sign, WARNING, "rebalancing", text, "rebalances")
    elif sign.members and sign.unsettled_ms >= max(1, least_ms, window_ms // 2):
        text = f"not stable for {lasted(sign.unsettled_ms)} of the last {lasted(window_ms)}, "
        text += f"{counted(sign.window_epochs, 'group epoch')} in that time"
        yield about_sign(sign, WARNING, "rebalancing", text, "rebalances", since=sign.window_ms)


RULES: Mapping[str, Rule] = {
    rule.kind: rule
    for rule in (
        Rule(
            kind="no_members",
            subject="streams group",
            severities=(ERROR, WARNING, INFO),
            when="As for share groups; an error without regard to what the group did before.",
            threshold="after 5 minutes; after 7 days information; a lag of 1 or 2 is a warning at most",
            decisive=(Need.COORDINATOR_LOG, Need.TOPIC_END, Need.NOW),
            judge=no_members,
            unjudged="lag",
        ),
        Rule(
            kind="not_ready",
            subject="streams group",
            severities=(ERROR,),
            when="A group waits for its topology or its topics.",
            threshold="one minute",
            decisive=(Need.COORDINATOR_LOG, Need.NOW),
            judge=not_ready,
            unjudged="readiness",
        ),
        Rule(
            kind="tasks_without_owner",
            subject="streams group",
            severities=(ERROR,),
            when="No member has a task that it or another one had or must get.",
            threshold="one minute",
            decisive=(Need.COORDINATOR_LOG,),
            judge=tasks_without_owner,
        ),
        Rule(
            kind="lag_growing",
            subject="streams group",
            severities=(WARNING,),
            when="The lag of a group with members is larger than it was.",
            threshold="10 minutes, 10 records, a tenth of the lag, 5 % of the offsets that the group commits in them",
            decisive=(Need.COORDINATOR_LOG,),
            refining=(Need.TOPIC_END,),
            judge=lag_growing,
        ),
        Rule(
            kind="rebalancing",
            subject="streams group",
            severities=(WARNING,),
            when="A group is not stable for that long, or for half of the last ten minutes.",
            threshold="one minute",
            decisive=(Need.COORDINATOR_LOG,),
            judge=rebalancing,
        ),
    )
}
