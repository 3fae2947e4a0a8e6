"""Moments on the command line: ISO-8601 with a zone, or epoch milliseconds; inside, always epoch milliseconds."""

import re
from datetime import UTC, datetime, timedelta
from enum import Enum

from state_model.errors import UsageError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
EPOCH_MS = re.compile(r"\d{1,16}")
DATE_ONLY = re.compile(r"\d{4}-\d{2}-\d{2}")
EXAMPLE = "2026-11-21T05:10:00Z"
FIRST_MS = (datetime.min.replace(tzinfo=UTC) - EPOCH) // MILLISECOND
LAST_MS = (datetime.max.replace(tzinfo=UTC) - EPOCH) // MILLISECOND


class Rounding(Enum):
    """Which millisecond a moment between two of them stands for."""

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
    said = text.strip()
    if EPOCH_MS.fullmatch(said):
        return int(said)
    try:
        moment = datetime.fromisoformat(said)
    except ValueError:
        raise UsageError(
            f"{option}: {said!r} is no time; type {option} {EXAMPLE} (ISO-8601 with a zone) or epoch milliseconds"
        ) from None
    if moment.tzinfo is None:
        clock = f"{said}T00:00:00" if DATE_ONLY.fullmatch(said) else said.replace(" ", "T", 1)
        raise UsageError(f"{option}: {said!r} names no zone; for UTC type {option} {clock}Z")
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
