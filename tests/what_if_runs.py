"""Pairs of simulations that differ by one setting, and what a command answers of each."""

import hashlib
import json
from dataclasses import replace

from sharelens.broker.simulator.settings import Habits, SimulationSettings
from sharelens.broker.simulator.simulation import simulate
from sharelens.cli import main
from tests.once import made_once

SMALL = SimulationSettings(
    records=1,
    groups=3,
    topics=2,
    partitions=2,
    state_partitions=3,
    batch_records=10,
    produce_interval_ms=4_000,
    poll_interval_ms=2_000,
    checkpoints=1,
    duration_ms=1_000_000,
    admin_interval_ms=70_000,
    keeps_deliveries=False,
)
"""Quarter of an hour of virtual time with resets, deletions and three rounds of the cold snapshot job."""
DRAINED = replace(
    SMALL,
    admin_interval_ms=0,
    produced_ms=60_000,
    duration_ms=900_000,
    has_fixed_outcomes=True,
    habits=Habits(releases=0.35, rejects=0.05, forgets=0.05, dies=0.0, leaves=0.0),
)
"""Producers stop after a minute; then every record comes to its outcome, which differs by the setting alone."""
KEY = ("group_id", "topic_id", "partition")


def answer_of(capsys, *words):
    """The JSON rows of a command."""
    assert main([*words, "--output", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def simulated(settings, seed):
    """The log directory of a simulation, made once a test run: read it."""
    name = hashlib.sha256(repr((settings, seed)).encode()).hexdigest()
    return str(made_once(f"simulations/{name}", lambda folder: simulate(settings, seed, folder / "logs")) / "logs")


def figures(rows, *fields):
    """Values of `fields` by share partition and figure."""
    return {(*(row[name] for name in KEY), row["figure"]): tuple(row[name] for name in fields) for row in rows}
