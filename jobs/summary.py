"""The summary of a run: one line of JSON."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jobs import books
from jobs.freshness import Freshness
from sharelens.lake.gates import Gate
from sharelens.lake.tables import SILVER_METADATA_RECORD as RECORDS

if TYPE_CHECKING:
    from jobs.ingest.stage import Outcome as Read
    from jobs.metadata.stage import Outcome


@dataclass(slots=True, kw_only=True)
class Summary:
    """The summary of a run, for the one JSON line: run id (null: no news), counts, seconds by stage, warnings.

    `settings`: the new files of settings (`lake_settings.kinds_and_times`). `set_aside`: files of logs that a power cut
    had torn. `engine`: that of each stage, "spark" or "local" (in the process of the run); `gates`: the closed ones;
    `withheld`: a closed gate prevented a publication. `freshness`: of the state records that this run published first.
    `fetched_bytes`: of a cluster's logs and of its user topics; None: the source is no cluster.
    """

    run_id: int | None = None
    cluster_id: str | None = None
    counts: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    engine: dict[str, str] = field(default_factory=dict)
    settings: list[dict[str, Any]] = field(default_factory=list)
    held_back: int = 0
    gaps: int = 0
    lost_offsets: int = 0
    quarantined: int = 0
    skipped: list[str] = field(default_factory=list)
    set_aside: list[str] = field(default_factory=list)
    gates: tuple[Gate, ...] = ()
    withheld: bool = False
    freshness: Freshness | None = None
    fetched_bytes: dict[str, int] | None = None

    def add_fetched(self, size_bytes: int) -> None:
        """Counts further bytes of user topics."""
        if self.fetched_bytes is not None:
            self.fetched_bytes = self.fetched_bytes | {"user_topics": self.fetched_bytes["user_topics"] + size_bytes}

    def add_read(self, run: int, table: str, outcomes: Sequence["Read"], extent_rows: Sequence[dict[str, Any]]) -> None:
        """Counts what a stage read into a table: rows, problems, and what `extent_rows` held back or lack."""
        self.run_id = run
        self.counts[table] = sum(file.record_count for outcome in outcomes for file in outcome.splits)
        self.quarantined += sum(outcome.problems.num_rows for outcome in outcomes)
        for rows in books.by_partition(extent_rows).values():
            self.held_back += rows[0]["held_back"]
            self.gaps += len(rows[0]["gaps"])
            self.lost_offsets += sum(gap["last_offset"] + 1 - gap["first_offset"] for gap in rows[0]["gaps"])

    def add_metadata(self, cluster_id: str, outcome: "Outcome | None") -> int | None:
        """Counts what the run took of the metadata log; the number of the run, None when there was nothing new."""
        if outcome is None:
            return None
        self.run_id, self.cluster_id = outcome.run, cluster_id
        self.counts[RECORDS] = outcome.record_count
        self.quarantined += outcome.problem_count
        self.gaps += len(outcome.gaps)
        self.lost_offsets += sum(end - first for first, end in outcome.gaps)
        return outcome.run

    def as_dict(self) -> dict[str, Any]:
        """The summary as one JSON document."""
        return {
            "run_id": self.run_id,
            "cluster_id": self.cluster_id,
            "rows": dict(sorted(self.counts.items())),
            "settings": self.settings,
            "quarantined": self.quarantined,
            "held_back": self.held_back,
            "gaps": self.gaps,
            "lost_offsets": self.lost_offsets,
            "skipped": self.skipped,
            "set_aside": self.set_aside,
            "closed_gates": {gate.table: list(gate.failed) for gate in self.gates},
            "withheld": self.withheld,
            "freshness_ms": None if self.freshness is None else self.freshness.as_dict(),
            "fetched_bytes": self.fetched_bytes,
            "seconds": {name: round(value, 3) for name, value in self.seconds.items()},
            "engine": self.engine,
            "sharelens_version": books.software_version(),
        }
