"""Where freshness and volume begin to count in the quality gates: the setting `quality`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Ages in ms; volumes as the ratio to the median of earlier runs.

    `stale_ms`: the age that closes the gate; None: no age does, because a run over an old interval is no mistake.
    """

    fresh_ms: int = 2 * 3_600_000
    stale_ms: int | None = None
    volume_low: float = 0.1
    volume_high: float = 10.0


DEFAULT_LIMITS = Limits()
