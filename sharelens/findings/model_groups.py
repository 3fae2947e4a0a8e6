"""Findings about streams and consumer groups: what their rules share."""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TypeVar

from sharelens.findings.finding import ERROR, INFO, WARNING, Finding
from sharelens.findings.rule import Need
from sharelens.findings.signs import GroupSign, Signs
from sharelens.findings.thresholds import ABANDONED_MS, CLOSED_MS, SMALL_LAG, Thresholds
from sharelens.groups.schemas import EMPTY
from sharelens.output.wording import clock, counted, number
from sharelens.parameters.times import lasted

S = TypeVar("S", bound=GroupSign)
OfSign = Callable[[S, Thresholds, bool], Iterator[Finding]]
"""What is found of a group; the last argument says whether now is known."""


def worst_first(of_sign: OfSign[S], groups: Sequence[S], signs: Signs, thresholds: Thresholds) -> list[Finding]:
    """What is found of groups, the largest and oldest first."""
    return of_kind(of_sign, groups, thresholds, is_now_known=signs.now.is_known)


def of_kind(of_sign: OfSign[S], groups: Sequence[S], thresholds: Thresholds, *, is_now_known: bool) -> list[Finding]:
    """What is found of groups, from whether now is known."""
    rows = chain.from_iterable(of_sign(sign, thresholds, is_now_known) for sign in groups)
    return sorted(rows, key=lambda row: (-(row.size or 0), row.since_ms or 0, row.group_id))


def without_members(sign: GroupSign, thresholds: Thresholds, is_now_known: bool) -> Iterator[Finding]:
    """A group whose coordinator knows no member, with records to do, or of which that is unknown."""
    if sign.state != EMPTY:
        return
    since = f"no members since {clock(sign.since_ms, sign.now_ms)}"
    if sign.lag.records:
        lasting_ms = sign.now_ms - sign.since_ms
        has_closed, is_abandoned = lasting_ms < CLOSED_MS, lasting_ms >= ABANDONED_MS
        severity = ERROR if sign.lag.records > SMALL_LAG else WARNING
        text, remedy = f"{lag_text(sign)}, {since}", None
        if has_closed and not is_now_known:
            text, remedy = f"{text} ({lasted(lasting_ms)} at least); how long is not known", Need.NOW.remedy
        elif has_closed or is_abandoned:
            severity = INFO
        yield about_sign(sign, severity, "no_members", text, "describe", size=sign.lag.records, remedy=remedy)
    elif sign.lag.unknown:
        text = f"{since}, and the lag of {counted(sign.lag.unknown, 'partition')} is unknown"
        yield about_sign(
            sign, ERROR, "no_members", text, "describe", size=sign.lag.unknown, remedy=Need.TOPIC_END.remedy
        )


def about_sign(
    sign: GroupSign,
    severity: str,
    kind: str,
    text: str,
    question: str,
    *options: str,
    size: int | None = None,
    since: int | None = None,
    remedy: str | None = None,
) -> Finding:
    """A finding about a group; `since`: another time than that of its state."""
    return Finding(
        severity=severity,
        kind=kind,
        text=text,
        question=question,
        options=(f"--group={sign.group_id}", *options),
        group_id=sign.group_id,
        group_type=sign.group_type,
        size=size,
        since_ms=sign.since_ms if since is None else since,
        remedy=remedy,
    )


def lag_text(sign: GroupSign) -> str:
    """The known lag of a group in words."""
    known_count = sign.lag.partitions - sign.lag.unknown
    return f"lag {number(sign.lag.records)}" + (f" in {counted(known_count, 'partition')}" if known_count > 1 else "")
