"""Times and durations as typed on the command line, and as shown. Inside, times are epoch milliseconds."""

import re
import time
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import Enum

from state_model.errors import UsageError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
SECOND_MS, MINUTE_MS, HOUR_MS, DAY_MS = 1000, 60_000, 3_600_000, 86_400_000
UNITS_MS = {"d": DAY_MS, "h": HOUR_MS, "m": MINUTE_MS, "s": SECOND_MS, "ms": 1}
"""In the order of a duration's parts."""
UNIT_NAMES = {"ms": "milliseconds", "s": "seconds"}
MAX_DURATION_MS = 10**17
NUMBER = r"([0-9]{1,18}(?:\.[0-9]{0,9})?|\.[0-9]{1,9})"
DURATION = re.compile("".join(rf"(?:{NUMBER}\s*{unit}\s*)?" for unit in ("d", "h", "m(?:in)?", "s", "ms")))
BARE_NUMBER = re.compile(NUMBER + r"(?:e[+-]?[0-9]{1,2})?")
EPOCH_MS = re.compile(r"[0-9]{1,16}")
TIME_OF_DAY = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9])(?:\.([0-9]{1,6}))?)?")
UTC_OFFSET = re.compile(r"([+-])([01][0-9]|2[0-3]):?([0-5][0-9])")
EXAMPLE = "2026-11-21T05:10:00Z"
TIME_FORMS = f"type {EXAMPLE} (ISO-8601 with a zone), epoch milliseconds, now, -1h, end-1h, or 03:29 (in --tz)"
END = "end"
FIRST_MS = (datetime.min.replace(tzinfo=UTC) - EPOCH) // MILLISECOND
LAST_MS = (datetime.max.replace(tzinfo=UTC) - EPOCH) // MILLISECOND
STEPS_MS = (
    *(count for digits in (1, 10, 100) for count in (digits, 2 * digits, 5 * digits)),
    *(unit * count for unit in (SECOND_MS, MINUTE_MS) for count in (1, 2, 5, 10, 15, 30)),
    *(HOUR_MS * count for count in (1, 2, 3, 6, 12)),
    *(DAY_MS * count for count in (1, 2, 7, 14, 30, 90, 180)),
)
"""Usual steps of time, from a millisecond to half a year."""


class Rounding(Enum):
    """The rounding of a moment between two milliseconds."""

    DOWN = "down"
    UP = "up"


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """The present moment and the zone of times without a zone (None: UTC for a time of day, no other)."""

    now_ms: int = field(default_factory=lambda: time.time_ns() // 1_000_000)
    zone: tzinfo | None = None


@dataclass(frozen=True, slots=True)
class TimeOfDay:
    """A time of day as typed with an option; the end of the evidence says of which day it is.

    `rounding`: of its moments. Without a zone in the clock it is one of UTC.
    """

    text: str
    _: KW_ONLY
    option: str
    rounding: Rounding = Rounding.DOWN
    clock: Clock = field(default_factory=Clock)

    @property
    def zone(self) -> tzinfo:
        """The zone in which it is meant."""
        return self.clock.zone or UTC

    def last_until(self, moment_ms: int) -> int:
        """The last such moment that is not after a moment, in epoch ms.

        Raises:
            UsageError: clocks of the zone skipped it.
        """
        moment = self._on_day_of(moment_ms)
        return _milliseconds(moment if moment <= _moment(moment_ms) else self._on_day_of(moment_ms, -1), self.rounding)

    def first_from(self, moment_ms: int) -> int:
        """The first such moment that is not before a moment, in epoch ms; errors as above."""
        moment = self._on_day_of(moment_ms)
        return _milliseconds(moment if moment >= _moment(moment_ms) else self._on_day_of(moment_ms, 1), self.rounding)

    def shown(self, moment_ms: int) -> str:
        """A moment in the zone, as ISO-8601."""
        return _moment(moment_ms).astimezone(self.zone).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def _on_day_of(self, moment_ms: int, days_later: int = 0) -> datetime:
        match = TIME_OF_DAY.fullmatch(self.text)
        assert match is not None
        hour, minute, second = (int(part or 0) for part in match.groups()[:3])
        microsecond = int((match[4] or "").ljust(6, "0"))
        try:
            day = _moment(moment_ms).astimezone(self.zone).replace(tzinfo=None, fold=0) + timedelta(days=days_later)
        except OverflowError:
            raise UsageError(f"{self.option}: {self.text!r} lies outside the years 1 to 9999; {TIME_FORMS}") from None
        local = day.replace(hour=hour, minute=minute, second=second, microsecond=microsecond)
        return _in_zone(local, self.text, self.option, self.zone)


@dataclass(frozen=True, slots=True, kw_only=True)
class BeforeEnd:
    """A moment as typed with an option, by the end of the evidence, or by now where the evidence goes on."""

    duration_ms: int
    clock: Clock


def parse_time(
    text: str, *, option: str, rounding: Rounding = Rounding.DOWN, clock: Clock | None = None
) -> int | TimeOfDay | BeforeEnd:
    """A moment in epoch milliseconds, or one that the end of the evidence decides.

    Args:
        text: ISO-8601 with a zone (`Z` or an offset), up to 16 digits of epoch milliseconds, `now`, a duration before
            now (`-1h30m`) or before the end of the evidence (`end-1h`, `end`), or a time of day (`03:29`).
        option: the name of the option, for error messages.
        rounding: DOWN where the bound is inclusive above, UP where it is half-open.
        clock: the present and the zone of --tz; None: the system's clock, no zone.

    Raises:
        UsageError: the text is no moment, or has no zone.
    """
    trimmed = text.strip()
    if EPOCH_MS.fullmatch(trimmed):
        return int(trimmed)
    clock = clock or Clock()
    if trimmed.lower() == "now":
        return clock.now_ms
    if trimmed.startswith("-"):
        return _before_now(trimmed, option, clock)
    if trimmed.lower().startswith(END):
        return BeforeEnd(duration_ms=_before(trimmed, END, option), clock=clock)
    if TIME_OF_DAY.fullmatch(trimmed):
        return TimeOfDay(trimmed, option=option, rounding=rounding, clock=clock)
    return _milliseconds(_iso_time(trimmed, option, clock), rounding)


def _milliseconds(moment: datetime, rounding: Rounding) -> int:
    span = moment - EPOCH
    return -(-span // MILLISECOND) if rounding is Rounding.UP else span // MILLISECOND


def _moment(epoch_ms: int) -> datetime:
    return EPOCH + timedelta(milliseconds=min(max(epoch_ms, FIRST_MS), LAST_MS))


def _before_now(text: str, option: str, clock: Clock) -> int:
    duration = _before(text, "", option)
    if clock.now_ms - duration < FIRST_MS:
        raise UsageError(f"{option}: {text!r} is no time; {TIME_FORMS}")
    return clock.now_ms - duration


def _before(text: str, beginning: str, option: str) -> int:
    """The duration (ms) behind a beginning and a minus sign; 0 behind the beginning alone."""
    rest = text[len(beginning) :].lstrip()
    duration = 0 if beginning and not rest else _parts_ms(rest[1:].strip()) if rest[:1] == "-" else None
    if duration is None:
        raise UsageError(f"{option}: {text!r} is no time; {TIME_FORMS}")
    return duration


def _iso_time(text: str, option: str, clock: Clock) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{option}: {text!r} is no time; {TIME_FORMS}") from None
    if moment.tzinfo is not None:
        return moment
    if clock.zone is not None:
        return _in_zone(moment, text, option, clock.zone)
    iso = text.replace(" ", "T", 1) if ":" in text else moment.isoformat()
    raise UsageError(f"{option}: {text!r} names no zone; for UTC type {option} {iso}Z, for another zone add --tz ZONE")


def _in_zone(local: datetime, text: str, option: str, zone: tzinfo) -> datetime:
    """The moment of a local date and time, the first of two; UsageError where clocks skipped it."""
    try:
        moment = local.replace(tzinfo=zone).astimezone(UTC)
        shown = moment.astimezone(zone).replace(tzinfo=None, fold=0)
    except OverflowError:
        raise UsageError(f"{option}: {text!r} lies outside the years 1 to 9999; {TIME_FORMS}") from None
    if shown != local:
        raise UsageError(
            f"{option}: clocks of {zone} skipped {local.isoformat(' ')}; type a time with a zone, such as {EXAMPLE}"
        )
    return moment


def parse_zone(text: str, *, option: str) -> tzinfo:
    """The time zone of an IANA name, `UTC`, `local` (that of this machine) or an offset such as +02:00.

    Raises:
        UsageError: no such zone.
    """
    trimmed = text.strip()
    if trimmed.upper() in ("UTC", "Z"):
        return UTC
    offset = UTC_OFFSET.fullmatch(trimmed)
    if offset is not None:
        span = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
        return timezone(-span if offset[1] == "-" else span)
    from zoneinfo import ZoneInfo

    try:
        if trimmed.lower() != "local":
            return ZoneInfo(trimmed)
        with open("/etc/localtime", "rb") as zone_file:
            return ZoneInfo.from_file(zone_file, key="local")
    except (KeyError, ValueError, OSError):
        raise UsageError(
            f"{option}: {text!r} is no time zone; type a name such as Europe/Berlin, +02:00, UTC or local "
            "(without a zone database on this machine: pip install tzdata)"
        ) from None


def parse_duration(text: str, *, option: str, bare_unit: str | None = None) -> int:
    """Milliseconds of a duration: parts from days to milliseconds (`90s`, `1h30m`, `1.5h`).

    Args:
        text: the duration; whitespace between parts is ignored.
        option: the name of the option, for error messages.
        bare_unit: unit of a number without one (a key of UNITS_MS); None: a number alone is refused.

    Raises:
        UsageError: the text is no duration.
    """
    trimmed = text.strip().lower()
    bare = BARE_NUMBER.fullmatch(trimmed)
    if bare_unit is not None and bare is not None:
        duration = round(Decimal(trimmed) * UNITS_MS[bare_unit])
    else:
        parts = _parts_ms(trimmed)
        duration = -1 if parts is None else parts
    if not 0 <= duration <= MAX_DURATION_MS:
        number = "" if bare_unit is None else f", or a number of {UNIT_NAMES[bare_unit]}"
        raise UsageError(f"{option}: {text!r} is no duration; type 500ms, 90s, 5m, 1h30m or 2d{number}")
    return duration


def _parts_ms(text: str) -> int | None:
    """Milliseconds of `1h30m`; None for other texts and for durations above MAX_DURATION_MS."""
    match = DURATION.fullmatch(text.lower())
    if match is None or not text:
        return None
    amounts = zip(match.groups(), UNITS_MS.values(), strict=True)
    total = round(sum((Decimal(number) * unit_ms for number, unit_ms in amounts if number), Decimal()))
    return total if total <= MAX_DURATION_MS else None


def duration_text(duration_ms: int) -> str:
    """An exact duration as `parse_duration` reads it: `1h30m`, `0s`."""
    text = ""
    for unit, unit_ms in UNITS_MS.items():
        number, duration_ms = divmod(duration_ms, unit_ms)
        text += f"{number}{unit}" if number else ""
    return text or "0s"


def time_step(span_ms: int, max_ticks: int) -> int:
    """The shortest usual step (ms) with at most `max_ticks` ticks in a span; beyond years, whole years."""
    year = 365 * DAY_MS
    return next((step for step in STEPS_MS if span_ms // step < max_ticks), -(-span_ms // (max_ticks * year)) * year)


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
