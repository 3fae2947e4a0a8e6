"""Periods of time in logs that have no common cut: a mismatch counts when it outlasts TOLERANCE_MS in both logs."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

TOLERANCE_MS: Final = 60_000
BEGINNING: Final = -(1 << 62)
END: Final = 1 << 62


class Period(NamedTuple):
    """From a time up to, and without, another; `log_offset`: of the record with which it began, -1 where unknown."""

    from_ms: int
    to_ms: int
    log_offset: int = -1


def known_until(newest_ms: Mapping[int, int], *, is_one_copy: bool, read_until_ms: int | None) -> dict[int, int]:
    """Until when each partition of a topic is known, from the times of their newest records.

    Partitions of one copy were copied together, so the newest record of any speaks for all, and so does the time until
    which the copy was read. Of several copies each may be of another time.
    """
    if not is_one_copy:
        return dict(newest_ms)
    newest = max([*newest_ms.values(), read_until_ms or BEGINNING], default=BEGINNING)
    return dict.fromkeys(newest_ms, newest)


def merged(periods: Iterable[Period]) -> list[Period]:
    """The periods in order, those that touch or overlap as one."""
    result: list[Period] = []
    for period in sorted(periods):
        if result and period.from_ms <= result[-1].to_ms:
            result[-1] = result[-1]._replace(to_ms=max(result[-1].to_ms, period.to_ms))
        else:
            result.append(period)
    return result


def common(periods: Iterable[Period], other_periods: Sequence[Period]) -> list[Period]:
    """The parts of `periods` inside one of `other_periods`."""
    parts = [_clipped(period, other) for period in periods for other in other_periods]
    return [part for part in parts if part.from_ms < part.to_ms]


def lasting(periods: Sequence[Period], other_periods: Sequence[Period], evidence: Period) -> Period | None:
    """The first part of `periods` inside one of `other_periods` that lasts over TOLERANCE_MS of the evidence."""
    parts = common(merged(periods), merged(other_periods))
    return next((part for part in common(parts, [evidence]) if _is_long(part)), None)


def uncovered(periods: Sequence[Period], other_periods: Sequence[Period], evidence: Period) -> Period | None:
    """The first part of `periods`, over TOLERANCE_MS of the evidence long, that no period of `other_periods` covers."""
    for period in merged(periods):
        begin = period.from_ms
        for other in (*merged(other_periods), Period(END, END)):
            part = _clipped(period, Period(begin, other.from_ms), evidence)
            if _is_long(part):
                return part
            begin = max(begin, other.to_ms)
    return None


def _clipped(period: Period, *other_periods: Period) -> Period:
    """The intersection of the periods, with the record of the first one."""
    every = (period, *other_periods)
    return Period(max(part.from_ms for part in every), min(part.to_ms for part in every), period.log_offset)


def _is_long(period: Period) -> bool:
    return period.to_ms - period.from_ms > TOLERANCE_MS
