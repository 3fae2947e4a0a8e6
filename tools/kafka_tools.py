"""Kafka's own command-line tools: their jars, fetched once from the public Maven repository and kept, and how to run
them.

kafka-tools has most tools; kafka-configs still lives in the broker's own jar.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from sharelens.spark.java import find_java
from tools.kept_jars import kept_jars

KAFKA_VERSION = "4.3.1"
GROUP = "org.apache.kafka"
ARTIFACTS = ("kafka-tools", "kafka_2.13")
# Spark's resolver names a jar GROUP_ARTIFACT-VERSION.jar.
JARS = tuple(f"{GROUP}_{artifact}-{KAFKA_VERSION}.jar" for artifact in ARTIFACTS)
FOLDER = f"kafka-tools-{KAFKA_VERSION}"
QUICK_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""For a JVM that lives for seconds: the quick compiler and the simple collector start sooner."""
TOOL_JVM = (*QUICK_JVM, "-Xmx256m")


def fetch_tools() -> Path:
    """The folder of the jars; fetched first when they are missing. Raises ToolUnavailableError."""
    packages = ",".join(f"{GROUP}:{name}:{KAFKA_VERSION}" for name in ARTIFACTS)
    return kept_jars(FOLDER, [(packages, ())], JARS)


def class_path() -> str:
    """All that the tools need, as Java's option takes it. Raises ToolUnavailableError."""
    import pyspark

    # Spark's resolver leaves out Scala's library, because Spark has it.
    scala = sorted((Path(pyspark.__file__).parent / "jars").glob("scala-library-*.jar"))
    return os.pathsep.join([str(fetch_tools() / "*"), *map(str, scala)])


def tool_command(main_class: str, *arguments: str, jvm: Sequence[str] = TOOL_JVM) -> list[str]:
    """The command that runs one of the tools, by its Java class; `jvm`: options of the JVM.

    Raises:
        ToolUnavailableError: no tools. JavaError: no Java.
    """
    return [str(find_java().program), *jvm, "-cp", class_path(), main_class, *arguments]
