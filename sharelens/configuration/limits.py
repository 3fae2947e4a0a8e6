"""Where freshness, volume and findings of the audit begin to count in the quality gates: `quality` and `audit`."""

from dataclasses import dataclass

from state_model.audit.suppression import Suppression


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Ages in ms; volumes as the ratio to the median of earlier runs.

    `stale_ms`: the age that closes the gate; None: no age does, because a run over an old interval is no mistake.
    `audit_blocks`: the least severity of findings of the audit that closes the gate; None: none does.
    `suppressions`: findings that don't count.
    """

    fresh_ms: int = 2 * 3_600_000
    stale_ms: int | None = None
    volume_low: float = 0.1
    volume_high: float = 10.0
    audit_blocks: str | None = None
    suppressions: tuple[Suppression, ...] = ()


DEFAULT_LIMITS = Limits()
