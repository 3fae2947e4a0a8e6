"""The Delta jars that Spark needs beside its own: resolved once by Spark's resolver, kept, used without a network.

`python -m sharelens.spark.jars` fetches them when they are missing; `make setup` calls it.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from sharelens.configuration.settings import Settings, load_settings
from sharelens.lake.whole_file import write_whole
from sharelens.spark.java import BUNDLED, find_java, home_for_spark
from sharelens.spark.kept_files import keep_folder
from sharelens.spark.trust import trust_options
from state_model.errors import SharelensError

DELTA_VERSION: Final = "4.4.0"
DELTA_PACKAGE: Final = f"io.delta:delta-spark_4.1_2.13:{DELTA_VERSION}"
JARS: Final = tuple(
    f"{name}-{DELTA_VERSION}.jar"
    for name in (
        "delta-kernel-api",
        "delta-kernel-defaults",
        "delta-kernel-unitycatalog",
        "delta-spark_4.1_2.13",
        "delta-storage",
    )
)
"""Of everything that the package depends on, pyspark has the rest."""
EXCLUDED: Final = ("com.*", "commons-*", "io.airlift", "io.unitycatalog", "jakarta.*", "javax.*", "org.*")
FETCH_COMMAND: Final = "python -m sharelens.spark.jars"
RESOLVE_TIMEOUT_S: Final = 600


class JarsError(SharelensError):
    """Raised when the Delta jars are missing and may not, or could not, be fetched."""


def jars_folder(settings: Settings) -> Path:
    """Where the jars are, or would be put."""
    return settings.jars_dir or keep_folder() / "jars"


def missing_jars(folder: Path) -> tuple[str, ...]:
    """The names of the jars that `folder` lacks."""
    return tuple(name for name in JARS if not _is_jar(folder / name))


def delta_jars(settings: Settings) -> tuple[Path, ...]:
    """The jars' paths; fetched first when they are missing.

    A folder named by the setting jars_dir belongs to somebody else: it is read, never filled.

    Raises:
        JarsError: when they are missing and the settings forbid fetching, or fetching failed.
    """
    folder = jars_folder(settings)
    missing = missing_jars(folder)
    if missing and settings.jars_dir is not None:
        raise JarsError(f"jars_dir {folder} lacks {', '.join(missing)}; copy them there or unset jars_dir")
    if missing and settings.offline:
        raise JarsError(f"offline, and {folder} lacks {', '.join(missing)}; run once with a network: {FETCH_COMMAND}")
    if missing:
        _fetch(folder)
    return tuple(folder / name for name in JARS)


def _is_jar(path: Path) -> bool:
    """Whether the file is there and begins as a zip does."""
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PK\x03\x04"
    except OSError:
        return False


def _fetch(folder: Path) -> None:
    """Let Spark's resolver fetch the package into a scratch folder, and keep the five jars."""
    with tempfile.TemporaryDirectory(prefix="sharelens-ivy-") as scratch:
        report = resolve(DELTA_PACKAGE, Path(scratch), [f"{group}:*" for group in EXCLUDED])
        fetched = {path.name.partition("_")[2]: path for path in (Path(scratch) / "jars").glob("io.delta_*.jar")}
        lacking = [name for name in JARS if name not in fetched]
        if lacking:
            raise JarsError(
                f"could not fetch {DELTA_PACKAGE}: {reason(report)}; repeat with a network: {FETCH_COMMAND}"
            )
        for name in JARS:
            write_whole(folder / name, fetched[name].read_bytes(), mode=0o644)


def resolve(package: str, scratch: Path, excluded: Sequence[str] = ()) -> str:
    """Let Spark's own resolver put the jars of a package into `scratch/jars`; what it printed.

    spark-submit runs a script that does nothing; before that it resolves.
    """
    import pyspark

    script = scratch / "nothing.py"
    script.touch()
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    left_out = ["--exclude-packages", ",".join(excluded)] if excluded else []
    command = [
        *(str(submit), "--master", "local[1]", "--packages", package, *left_out),
        *("--conf", f"spark.jars.ivy={scratch}", str(script)),
    ]
    java = find_java()
    options = [os.environ.get("SPARK_SUBMIT_OPTS", "")]
    if java.origin == BUNDLED:
        options += trust_options(scratch)
    environment = {
        **os.environ,
        "JAVA_HOME": str(home_for_spark(java)),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_SUBMIT_OPTS": " ".join(filter(None, options)),
    }
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=RESOLVE_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return done.stderr


def reason(report: str) -> str:
    """The first line of the resolver's report with the error."""
    lines = [line.strip(" :\t") for line in report.splitlines()]
    telling = [
        line for line in lines if "PKIX" in line or "not found" in line or "Exception" in line or "unresolved" in line
    ]
    return (telling or lines[-1:] or ["no reason given"])[0]


def main() -> int:
    """Fetches missing jars; prints their folder."""
    settings = load_settings()
    folder = jars_folder(settings)
    if missing_jars(folder):
        sys.stdout.write("fetching the Delta jars (13 MB, once) ...\n")
    try:
        jars = delta_jars(settings)
    except SharelensError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{len(jars)} Delta jars in {folder}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
