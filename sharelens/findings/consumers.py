"""Rules about consumer groups, which count in a verdict where somebody asks for all groups (--all-groups)."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from sharelens.findings.finding import ERROR, INFO, WARNING, Finding
from sharelens.findings.model_groups import about_sign, of_kind, without_members, worst_first
from sharelens.findings.rule import Need, Rule
from sharelens.findings.signs import ConsumerSign, Signs
from sharelens.findings.thresholds import (
    CONSUMER_SESSION_MS,
    EPOCHS_A_MINUTE,
    LOOP_MS,
    MINUTE_MS,
    RECONCILIATION_MS,
    UNASSIGNED_MS,
    Thresholds,
)
from sharelens.groups.schemas import UNSETTLED
from sharelens.output.wording import clock, counted, first_of, name, number
from sharelens.parameters.times import lasted

NAMED = 5
SUBJECT = "consumer group"


def no_members(signs: Signs, thresholds: Thresholds) -> list[Finding]:
    """Groups whose coordinator knows no member, with records to do, or of which that is unknown."""
    return worst_first(without_members, signs.consumers, signs, thresholds)


def reconciliation_stuck(signs: Signs, thresholds: Thresholds) -> list[Finding]:
    """Groups with members that wait for partitions for longer than Kafka lets another member keep them."""
    return worst_first(_stuck, signs.consumers, signs, thresholds)


def unassigned(signs: Signs, thresholds: Thresholds) -> list[Finding]:
    """Groups with members and partitions that nobody has, or with members without partitions."""
    return worst_first(_unassigned, signs.consumers, signs, thresholds)


def epoch_loop(signs: Signs, thresholds: Thresholds) -> list[Finding]:
    """Groups that come to no rest: a new epoch every few seconds for minutes."""
    return worst_first(_looping, signs.consumers, signs, thresholds)


def kinds_by_group(
    groups: Sequence[ConsumerSign], thresholds: Thresholds, *, is_now_known: bool
) -> dict[str, list[str]]:
    """By group the kinds of findings about it, errors and warnings; `KIND:unknown` where it is not judged."""
    rows = chain.from_iterable(
        of_kind(kind, groups, thresholds, is_now_known=is_now_known)
        for kind in (_stuck, _unassigned, without_members, _looping)
    )
    kinds: dict[str, list[str]] = {}
    for row in rows:
        if row.severity != INFO and row.group_id is not None:
            text = row.kind if row.remedy is None else f"{row.kind}:unknown"
            kinds.setdefault(row.group_id, []).append(text)
    return kinds


def patience_ms(sign: ConsumerSign) -> int:
    """How long a member may wait: until another one that does not revoke or that is gone is fenced, or 5 minutes."""
    if sign.rebalance_timeout_ms is None:
        return RECONCILIATION_MS
    return max(RECONCILIATION_MS, sign.rebalance_timeout_ms + CONSUMER_SESSION_MS)


def _stuck(sign: ConsumerSign, thresholds: Thresholds, is_now_known: bool) -> Iterator[Finding]:
    if not sign.waiting:
        return
    limit_ms = thresholds.or_min_duration(patience_ms(sign))
    late = [member for member in sign.waiting if sign.now_ms - member.since_ms > limit_ms]
    oldest = min(late or sign.waiting, key=lambda member: member.since_ms)
    duration_ms = sign.now_ms - oldest.since_ms
    tail = f"{name(oldest.member_id)} lacks or must give up {counted(oldest.partitions, 'partition')}"
    if late:
        since = f"since {clock(oldest.since_ms, sign.now_ms)} ({lasted(duration_ms)})"
        verb = "waits" if len(late) == 1 else "wait"
        text = f"{counted(len(late), 'member')} {verb} for partitions {since}: {tail}"
        yield about_sign(
            sign, ERROR, "reconciliation_stuck", text, "describe", "--members", size=len(late), since=oldest.since_ms
        )
    elif not is_now_known:
        text = f"not yet judged: waiting for partitions for at least {lasted(duration_ms)}: {tail}"
        remedy = Need.NOW.remedy
        yield about_sign(
            sign, ERROR, "reconciliation_stuck", text, "describe", "--members", since=oldest.since_ms, remedy=remedy
        )


def _unassigned(sign: ConsumerSign, thresholds: Thresholds, is_now_known: bool) -> Iterator[Finding]:
    duration_ms = sign.now_ms - sign.since_ms
    if not sign.members or sign.state in UNSETTLED or duration_ms < thresholds.or_min_duration(UNASSIGNED_MS):
        return
    since = f"since {clock(sign.since_ms, sign.now_ms)} ({lasted(duration_ms)})"
    if sign.without_owner:
        names = first_of(sign.without_owner, lambda at: f"{name(at[0])}-{at[1]}", NAMED)
        text = f"{counted(len(sign.without_owner), 'partition')} without an owner {since}: {names}"
        yield about_sign(sign, ERROR, "unassigned", text, "describe", size=len(sign.without_owner))
    if not sign.partitions:
        text = f"{counted(sign.members, 'member')} and no partition {since}: no topic matches the subscription"
        yield about_sign(sign, WARNING, "unassigned", text, "describe", "--members", size=sign.members)
    elif sign.idle_members:
        text = f"{sign.idle_members} of {counted(sign.members, 'member')} without partitions {since}"
        yield about_sign(sign, INFO, "unassigned", text, "describe", "--members", size=sign.idle_members)


def _looping(sign: ConsumerSign, thresholds: Thresholds, is_now_known: bool) -> Iterator[Finding]:
    minutes = [
        sum(begin <= epoch_ms < begin + MINUTE_MS for epoch_ms in sign.epochs_ms)
        for begin in range(sign.now_ms - LOOP_MS, sign.now_ms, MINUTE_MS)
    ]
    if min(minutes) >= EPOCHS_A_MINUTE:
        text = f"{number(sum(minutes))} group epochs in {lasted(LOOP_MS)}: members come and go"
        yield about_sign(
            sign, WARNING, "epoch_loop", text, "rebalances", size=sum(minutes), since=sign.now_ms - LOOP_MS
        )


RULES: Mapping[str, Rule] = {
    rule.kind: rule
    for rule in (
        Rule(
            kind="no_members",
            subject=SUBJECT,
            severities=(ERROR, WARNING, INFO),
            when="As for streams groups. With --all-groups.",
            threshold="after 5 minutes; after 7 days information; a lag of 1 or 2 is a warning at most",
            decisive=(Need.COORDINATOR_LOG, Need.TOPIC_END, Need.NOW),
            judge=no_members,
            unjudged="lag",
        ),
        Rule(
            kind="reconciliation_stuck",
            subject=SUBJECT,
            severities=(ERROR,),
            when="A member lacks partitions of its target, or has not given up what it must. With --all-groups.",
            threshold="5 minutes, and the largest rebalance timeout of the members and a session of 45 s together",
            decisive=(Need.COORDINATOR_LOG, Need.NOW),
            judge=reconciliation_stuck,
            unjudged="reconciliation",
        ),
        Rule(
            kind="unassigned",
            subject=SUBJECT,
            severities=(ERROR, WARNING, INFO),
            when="A group with members has partitions without an owner: of its target, or with a committed offset in a "
            "topic to which members subscribe. A warning where no member has a partition, information where some have "
            "none. With --all-groups.",
            threshold="2 minutes",
            decisive=(Need.COORDINATOR_LOG,),
            judge=unassigned,
        ),
        Rule(
            kind="epoch_loop",
            subject=SUBJECT,
            severities=(WARNING,),
            when="A group comes to no rest: epochs grow again and again. With --all-groups.",
            threshold="6 epochs in each of 5 minutes",
            decisive=(Need.COORDINATOR_LOG,),
            judge=epoch_loop,
        ),
    )
}
