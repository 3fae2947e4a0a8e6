"""A figure is the same on every surface: commands over logs and lakes, SQL, tables, page, evidence folders, metrics."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.datasets import dataset, kinds_first
from tests.depths import rows_in_soak
from tests.figures import Surfaces, figures_of
from tests.once import made_once
from tests.processes.in_process import make_lake, recorded_lake
from tests.what_if_runs import SMALL, simulated

HOURS = replace(
    SMALL, duration_ms=9_000_000, produce_interval_ms=40_000, poll_interval_ms=20_000, admin_interval_ms=700_000
)
"""Two and a half hours of virtual time, of which one is recent."""
LETTERS = replace(SMALL, has_dead_letters=True, kafka_version="4.4", admin_interval_ms=0)
SETTINGS = {"small": SMALL, "hours": HOURS, "letters": LETTERS}
SHOWN = {
    "archived", "archived_by_cause", "archived_totals", "redelivered", "redelivered_by_kind", "settled",
    "settled_by_deliveries", "deliveries", "extra_deliveries", "offsets", "lag", "share_partitions", "share_groups",
    "incomplete", "standing_still", "stalls_over", "lasting", "dead_letters", "dead_letters_missing", "letters",
    "events", "evidence", "begins", "ends", "state_records", "state_bytes", "state_snapshots", "state_updates",
    "all archived", "all redelivered", "all standing_still", "gaps",
}  # fmt: skip


def test_two_surfaces_that_differ_are_named() -> None:
    surfaces = Surfaces(figures={})
    surfaces.add("page", archived={"g": 3})
    surfaces.add("command", archived={"g": 3})
    assert surfaces.differences() == []
    surfaces.add("sql", archived={"g": 2})
    assert surfaces.differences() == ["archived: page {'g': 3}, sql {'g': 2}"]


def assert_same(surfaces: Surfaces) -> None:
    """Each figure is on two surfaces at least, and the same on all."""
    assert surfaces.figures.keys() >= SHOWN
    assert [name for name, shown in surfaces.figures.items() if len(shown) < 2] == []
    assert surfaces.differences() == []


@pytest.mark.slow
@pytest.mark.parametrize("name", kinds_first(("dlq",)))
def test_figures_of_a_recorded_log_are_the_same_everywhere(name: str) -> None:
    assert_same(figures_of(str(dataset(name) / "logs"), str(recorded_lake(name))))


def seeds() -> list[object]:
    """Simulations of each kind, for the soak."""
    return rows_in_soak(*((kind, seed) for kind in SETTINGS for seed in range(20)))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "seed"), seeds())
def test_figures_of_a_simulation_are_the_same_everywhere(kind: str, seed: int) -> None:
    logs = simulated(SETTINGS[kind], seed)
    lake = made_once(f"lakes/figures-{kind}-{seed}", lambda folder: _in_two_runs(folder, logs))
    assert_same(figures_of(logs, str(lake)))


def _in_two_runs(lake: Path, logs: str) -> None:
    """A lake of two runs, of which the second goes on from the first."""
    from sharelens.source.request import Source
    from sharelens.tables.opening import open_evidence

    with open_evidence(Source(log_dirs=(logs,))) as evidence:
        times = [moment for part in evidence.cover() for moment in (part.first_ms, part.last_ms) if moment is not None]
    make_lake(lake, logs, until_ms=(min(times) + max(times)) // 2)
    make_lake(lake, logs)
