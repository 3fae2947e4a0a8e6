"""Running the tasks of a stage: on Spark's executors, or in this process when there is little to do.

A task is a module-level function and a picklable spec; it reads and writes files itself, through Arrow, and returns
what the driver has to commit. On Spark the specs are a column of a DataFrame, in waves that are one parallel job each:
a worker gets the rows of its partition and no others, and returns one row with a pickled result for each. The driver
keeps results, which name files, so its memory grows with files and not with records. DataFrame API only (`mapInArrow`).
"""

import os
import pickle
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa

from jobs.books import software_version
from jobs.errors import JobError
from jobs.progress import Progress
from sharelens.kafka_log.schemas import LOG_RECORD
from sharelens.lake import crash_points
from sharelens.object_stores.options import options_to_send, receive_options
from state_model.columnar import replay
from state_model.columnar.decode import decode_share_records
from state_model.columnar.schemas import SHARE_RECORD
from state_model.errors import SharelensError
from state_model.threads import map_in_threads, threads_for

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Spec = TypeVar("Spec")
Result = TypeVar("Result")

SMALLEST_TASK_BYTES, LARGEST_TASK_BYTES, TASKS_AIMED_AT = 2 << 20, 64 << 20, 8
WAVE_TASKS, WAVE_BYTES = 8, 32 << 20
"""A wave is the specs of one Spark action: so many for each core, which is what the loss of an executor repeats.

In bytes: Spark keeps a local relation of up to 48 MB in rows, and sends at most 128 MB a task."""
LARGEST_SPEC_BYTES = 96 << 20
"""One spec, which travels in one message of Spark (spark.rpc.message.maxSize is 128 MB)."""
PARTITIONS_OF_ROWS = "spark.sql.leafNodeDefaultParallelism"
"""The most partitions of a DataFrame that is made from rows; each partition is a task of Spark."""
SPARK, LOCAL = "spark", "local"
WORK = pa.schema([("task", pa.int64()), ("spec", pa.binary())])
RESULT = pa.schema([("task", pa.int64()), ("result", pa.binary())])
WORKER_GONE = "Python worker exited unexpectedly"
"""What Spark says of one."""
REFUSED = -1
"""In place of a task's number: the result says what is wrong with the executor."""
REMEDY = "give all executors the same environment: docs/how-to/run-on-a-cluster.md"


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
        """Clears `used`, before the next stage."""
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
            return _run_here(name, function, specs, progress, threads_for(size_bytes, cores()))
        spark = self.spark()
        self.used = SPARK
        return _run_on_spark(spark, name, function, specs, progress)


def cores() -> int:
    """Cores that this process may use."""
    get_affinity = getattr(os, "sched_getaffinity", None)  # systems without affinities let it use all
    return len(get_affinity(0)) if get_affinity else os.cpu_count() or 1


def _run_here(
    name: str, function: Callable[[Spec], Result], specs: Sequence[Spec], progress: Progress, threads: int
) -> list[Result]:
    """Tasks are Arrow's and compiled kernels' work, which leave the interpreter to other threads."""

    def explained(spec: Spec) -> Result:
        try:
            return function(spec)
        except SharelensError:
            raise
        except Exception as error:
            raise _failed(name, f"{type(error).__name__}: {error}") from error

    progress.at(name, 0, len(specs))
    return map_in_threads(explained, specs, threads, lambda done: progress.at(name, done, len(specs)))


def _run_on_spark(
    spark: "SparkSession", name: str, function: Callable[[Spec], Result], specs: Sequence[Spec], progress: Progress
) -> list[Result]:
    work = shipped(function)
    parallelism = spark.sparkContext.defaultParallelism
    results: dict[int, Any] = {}
    for rows in waves(name, specs, parallelism * WAVE_TASKS):
        partition_limit = spark.conf.get(PARTITIONS_OF_ROWS, None)  # unset: Spark's own parallelism
        with progress.stage(name, min(rows.num_rows, int(partition_limit or parallelism)), spark):
            tasks = spark.createDataFrame(rows).mapInArrow(work, "task bigint, result binary")
            try:
                answers = tasks.collect()
            except Exception as error:  # Spark's classes, with the traces of two languages in them: one line
                raise _failed(name, last_words(str(error)), executor_of(str(error))) from error
        for row in answers:
            if row.task == REFUSED:
                raise JobError(f"{name}: {row.result.decode()}; {REMEDY}")
            results[row.task] = pickle.loads(row.result)
    for result in results.values():
        if isinstance(result, SharelensError):
            raise result
    return [results[task] for task in range(len(specs))]


def shipped(function: Callable[[Spec], Result]) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that executors apply to WORK rows, with this process's crash points and options of stores.

    An executor without our packages, or with another version of them, yields one row that says so (task REFUSED).
    """
    task = pickle.dumps((function, crash_points.armed(), options_to_send()))
    expected, refused = software_version(), REFUSED

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # Pickled by value, and it imports what it uses: it must start where our packages are missing.
        import socket
        import sys
        from importlib import import_module, metadata

        import pyarrow as pa

        try:
            installed = metadata.version("sharelens")
            ours = import_module("jobs.spark.executors")
        except ImportError as error:
            installed, reason = None, f"lacks sharelens {expected} ({error})"
        else:
            reason = f"has sharelens {installed}, the driver {expected}"
        if installed == expected:
            yield from ours.outcomes(batches, task)
            return
        words = f"the executor on {socket.gethostname()} ({sys.executable}) {reason}"
        yield pa.RecordBatch.from_pydict({"task": [refused], "result": [words.encode()]})

    return work


def outcomes(batches: Iterable[pa.RecordBatch], task: bytes) -> Iterator[pa.RecordBatch]:
    """RESULT rows of WORK rows; `task`: the pickled function, crash points and options of stores. On an executor."""
    os.umask(0o077)
    function, armed, options = pickle.loads(task)
    receive_options(options)
    for batch in batches:
        for number, spec in zip(batch.column("task").to_pylist(), batch.column("spec"), strict=True):
            with crash_points.arm(armed):
                result = _outcome(function, pickle.loads(spec.as_buffer()))
            yield pa.RecordBatch.from_pydict({"task": [number], "result": [pickle.dumps(result)]}, schema=RESULT)


def waves(name: str, specs: Sequence[Spec], row_limit: int) -> Iterator[pa.Table]:
    """WORK rows of the specs in order, in tables of at most `row_limit` rows and WAVE_BYTES; a larger spec is alone.

    Raises:
        JobError: a spec exceeds LARGEST_SPEC_BYTES.
    """
    tasks: list[int] = []
    payload: list[bytes] = []
    size = 0
    for task, spec in enumerate(specs):
        pickled = pickle.dumps(spec)
        if len(pickled) > LARGEST_SPEC_BYTES:
            limit = f"a task gets at most {LARGEST_SPEC_BYTES >> 20} MB"
            raise JobError(
                f"{name}: the spec of task {task} has {len(pickled) >> 20} MB, {limit}; raise in_process_bytes"
            )
        if payload and (size + len(pickled) > WAVE_BYTES or len(payload) == row_limit):
            yield pa.table([tasks, payload], schema=WORK)
            tasks, payload, size = [], [], 0
        tasks.append(task)
        payload.append(pickled)
        size += len(pickled)
    if payload:
        yield pa.table([tasks, payload], schema=WORK)


def _failed(name: str, words: str, executor: str = "") -> JobError:
    where = f" on {executor}" if executor else ""
    return JobError(f"{name}: a task failed{where}: {' '.join(words.split())}; run again to go on from here")


def executor_of(trace: str) -> str:
    """Host and number of the executor that a trace of Spark names; empty for the driver of a local session."""
    lost = re.search(r"\(TID \d+\) \((\S+ executor \d+)\)", trace)
    return lost.group(1) if lost else ""


def last_words(trace: str) -> str:
    """The line of a trace that names the error: the last one of Python's part, else the first of all.

    A worker that something ended leaves no line of Python's.
    """
    if WORKER_GONE in trace:
        return "its Python worker was ended from outside, as a system does that is short of memory"
    lines = [line.strip() for line in trace.splitlines() if line.strip()]
    named = [line for line in lines if re.match(r"[A-Za-z_.]+(Error|Exception|Reached|Exit|Interrupt)\b", line)]
    return (named or lines or ["no reason given"])[-1 if named else 0][:300]


def _outcome(function: Callable[[Spec], Result], spec: Spec) -> Result | SharelensError:
    """The result of a task, or its SharelensError, which the driver raises without Spark's stack trace."""
    try:
        return function(spec)
    except SharelensError as error:
        return error


def warm_up(spark: "SparkSession") -> None:
    """Starts a Python worker on every core and loads the kernels there, so that no stage waits for it."""
    cores = spark.sparkContext.defaultParallelism
    _run_on_spark(spark, "session", load_kernels, list(range(cores)), Progress())


def load_kernels(_: int = 0) -> None:
    """Calls kernels with no rows: importing their modules alone does not load what was compiled."""
    no_records = pa.RecordBatch.from_pylist([], schema=LOG_RECORD)
    decode_share_records(no_records, log_time_ms=np.zeros(0, np.int64))
    replay.replay_records(SHARE_RECORD.empty_table())


def jvm_pid(spark: "SparkSession") -> int | None:
    """Process id of the JVM that this process started; None when it runs elsewhere."""
    process = getattr(getattr(spark.sparkContext, "_gateway", None), "proc", None)
    return getattr(process, "pid", None)


def task_bytes(total: int) -> int:
    """How much one task should take: an equal part; enough to keep some cores busy, files that are not too small."""
    target_bytes = max(SMALLEST_TASK_BYTES, min(LARGEST_TASK_BYTES, total // TASKS_AIMED_AT))
    count = max(1, -(-total // target_bytes))
    return max(1, -(-total // count))


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
