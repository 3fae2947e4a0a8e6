"""Copies of recorded logs that grow between runs: a lake is a function of the evidence, not of how it came."""

import random
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.upkeep.maintain import MaintainOptions, maintain
from sharelens.broker.storage.record_batch import max_timestamp_of
from sharelens.lake.lake import Lake
from tests.datasets import STREAMS_SETS, dataset, scenarios
from tests.depths import examples
from tests.lakes import assert_same
from tests.logs.batch_files import batches_of, copy_changed
from tests.logs.file_times import set_times
from tests.processes.in_process import make_lake

pytestmark = pytest.mark.slow

NAMES = sorted({*scenarios(), *STREAMS_SETS})
NOT_THERE, WHOLE_COPY = -1.0, 1.0
"""Parts of a partition's batches that a copy holds, from its first one on."""
REBUILDS = ("decode", "replay", "measure", "audit")


def copy_of(logs: Path, target: Path, parts: Mapping[str, float]) -> Path:
    """A copy whose partitions end somewhere, with the times of its newest record."""
    remaining_batches = {
        folder: round(part * count) for folder, part in parts.items() if (count := batch_count(logs / folder))
    }
    kept_batches: list[bytes] = []

    def begin_of(folder: str, batches: list[bytes]) -> list[bytes]:
        begin = batches[: max(remaining_batches[folder], 0)]
        remaining_batches[folder] -= len(begin)
        kept_batches.extend(begin)
        return begin

    copy_changed(logs, target, begin_of)
    for checkpoint in ("replication-offset-checkpoint", "recovery-point-offset-checkpoint"):
        (target / checkpoint).unlink(missing_ok=True)  # those of the whole log
    newest_ms = max(map(max_timestamp_of, kept_batches), default=0)
    return set_times(target, appended_ms=newest_ms, checkpoint_ms=newest_ms)


def batch_count(folder: Path) -> int:
    """The number of batches of a partition."""
    return sum(len(batches_of(segment)) for segment in folder.glob("*.log"))


def grown(part: float, chance: random.Random) -> float:
    """How much of a partition the next copy holds."""
    if chance.random() < 0.35:
        return part
    begun = max(part, 0.0)
    return begun + (WHOLE_COPY - begun) * chance.choice([1.0, chance.random(), chance.random() / 5])


@pytest.mark.soak
@examples("lake", shrink=False)
@given(name=st.sampled_from(NAMES), copies=st.integers(1, 3), chance=st.randoms(use_true_random=False))
def test_copies_that_grow_from_run_to_run_are_one_run(
    name: str, copies: int, chance: random.Random, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder, logs = tmp_path_factory.mktemp("growing"), dataset(name) / "logs"
    partitions = sorted(entry.name for entry in logs.iterdir() if any(entry.glob("*.log")))
    times = [max_timestamp_of(batch) for path in logs.glob("*/*.log") for batch in batches_of(path)]
    parts = {partition: chance.choice([NOT_THERE, 0.0, 0.0]) for partition in partitions}
    lake = Lake(folder / "lake")
    for number in range(copies):
        parts = {partition: grown(part, chance) for partition, part in parts.items()}
        parts[chance.choice(partitions)] = WHOLE_COPY
        until_ms = chance.choice([None, chance.randint(min(times), max(times))])
        rebuild = chance.choice([None, None, *REBUILDS])
        copy = copy_of(logs, folder / f"copy-{number}", parts)
        make_lake(lake, copy, until_ms=until_ms, rebuild=rebuild)
        if chance.random() < 0.4:
            maintain(MaintainOptions(lake=lake, dry_run=False, window_ms=0))
    whole_copy = copy_of(logs, folder / "whole", dict.fromkeys(partitions, WHOLE_COPY))
    make_lake(lake, whole_copy)
    make_lake(folder / "at-once", whole_copy)
    assert_same(folder / "lake", folder / "at-once")
