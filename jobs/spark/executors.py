"""Running the tasks of a stage: on Spark's executors, or in this process when there is little to do.

A task is a module-level function and a picklable value; it reads and writes files itself, through Arrow, and returns
what the driver has to commit. On Spark one row a task goes in and one pickled result a task comes out. DataFrame API
only (`mapInArrow`).
"""

import os
import pickle
import re
import sys
import zipimport
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
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
SPARK, LOCAL = "spark", "local"
RESULT = pa.schema([("task", pa.int64()), ("result", pa.binary())])


class Engine:
    """Where the tasks of a run are computed.

    A stage that reads at most `in_process_bytes` runs in this process, so that little news needs no JVM; from the first
    larger one on, everything runs on the session that `start` gives. 0: always Spark.
    """

    def __init__(self, start: Callable[[], "SparkSession"], in_process_bytes: int = 0) -> None:
        self._start = start
        self._in_process_bytes = in_process_bytes
        self._spark: SparkSession | None = None
        self.used: str | None = None
        """What computed the latest tasks: SPARK or LOCAL; None since `forget`."""

    def forget(self) -> None:
        """Begins anew to note what computes a stage."""
        self.used = None

    def spark(self) -> "SparkSession":
        """The session, started when it is first needed."""
        if self._spark is None:
            self._spark = self._start()
        return self._spark

    def run(
        self,
        name: str,
        function: Callable[[Spec], Result],
        specs: Sequence[Spec],
        progress: Progress,
        *,
        size_bytes: int,
    ) -> list[Result]:
        """`function` of every spec, in the order of the specs, which together read `size_bytes`.

        Nothing starts when there is no spec. A task that fails fails the call; files that other tasks wrote meanwhile
        are not part of any table.

        Raises:
            SharelensError: what a task raised.
            JobError: a task failed for a reason of its own.
        """
        if not specs:
            return []
        if self._spark is None and self._in_process_bytes > 0 and size_bytes <= self._in_process_bytes:
            self.used = LOCAL
            return _run_here(name, function, specs, progress)
        spark = self.spark()
        self.used = SPARK
        return _run_on_spark(spark, name, function, specs, progress)


def cores() -> int:
    """Cores that this process may use."""
    known = getattr(os, "sched_getaffinity", None)  # systems without affinities let it use all
    return len(known(0)) if known else os.cpu_count() or 1


def _run_here(name: str, function: Callable[[Spec], Result], specs: Sequence[Spec], progress: Progress) -> list[Result]:
    """Tasks are Arrow's and compiled kernels' work, which leave the interpreter to other threads."""
    results = []
    with ThreadPoolExecutor(cores()) as pool:
        under_way = [pool.submit(function, spec) for spec in specs]
        for number, task in enumerate(under_way):
            progress.at(name, number, len(specs))
            try:
                results.append(task.result())
            except BaseException as error:
                pool.shutdown(cancel_futures=True)
                if isinstance(error, SharelensError) or not isinstance(error, Exception):
                    raise
                raise _failed(name, f"{type(error).__name__}: {error}") from error
    progress.at(name, len(specs), len(specs))
    return results


def _run_on_spark(
    spark: "SparkSession", name: str, function: Callable[[Spec], Result], specs: Sequence[Spec], progress: Progress
) -> list[Result]:
    payload = [pickle.dumps(spec) for spec in specs]
    armed = crash_points.armed()

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        os.umask(0o077)
        for batch in batches:
            for task in batch.column(0).to_pylist():
                with crash_points.arm(armed):
                    result = _outcome(function, pickle.loads(payload[task]))
                yield pa.RecordBatch.from_pydict({"task": [task], "result": [pickle.dumps(result)]}, schema=RESULT)
        forget_archives()

    partitions = min(len(specs), WAVES * spark.sparkContext.defaultParallelism)
    with progress.stage(name, partitions, spark):
        tasks = spark.range(0, len(specs), 1, partitions).mapInArrow(work, "task bigint, result binary")
        try:
            rows = tasks.collect()
        except Exception as error:  # Spark's classes, with the traces of two languages in them: one line for the reader
            raise _failed(name, last_words(str(error))) from error
    results: dict[int, Any] = {row.task: pickle.loads(row.result) for row in rows}
    for result in results.values():
        if isinstance(result, SharelensError):
            raise result
    return [results[task] for task in range(len(specs))]


def forget_archives() -> None:
    """Takes finders of modules in zip files out of the interpreter's cache; the next import makes them anew.

    Before each task Spark's worker tells every finder to look again, and that of a zip file then reads the list of all
    its files: Spark's own archives on the path cost a task more than many a spec. A new finder takes the list as read.
    """
    for place, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimport.zipimporter):
            del sys.path_importer_cache[place]


def _failed(name: str, words: str) -> JobError:
    return JobError(f"{name}: a task failed: {' '.join(words.split())}; run again to go on from here")


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
    _run_on_spark(spark, "session", load_kernels, list(range(cores)), Progress())


def load_kernels(_: int = 0) -> None:
    """Calls kernels for nothing: their modules alone don't read what was compiled."""
    from kafka_log.schemas import LOG_RECORD
    from state_model.columnar import replay
    from state_model.columnar.decode import decode_share_records
    from state_model.columnar.schemas import SHARE_RECORD

    nothing = pa.RecordBatch.from_pylist([], schema=LOG_RECORD)
    decode_share_records(nothing, log_time_ms=np.zeros(0, np.int64))
    replay.replay_records(SHARE_RECORD.empty_table())


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
