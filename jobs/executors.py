"""Running tasks on Spark's executors: one row a task in, one pickled result a task out.

A task is a module-level function and a picklable value; it reads and writes files itself, through Arrow, and returns
what the driver has to commit. DataFrame API only (`mapInArrow`).
"""

import os
import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from jobs.errors import JobError
from jobs.progress import Progress
from lake import crash_points
from state_model.errors import SharelensError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Spec = TypeVar("Spec")
Result = TypeVar("Result")

SMALLEST_TASK_BYTES, LARGEST_TASK_BYTES, TASKS_AIMED_AT = 2 << 20, 64 << 20, 8
WAVES = 2
"""Spark tasks a core: starting one costs more than a small spec does."""
Session = Callable[[], "SparkSession"]
"""Returns the Spark session, starting it when it is first needed."""
RESULT = pa.schema([("task", pa.int64()), ("result", pa.binary())])


def run_tasks(
    session: Session, name: str, function: Callable[[Spec], Result], specs: Sequence[Spec], progress: Progress
) -> list[Result]:
    """`function` of every spec, computed on the executors; results in the order of the specs.

    The session starts when there is a spec.

    Raises:
        SharelensError: what a task raised.

    A task that fails fails the call; files that other tasks wrote meanwhile are not part of any table.
    """
    if not specs:
        return []
    spark = session()
    payload = [pickle.dumps(spec) for spec in specs]
    armed = crash_points.armed()

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        os.umask(0o077)
        for batch in batches:
            for task in batch.column(0).to_pylist():
                with crash_points.arm(armed):
                    result = _outcome(function, pickle.loads(payload[task]))
                yield pa.RecordBatch.from_pydict({"task": [task], "result": [pickle.dumps(result)]}, schema=RESULT)

    partitions = min(len(specs), WAVES * spark.sparkContext.defaultParallelism)
    with progress.stage(name, partitions, spark):
        tasks = spark.range(0, len(specs), 1, partitions).mapInArrow(work, "task bigint, result binary")
        try:
            rows = tasks.collect()
        except Exception as error:  # Spark's classes, with the traces of two languages in them: one line for the reader
            raise JobError(f"{name}: a task failed: {last_words(str(error))}; run again to go on from here") from error
    results: dict[int, Any] = {row.task: pickle.loads(row.result) for row in rows}
    for result in results.values():
        if isinstance(result, SharelensError):
            raise result
    return [results[task] for task in range(len(specs))]


def last_words(trace: str) -> str:
    """The line of a trace that names the error: the last one of Python's part, else the first of all."""
    lines = [line.strip() for line in trace.splitlines() if line.strip()]
    named = [line for line in lines if re.match(r"[A-Za-z_.]+(Error|Exception|Reached|Exit|Interrupt)\b", line)]
    return (named or lines or ["no reason given"])[-1 if named else 0][:300]


def _outcome(function: Callable[[Spec], Result], spec: Spec) -> Result | SharelensError:
    """The result of a task; an error that says what to do comes back as it is, without Spark's stack of calls."""
    try:
        return function(spec)
    except SharelensError as error:
        return error


def warm_up(spark: "SparkSession") -> None:
    """Starts a Python worker on every core and loads the kernels there, so that no stage waits for it."""
    cores = spark.sparkContext.defaultParallelism
    run_tasks(lambda: spark, "session", _load_kernels, list(range(cores)), Progress())


def _load_kernels(_: int) -> int:
    from jobs import decode, ingest, replay

    return len({decode.decode_task, ingest.read_task, replay.replay_task})


def jvm_pid(spark: "SparkSession") -> int | None:
    """Process id of the JVM that this process started; None when it runs elsewhere."""
    process = getattr(getattr(spark.sparkContext, "_gateway", None), "proc", None)
    return getattr(process, "pid", None)


def task_bytes(total: int) -> int:
    """How much one task should take: enough tasks to keep some cores busy, files that are not too small."""
    return max(SMALLEST_TASK_BYTES, min(LARGEST_TASK_BYTES, total // TASKS_AIMED_AT))


def binned(items: Sequence[tuple[Spec, int]], target: int | None = None) -> list[list[Spec]]:
    """Neighbouring items together until their sizes in bytes reach `target` (None: `task_bytes` of their sum)."""
    target = task_bytes(sum(weight for _, weight in items)) if target is None else target
    bins: list[list[Spec]] = []
    filled = target
    for item, weight in items:
        if filled >= target or (bins and filled + weight > 2 * target):
            bins.append([])
            filled = 0
        bins[-1].append(item)
        filled += weight
    return bins
