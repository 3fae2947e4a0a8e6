"""Durations as java.time.Duration reads them."""

import re

from sharelens.broker.errors import ConfigError

_DURATION = re.compile(
    r"P(?:(?P<days>\d{1,9})D)?(?:T(?=\d)(?:(?P<hours>\d{1,12})H)?(?:(?P<minutes>\d{1,12})M)?"
    r"(?:(?P<seconds>\d{1,15})(?:\.(?P<fraction>\d{0,9}))?S)?)?",
    re.IGNORECASE,
)


def duration_ms(text: str) -> int:
    """The milliseconds of an ISO-8601 duration such as P1DT2H3M4.5S.

    Raises:
        ConfigError: the text is no duration, or it is not positive.
    """
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ConfigError(f"{text!r} is no duration: PnDTnHnMn.nS")
    days, hours, minutes, seconds = (int(match[part] or 0) for part in ("days", "hours", "minutes", "seconds"))
    fraction_ms = int((match["fraction"] or "").ljust(3, "0")[:3])
    total_ms = (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + fraction_ms
    if total_ms <= 0:
        raise ConfigError(f"{text!r} is no positive duration")
    return total_ms
