"""Moments of a command line that the end of the evidence decides: times of day, and those before the end."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sharelens.output import say
from sharelens.parameters.times import FIRST_MS, BeforeEnd, TimeOfDay, time_text

if TYPE_CHECKING:
    from sharelens.tables.ends import EvidenceEnd

FROM, TO, NOW = "from_ms", "to_ms", "now_ms"


def has_undated(values: Mapping[str, Any]) -> bool:
    """Whether a value has no date yet."""
    return any(isinstance(value, TimeOfDay | BeforeEnd) for value in values.values())


def dated(values: Mapping[str, Any], end: "EvidenceEnd") -> dict[str, Any]:
    """The values of parameters by their keys, with moments (epoch ms) in the place of what has no date yet.

    A time of day is the newest one in the evidence, or up to now where that goes on; that of --now of a question is the
    first one which isn't before the end, and that of --to never lies before --from. Each is printed. A moment before
    the end lies before the newest record, or before now.

    Raises:
        UsageError: clocks of the zone skipped the time.
    """
    moments = {
        key: _before_end(value, end.newest_ms) if isinstance(value, BeforeEnd) else value
        for key, value in values.items()
    }
    times_of_day = {key: value for key, value in values.items() if isinstance(value, TimeOfDay)}
    for key in sorted(times_of_day, key=lambda key: key != FROM):
        moments[key] = _moment(key, times_of_day[key], end.until_ms, moments.get(FROM))
    return moments


def _before_end(moment: BeforeEnd, newest_ms: int | None) -> int:
    return max(FIRST_MS, (moment.clock.now_ms if newest_ms is None else newest_ms) - moment.duration_ms)


def _moment(key: str, time_of_day: TimeOfDay, end_ms: int | None, from_ms: int | None) -> int:
    until_ms = time_of_day.clock.now_ms if end_ms is None else end_ms
    until = f"{'now' if end_ms is None else 'the end of the evidence'}, {time_text(until_ms)}"
    if key == NOW:
        moment_ms, meaning = time_of_day.first_from(until_ms), f"the first such time from {until}, on"
    else:
        moment_ms, meaning = time_of_day.last_until(until_ms), f"the newest such time up to {until}"
    if key == TO and from_ms is not None and moment_ms < from_ms:
        moment_ms, meaning = time_of_day.first_from(from_ms), "the first such time after --from"
    zone = "" if time_of_day.clock.zone is None else f" ({time_of_day.zone})"
    say(f"sharelens: {time_of_day.option} {time_of_day.text}: {time_of_day.shown(moment_ms)}{zone}, {meaning}")
    return moment_ms
