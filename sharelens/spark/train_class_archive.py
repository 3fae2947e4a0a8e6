"""Makes the archive of Spark's classes: a training session's JVM writes it when it exits
(sharelens/spark/class_archive.py).

`python -m sharelens.spark.train_class_archive`; `make setup` calls it.
"""

import hashlib
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sharelens.configuration.settings import Settings, load_settings
from sharelens.spark.class_archive import QUIET, archive_path, identity
from sharelens.spark.jars import delta_jars
from sharelens.spark.java import Java, find_java
from sharelens.spark.kept_files import keep_folder
from sharelens.spark.session import JVM_OPTIONS, spark_session
from state_model.errors import SharelensError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

EXIT_TIMEOUT_S: Final = 120


def make_archive(settings: Settings, java: Java, target: Path) -> None:
    """Run a training session whose JVM writes the archive when it exits, then put it in place.

    Raises:
        SharelensError: when Spark does not start, or its JVM leaves no archive.
    """
    with tempfile.TemporaryDirectory(prefix=".archive-", dir=target.parent) as folder:
        partial = Path(folder) / "classes.jsa"
        options = " ".join((*base_options(java), *QUIET, f"-XX:ArchiveClassesAtExit={partial}"))
        conf = {**settings.spark_conf, JVM_OPTIONS: options}
        session = spark_session("training", settings.model_copy(update={"spark_conf": conf}))
        _train(session)
        if not partial.is_file():
            raise SharelensError("the JVM left no class archive; sessions start some seconds slower without one")
        partial.rename(target)


def base_options(java: Java) -> tuple[str, ...]:
    """JVM options for an archive of Java's own classes, made here; none for a runtime that comes with one."""
    if (java.home / "lib" / "server" / "classes.jsa").is_file():
        return ()
    base = keep_folder() / f"base-{java.version}-{hashlib.sha256(identity(java)).hexdigest()[:16]}.jsa"
    if not base.is_file():
        command = [str(java.program), "-Xshare:dump", f"-XX:SharedArchiveFile={base}"]
        subprocess.run(command, check=False, capture_output=True, timeout=EXIT_TIMEOUT_S)
    return (f"-XX:SharedArchiveFile={base}",) if base.is_file() else ()


def _train(session: "SparkSession") -> None:
    """Do what every run does, stop, and wait for the JVM to go."""

    def unchanged(batches: "Iterable[pa.RecordBatch]") -> "Iterable[pa.RecordBatch]":
        yield from batches

    gateway = session.sparkContext._gateway
    session.range(0, 4, 1, 4).mapInArrow(unchanged, "id bigint").collect()
    session.stop()
    process = None if gateway is None else gateway.proc
    if process is None:
        return
    process.stdin.close()  # the JVM ends with it
    process.wait(timeout=EXIT_TIMEOUT_S)


def main() -> int:
    """Make the archive if it is missing. Without one everything works, so its absence is said but is no failure."""
    settings = load_settings(flags={"master": "local[2]"})
    try:
        java, jars = find_java(), delta_jars(settings)
        target = archive_path(java, jars)
        if not target.is_file():
            make_archive(settings, java, target)
    except (SharelensError, OSError, subprocess.SubprocessError) as error:
        sys.stdout.write(f"no class archive: {error}\n")
        return 0
    sys.stdout.write(f"Spark's classes are archived ({target.stat().st_size >> 20} MB)\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
