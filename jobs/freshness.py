"""Freshness of a cut: the ages of state records when questions see them for the first time."""

from dataclasses import dataclass

from jobs import books
from sharelens.lake.lake import Lake


@dataclass(frozen=True, slots=True, kw_only=True)
class Freshness:
    """Time from the append of a state record to the publication that shows it first, ms: the oldest and newest record.

    The append has the clock of its broker (the record's timestamp), the publication that of this machine; where the
    broker's is ahead, 0.
    """

    oldest_ms: int
    newest_ms: int
    log_time_ms: int
    """Log time of the newest record."""

    def as_dict(self) -> dict[str, int]:
        """The ages for a summary."""
        return {"oldest": self.oldest_ms, "newest": self.newest_ms}


def freshness(lake: Lake, published_run: int, now_ms: int) -> Freshness | None:
    """The freshness of what runs after `published_run` decoded, published at `now_ms`; None without such records.

    It is that of file statistics: a file that holds older records too (a run filled in a gap) counts with all.
    """
    files = [
        file
        for file in lake.snapshot(books.MARKER["decode"]).files
        if file["num_records"] and (file["max.run_id"] or 0) > published_run
    ]
    if not files:
        return None
    newest_ms = max(int(file["max.log_time_ms"]) for file in files)
    return Freshness(
        oldest_ms=max(0, now_ms - min(int(file["min.log_time_ms"]) for file in files)),
        newest_ms=max(0, now_ms - newest_ms),
        log_time_ms=newest_ms,
    )
