"""Moments on the command line: ISO-8601 with a zone, or epoch milliseconds; inside, always epoch milliseconds."""

import re
from datetime import UTC, datetime, timedelta
from enum import Enum

from state_model.errors import UsageError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS = 1000, 60_000, 3_600_000, 86_400_000
EPOCH_MS = re.compile(r"\d{1,16}")
DATE_ONLY = re.compile(r"\d{4}-\d{2}-\d{2}")
EXAMPLE = "2026-11-21T05:10:00Z"
FIRST_MS = (datetime.min.replace(tzinfo=UTC) - EPOCH) // MILLISECOND
LAST_MS = (datetime.max.replace(tzinfo=UTC) - EPOCH) // MILLISECOND


class Rounding(Enum):
    """The rounding of a moment between two milliseconds."""

    DOWN = "down"
    UP = "up"


def parse_time(text: str, *, option: str, rounding: Rounding = Rounding.DOWN) -> int:
    """Epoch milliseconds of a moment.

    Args:
        text: ISO-8601 with a zone (`Z` or an offset), or up to 16 digits of epoch milliseconds.
        option: the option it was given to; a refusal shows the line to type instead.
        rounding: DOWN where the bound is inclusive above, UP where it is half-open.

    Raises:
        UsageError: the text is no moment, or names no zone.
    """
    trimmed = text.strip()
    if EPOCH_MS.fullmatch(trimmed):
        return int(trimmed)
    try:
        moment = datetime.fromisoformat(trimmed)
    except ValueError:
        raise UsageError(
            f"{option}: {trimmed!r} is no time; type {option} {EXAMPLE} (ISO-8601 with a zone) or epoch milliseconds"
        ) from None
    if moment.tzinfo is None:
        clock = f"{trimmed}T00:00:00" if DATE_ONLY.fullmatch(trimmed) else trimmed.replace(" ", "T", 1)
        raise UsageError(f"{option}: {trimmed!r} names no zone; for UTC type {option} {clock}Z")
    span = moment - EPOCH
    if rounding is Rounding.UP:
        return -(-span // MILLISECOND)
    return span // MILLISECOND


def time_text(epoch_ms: int | None) -> str:
    """ISO-8601 in UTC with milliseconds; `-` for an unknown time, the bare number outside the years 1 to 9999."""
    if epoch_ms is None:
        return "-"
    if not FIRST_MS <= epoch_ms <= LAST_MS:
        return str(epoch_ms)
    moment = EPOCH + timedelta(milliseconds=epoch_ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def lasted(duration_ms: int | None) -> str:
    """A length of time in its two largest units: `2 h 10 min`, `45 s`, `0.4 s`; a dash for an unknown one."""
    if duration_ms is None:
        return "–"
    for unit_ms, unit, part_ms, part in (
        (DAY_MS, "d", HOUR_MS, "h"),
        (HOUR_MS, "h", MINUTE_MS, "min"),
        (MINUTE_MS, "min", SECOND_MS, "s"),
    ):
        if duration_ms >= unit_ms:
            rest = duration_ms % unit_ms // part_ms
            return f"{duration_ms // unit_ms:,} {unit}" + (f" {rest} {part}" if rest else "")
    if duration_ms >= 10 * SECOND_MS or duration_ms % SECOND_MS == 0:
        return f"{duration_ms // SECOND_MS} s"
    return f"{duration_ms / SECOND_MS:.1f} s"
