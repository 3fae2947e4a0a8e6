"""Simulated logs."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import click

from sharelens.cli.options.common import NewPath, examples
from sharelens.output import tell
from state_model.errors import UsageError

PROFILE_NAMES = (
    "steady",
    "single-records",
    "slow-consumers",
    "crash-loop",
    "poison",
    "admin",
    "dead-letters",
    "streams",
    "many-groups",
)


@click.command(
    short_help="Writes a simulated log directory from a seed, with checkpoints of its true state.",
    epilog=examples(
        "sharelens simulate --log-dir ./simulated --records 100000 --seed 7",
        "sharelens simulate --log-dir ./letters --profile dead-letters",
    ),
)
@click.option(
    "--log-dir",
    required=True,
    metavar="DIR",
    type=NewPath(path_type=Path),
    help="The log directory to write: new or empty.",
)
@click.option(
    "--records",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    help="Smallest number of state records to write.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Equal seeds give equal files, byte for byte.")
@click.option(
    "--profile", type=click.Choice(PROFILE_NAMES), default="steady", show_default=True, help="Members and faults."
)
@click.option(
    "--kafka-version",
    type=click.Choice(["4.3", "4.4"]),
    help="Version whose rules the coordinators follow  [default: the profile's]",
)
def simulate(log_dir: Path, records: int, seed: int, profile: str, kafka_version: str | None) -> None:
    """Runs the broker's components in virtual time, without sockets, and writes their log directory.

    The directory also has checkpoints.jsonl (the share coordinator's answers at ten moments) and
    deliveries.jsonl (deliveries and acknowledgements). A summary in JSON is the only line on stdout.
    """
    try:
        from sharelens.broker.simulator import settings
        from sharelens.broker.simulator.simulation import simulate as run
    except ModuleNotFoundError as missing:
        raise UsageError(f"the simulator needs {missing.name}: pip install 'sharelens[broker]'") from missing
    version_settings = {} if kafka_version is None else {"kafka_version": kafka_version}
    simulation_settings = settings.profile(profile, records=records, **version_settings)
    try:
        simulation_settings.check()
    except settings.SimulationError as refused:
        raise UsageError(f"simulate: {refused}") from refused
    with _bar(records) as progress:
        simulated = run(simulation_settings, seed, log_dir, progress=progress)
    tell(json.dumps({"log_dir": str(log_dir), "profile": profile, "seed": seed, **asdict(simulated.counts)}))


@contextmanager
def _bar(records: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on stderr if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    with click.progressbar(length=records, label="state records", file=sys.stderr, update_min_steps=1_000) as bar:
        yield lambda record_count: bar.update(min(record_count, records) - bar.pos)


COMMANDS = (simulate,)
