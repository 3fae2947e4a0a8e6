"""Runs a simulation: equal settings and seeds give equal files, byte for byte."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sharelens.broker.simulator.admin import Admin
from sharelens.broker.simulator.crowd import Crowd
from sharelens.broker.simulator.journal import DELIVERIES_FILE
from sharelens.broker.simulator.producers import Producers
from sharelens.broker.simulator.settings import SimulationError, SimulationSettings
from sharelens.broker.simulator.streams_members import SOURCE_PARTITIONS, SOURCE_TOPIC, StreamsApplication
from sharelens.broker.simulator.truth import CHECKPOINTS_FILE, Truth
from sharelens.broker.simulator.world import DEAD_LETTERS_PREFIX, World

GARBAGE_LOOKED_FOR_EVERY: Final = 50_000
"""Threshold of the garbage collector: allocations minus deallocations."""
LOOK_EVERY: Final = 16
"""Timers between two checks of the number of records."""
IDLE_LIMIT_MS: Final = 3_600_000
"""Virtual time without a state record after which a simulation counts as stuck."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """The result. `virtual_ms`: the simulated duration."""

    state_records: int
    produced: int
    delivered: int
    admin_works: int
    checkpoints: int
    virtual_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """The result of a simulation."""

    checkpoints: Path
    deliveries: Path | None
    counts: Counts


def simulate(
    settings: SimulationSettings, seed: int, directory: Path, *, progress: Callable[[int], None] = lambda _: None
) -> Simulated:
    """Write a simulated log directory with its checkpoints and journal into a new or empty directory.

    `progress` is called with the number of state records. Raises SimulationError, DirectoryError, StorageError.
    """
    settings.check()
    if directory.exists() and any(directory.iterdir()):
        raise SimulationError(f"{directory} is not empty: a simulation begins in a new directory")
    world = World(settings, seed, directory)
    try:
        with _garbage_left():
            counts = _run(world, Truth(directory / CHECKPOINTS_FILE), progress)
    finally:
        world.close()
    return Simulated(
        checkpoints=directory / CHECKPOINTS_FILE,
        deliveries=directory / DELIVERIES_FILE if settings.keeps_deliveries else None,
        counts=counts,
    )


@contextmanager
def _garbage_left() -> Iterator[None]:
    """Run the garbage collector less often: there are few cycles, and it takes a twentieth of a simulation."""
    before = gc.get_threshold()
    gc.set_threshold(GARBAGE_LOOKED_FOR_EVERY, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _run(world: World, truth: Truth, progress: Callable[[int], None]) -> Counts:
    settings = world.settings
    names = [f"topic-{number}" for number in range(settings.topics)]
    for name in names:
        world.broker.catalog.create(name, settings.partitions)
    crowds = [Crowd(world, f"group-{number}", tuple(_subscribed(names, number))) for number in range(settings.groups)]
    for number, crowd in enumerate(crowds):
        world.broker.catalog.set_group_configs(crowd.group_id, _group_configs(settings, number))
        crowd.gather()
    applications = [StreamsApplication(world, f"application-{number}") for number in range(settings.streams_groups)]
    if applications:
        world.broker.catalog.create(SOURCE_TOPIC, SOURCE_PARTITIONS)
    for number, application in enumerate(applications):
        world.broker.catalog.set_group_configs(application.group_id, {"streams.num.standby.replicas": str(number % 2)})
        application.start()
    producers, admin = Producers(world), Admin(world, crowds)
    producers.start()
    admin.start()
    _Stages(world, truth, progress).run()
    return Counts(
        state_records=world.state_records(),
        produced=producers.produced,
        delivered=world.journal.delivered,
        admin_works=admin.works,
        checkpoints=truth.checkpoints,
        virtual_ms=world.clock.now_ms - settings.start_ms,
    )


def _subscribed(names: list[str], number: int) -> list[str]:
    """Most groups subscribe to all topics, every third one to a single topic."""
    return [names[number % len(names)]] if number % 3 == 2 else names


def _group_configs(settings: SimulationSettings, number: int) -> dict[str, str]:
    configs = {"share.auto.offset.reset": "latest" if number % 4 == 3 else "earliest"}
    if settings.has_dead_letters and number % 2 == 0:
        configs["errors.deadletterqueue.topic.name"] = f"{DEAD_LETTERS_PREFIX}{number}"
    return configs


class _Stages:
    """Runs the simulation from one checkpoint or restart to the next."""

    def __init__(self, world: World, truth: Truth, progress: Callable[[int], None]) -> None:
        self._world = world
        self._truth = truth
        self._progress = progress
        self._timers = 0
        self._seen_records = -1
        self._seen_ms = world.clock.now_ms

    def run(self) -> None:
        """Run all stages."""
        settings = self._world.settings
        records, checkpoints, restarts = settings.records, settings.checkpoints, settings.restarts
        stops = [(records * number // checkpoints, "checkpoint") for number in _up_to(checkpoints)]
        stops += [(records * number // (restarts + 1), "restart") for number in _up_to(restarts)]
        for records, kind in sorted(stops):
            self._run_to(records)
            if kind == "restart":
                self._world.restart()
            else:
                self._truth.take(self._world, f"after {records}")

    def _run_to(self, records: int) -> None:
        self._world.clock.run_while(lambda: self._goes_on(records))

    def _goes_on(self, records: int) -> bool:
        self._timers += 1
        if self._timers % LOOK_EVERY:
            return True
        settings = self._world.settings
        record_count, now_ms = self._world.state_records(), self._world.clock.now_ms
        if record_count != self._seen_records:
            self._seen_records, self._seen_ms = record_count, now_ms
            self._progress(record_count)
        elif now_ms - self._seen_ms > IDLE_LIMIT_MS:
            raise SimulationError(f"no state record for an hour of virtual time after {record_count} of them")
        if settings.duration_ms:
            return now_ms < settings.start_ms + settings.duration_ms
        return record_count < records


def _up_to(last: int) -> range:
    return range(1, last + 1)
