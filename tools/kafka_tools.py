"""Kafka's own command-line tools: their jars, fetched once from the public Maven repository and kept, and how to run
them.

kafka-tools has most tools; kafka-configs still lives in the broker's own jar.
"""

import os
import shutil
import tempfile
from pathlib import Path

from jobs.jars import reason, resolve
from jobs.java import find_java
from jobs.places import keep_folder
from state_model.errors import SharelensError

KAFKA_VERSION = "4.3.1"
GROUP = "org.apache.kafka"
ARTIFACTS = ("kafka-tools", "kafka_2.13")
# Spark's resolver names a jar GROUP_ARTIFACT-VERSION.jar.
JARS = tuple(f"{GROUP}_{artifact}-{KAFKA_VERSION}.jar" for artifact in ARTIFACTS)
HEAP = "-Xmx256m"


class ToolUnavailableError(SharelensError):
    """Raised when Kafka's tools are not there and could not be fetched."""


def tools_folder() -> Path:
    """Where the jars of Kafka's tools are kept."""
    return keep_folder() / f"kafka-tools-{KAFKA_VERSION}"


def fetch_tools() -> Path:
    """The folder of the jars; fetched first when they are missing.

    Raises:
        ToolUnavailableError: without them and without a way to get them; the message is one line.
    """
    folder = tools_folder()
    if _missing(folder):
        with tempfile.TemporaryDirectory(prefix="sharelens-tools-") as scratch:
            report = resolve(",".join(f"{GROUP}:{name}:{KAFKA_VERSION}" for name in ARTIFACTS), Path(scratch))
            fetched = Path(scratch) / "jars"
            missing = _missing(fetched)
            if missing:
                raise ToolUnavailableError(f"{', '.join(missing)} could not be fetched: {reason(report)}")
            folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(fetched, folder)
    return folder


def _missing(folder: Path) -> list[str]:
    return [name for name in JARS if not (folder / name).is_file()]


def tool_command(main_class: str, *arguments: str) -> list[str]:
    """The command that runs one of the tools, by its Java class.

    Raises:
        ToolUnavailableError: no tools. JavaError: no Java.
    """
    import pyspark

    # Spark's resolver leaves out Scala's library, because Spark has it.
    scala = sorted((Path(pyspark.__file__).parent / "jars").glob("scala-library-*.jar"))
    jars = [str(fetch_tools() / "*"), *map(str, scala)]
    # A tool lives for seconds: the quick compiler and the simple collector start sooner.
    options = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", HEAP)
    return [str(find_java().program), *options, "-cp", os.pathsep.join(jars), main_class, *arguments]
