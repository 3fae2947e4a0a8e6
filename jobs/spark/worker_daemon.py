"""The process that Spark's Python workers are forks of, in a local session that we start: it has imported their code.

Without it each worker, one a core and one more after each failed task, imports the stages itself and collects their
garbage after each task. Spark starts one such process for each kind of worker, named by the argument: those that plan
a data source import the reader of logs and no stages. It also starts without Spark's own archives on its path, where
pyspark is installed: before each task a worker reads the list of files of every archive on the path again.
docs/adr/0009 has the figures.
"""

import gc
import importlib.machinery
import os
import sys

TASK_WORKER = "pyspark.worker"
"""The kind of worker that runs tasks."""


def path_without_archives(path: str) -> str:
    """PYTHONPATH without zip and jar files; unchanged when pyspark comes from one of them."""
    folders = [place for place in path.split(os.pathsep) if not place.endswith((".zip", ".jar"))]
    installed = [place for place in sys.path if not place.endswith((".zip", ".jar"))]
    if importlib.machinery.PathFinder.find_spec("pyspark", installed) is None:
        return path
    return os.pathsep.join(folders)


def import_code_of(kind: str) -> None:
    """Imports what workers of a kind (a module of pyspark) need of ours."""
    if kind != TASK_WORKER:
        from sharelens.kafka_log import layout, reader, union  # noqa: F401  # what the data source kafka_log plans with

        return
    from jobs.audit import tasks  # noqa: F401
    from jobs.decode import stage as decode  # noqa: F401
    from jobs.ingest import stage as ingest  # noqa: F401
    from jobs.measure import reconcile  # noqa: F401
    from jobs.measure import stage as measure  # noqa: F401
    from jobs.replay import stage as replay  # noqa: F401
    from jobs.spark.executors import load_kernels

    load_kernels()


def main() -> None:
    """Serves forks until Spark ends it, as Spark's own daemon does."""
    path = os.environ.get("PYTHONPATH", "")
    if path_without_archives(path) != path:
        environment = {**os.environ, "PYTHONPATH": path_without_archives(path)}
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)  # noqa: S606 - the same program
    from pyspark import daemon

    import_code_of(sys.argv[1])
    gc.collect()
    gc.freeze()
    daemon.manager()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
