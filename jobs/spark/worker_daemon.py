"""The process that Spark's Python workers are forks of where we start a local session: it has imported the stages.

Spark's own has not: each worker, one a core and one more after each task that failed, imports them again, and looks
through all of it for garbage after each task.
"""

import gc

from pyspark import daemon

import jobs.run  # noqa: F401  # all stages
from jobs.spark.executors import load_kernels


def main() -> None:
    """Serves forks until Spark ends it, as its own daemon does."""
    load_kernels()
    gc.collect()
    gc.freeze()
    daemon.manager()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
