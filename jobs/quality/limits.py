"""Where freshness and volume begin to count in the quality gates: the setting `quality`. DAG files import it."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Ages in ms; volumes as the ratio to the median of earlier runs.

    `stale_ms`: the age that blocks; None: none does, because a run over an old interval is no mistake.
    """

    fresh_ms: int = 2 * 3_600_000
    stale_ms: int | None = None
    volume_low: float = 0.1
    volume_high: float = 10.0


DEFAULT_LIMITS = Limits()
NAMES = ("fresh_within_s", "stale_after_s", "volume_low", "volume_high")


def limits_of(values: Mapping[str, object]) -> Limits:
    """The limits by the names of conf/base/quality.yaml; what is not named keeps its default.

    Raises:
        ValueError: one is unknown or of the wrong kind; the message names it.
    """
    unknown = sorted(str(name) for name in values if name not in NAMES)
    if unknown:
        raise ValueError(f"quality has no {unknown[0]!r}; there are {', '.join(NAMES)}")
    told = {name: _above_zero(name, value) for name, value in values.items() if value is not None}
    low = told.get("volume_low", DEFAULT_LIMITS.volume_low)
    high = told.get("volume_high", DEFAULT_LIMITS.volume_high)
    if low > high:
        raise ValueError(f"quality.volume_low: {low:g} lies above volume_high, {high:g}")
    stale_s = told.get("stale_after_s")
    return Limits(
        fresh_ms=int(told["fresh_within_s"] * 1000) if "fresh_within_s" in told else DEFAULT_LIMITS.fresh_ms,
        stale_ms=None if stale_s is None else int(stale_s * 1000),
        volume_low=low,
        volume_high=high,
    )


def _above_zero(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e12:
        raise ValueError(f"quality.{name}: {value!r} is not a number above 0")
    return float(value)
