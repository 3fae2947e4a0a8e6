"""A worker gets the specs of its own partition and no others."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from jobs.progress import Progress
from jobs.spark import executors
from jobs.spark.executors import Engine
from sharelens.configuration.settings import load_settings
from sharelens.lake.errors import LakeError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECEIVED: list[str] = []
"""Of the worker's process: names of the specs that were unpickled there."""


class Spec:
    """A spec that notes where it is unpickled."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return receive, (self.name,)


def receive(name: str) -> Spec:
    RECEIVED.append(name)
    return Spec(name)


def names_here(spec: Spec) -> tuple[str, tuple[str, ...], int]:
    """The spec's name, all that its partition's task unpickled before it, and the partition."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    marker = f"task {context.taskAttemptId()}"
    if marker not in RECEIVED:
        RECEIVED.insert(len(RECEIVED) - 1, marker)
    received_names = RECEIVED[RECEIVED.index(marker) + 1 :]
    return spec.name, tuple(received_names), context.partitionId()


@pytest.fixture
def engine(spark: "SparkSession") -> Engine:
    return Engine(lambda: spark)


def test_a_worker_receives_the_specs_of_its_own_partition_alone(engine: Engine) -> None:
    names = [f"spec {number}" for number in range(7)]
    answers = engine.run("names", names_here, [Spec(name) for name in names], Progress(), size_bytes=0)
    assert [name for name, _, _ in answers] == names
    partitions = {partition: set() for _, _, partition in answers}
    for name, _, partition in answers:
        partitions[partition].add(name)
    assert len(partitions) == 2
    for _, received_names, partition in answers:
        assert set(received_names) <= partitions[partition]


def test_each_spec_is_a_task_of_spark_in_a_session_of_a_run(engine: Engine, spark: "SparkSession") -> None:
    of_tests = spark.conf.get(executors.PARTITIONS_OF_ROWS)
    spark.conf.set(executors.PARTITIONS_OF_ROWS, load_settings().spark_conf[executors.PARTITIONS_OF_ROWS])
    try:
        answers = engine.run("names", names_here, [Spec(f"spec {n}") for n in range(7)], Progress(), size_bytes=0)
    finally:
        spark.conf.set(executors.PARTITIONS_OF_ROWS, of_tests)
    assert sorted(partition for _, _, partition in answers) == list(range(7))


def test_waves_of_specs_give_the_results_of_one(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "WAVE_BYTES", 5_000)
    assert engine.run("sizes", len, [b"x" * size for size in (4_000, 3, 4_000, 1)], Progress(), size_bytes=0) == [
        4_000,
        3,
        4_000,
        1,
    ]


def refuse(_: int) -> None:
    raise LakeError("do this instead")


def test_an_error_that_says_what_to_do_comes_back_as_it_is(engine: Engine) -> None:
    with pytest.raises(LakeError, match="^do this instead$"):
        engine.run("refuse", refuse, [1, 2], Progress(), size_bytes=0)


def archives_on_the_path(_: int) -> list[str]:
    return [place for place in sys.path if Path(place).is_file()]


def test_workers_of_a_session_that_we_start_search_no_archives(engine: Engine) -> None:
    assert engine.run("path", archives_on_the_path, [0], Progress(), size_bytes=0) == [[]]
