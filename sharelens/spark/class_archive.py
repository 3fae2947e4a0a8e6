"""The archive of the classes that Spark loads: with one a session starts some seconds sooner.

Half of a session's start is the JVM reading and verifying 18,000 classes. It can map them from an archive that the JVM
of an earlier session left behind: that of the second one writes it when it exits, so who starts Spark once pays
nothing. The archive only fits one Java, one Spark and one set of jars, as its name says; a JVM
that finds it unfit goes on without it.
"""

import hashlib
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from sharelens.spark.java import Java
from sharelens.spark.kept_files import keep_folder

QUIET: Final = ("-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off")
MAGIC_BYTES: Final = 4
"""The first bytes of an archive: zero until the JVM, which writes its header last, has written all of it."""
DUMP_TIMEOUT_S: Final = 120


def archive_path(java: Java, jars: Sequence[Path]) -> Path:
    """Where the archive for this Java, this Spark and these jars is kept, whether it is there or not."""
    digest = hashlib.sha256(identity(java))
    for jar in jars:
        digest.update(f"{jar} {jar.stat().st_size} {jar.stat().st_mtime_ns}\n".encode())
    return keep_folder() / f"spark-classes-{java.version}-{digest.hexdigest()[:16]}.jsa"


def identity(java: Java) -> bytes:
    """Where the Java is, and its build."""
    release = java.home / "release"
    return str(java.home).encode() + (release.read_bytes() if release.is_file() else b"")


def archive_options(java: Java, jars: Sequence[Path]) -> tuple[str, ...]:
    """The JVM options of a session that starts: those that use the archive, or else write it when the JVM exits.

    None at the first start, and none where the archive's path has a blank.
    """
    path = archive_path(java, jars)
    if " " in str(path):
        return ()
    _take_written(path)
    if path.is_file():
        return (f"-XX:SharedArchiveFile={path}", *QUIET)
    started = path.with_suffix(".started")
    if not started.exists():
        started.touch()
        return ()
    return (*base_options(java), *QUIET, f"-XX:ArchiveClassesAtExit={path.with_suffix(f'.{os.getpid()}')}")


def _take_written(path: Path) -> None:
    """Puts an archive in place that an earlier JVM has written completely."""
    for written in path.parent.glob(f"{path.stem}.[0-9]*"):
        with written.open("rb") as file:
            is_complete = any(file.read(MAGIC_BYTES))
        if is_complete:
            written.replace(path)


def base_options(java: Java) -> tuple[str, ...]:
    """JVM options for an archive of Java's own classes, made here; none for a runtime that comes with one."""
    if (java.home / "lib" / "server" / "classes.jsa").is_file():
        return ()
    base = keep_folder() / f"base-{java.version}-{hashlib.sha256(identity(java)).hexdigest()[:16]}.jsa"
    if not base.is_file():
        command = [str(java.program), "-Xshare:dump", f"-XX:SharedArchiveFile={base}"]
        subprocess.run(command, check=False, capture_output=True, timeout=DUMP_TIMEOUT_S)
    return (f"-XX:SharedArchiveFile={base}",) if base.is_file() else ()
