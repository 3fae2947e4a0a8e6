"""The archive of the classes that Spark loads: with one a session starts some seconds sooner.

Half of a session's start is the JVM reading and verifying 18,000 classes. It can map them from an archive that one
training session leaves behind. The archive only fits one Java, one Spark and one set of jars, as its name says; a JVM
that finds it unfit goes on without it. `python -m sharelens.spark.train_class_archive` makes it; `make setup` calls
that.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from sharelens.spark.java import Java
from sharelens.spark.kept_files import keep_folder

QUIET: Final = ("-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")


def archive_path(java: Java, jars: Sequence[Path]) -> Path:
    """Where the archive for this Java, this Spark and these jars is kept, whether it is there or not."""
    digest = hashlib.sha256(identity(java))
    for jar in jars:
        digest.update(f"{jar} {jar.stat().st_size} {jar.stat().st_mtime_ns}\n".encode())
    return keep_folder() / f"classes-{java.version}-{digest.hexdigest()[:16]}.jsa"


def identity(java: Java) -> bytes:
    """Where the Java is, and its build."""
    release = java.home / "release"
    return str(java.home).encode() + (release.read_bytes() if release.is_file() else b"")


def archive_options(java: Java, jars: Sequence[Path]) -> tuple[str, ...]:
    """The JVM options that use the archive; none when there is none."""
    path = archive_path(java, jars)
    return (f"-XX:SharedArchiveFile={path}", *QUIET) if path.is_file() and " " not in str(path) else ()
