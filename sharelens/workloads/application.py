"""Kafka's own examples of Kafka Streams, a word count with two topologies; each instance is a process of its own."""

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sharelens.workloads.admin import WorkloadError

INPUT: Final = "streams-plaintext-input"
COUNTING: Final = "org.apache.kafka.streams.examples.wordcount.WordCountDemo"
"""Words go through a repartition topic to a store with a changelog, and their counts to an output topic."""
OTHER_COUNTING: Final = "org.apache.kafka.streams.examples.wordcount.WordCountProcessorDemo"
"""The same input in another topology: one subtopology with a store."""
OUTPUTS: Final[Mapping[str, str]] = {
    COUNTING: "streams-wordcount-output",
    OTHER_COUNTING: "streams-wordcount-processor-output",
}
JARS: Final = ("kafka-streams-examples", "kafka-streams", "kafka-clients", "rocksdbjni", "slf4j-api")
# An instance lives for seconds: the quick compiler and the simple collector start sooner.
JVM_OPTIONS: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m")
CLOSE_TIMEOUT_S: Final = 30.0
OUTPUT_TAIL_BYTES: Final = 4_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Java:
    """Java and the class path of the examples."""

    program: str
    class_path: str


def find_java(folders: Sequence[Path]) -> Java:
    """Java, and the examples in folders with jars; without folders in those of $KAFKA_HOME.

    Raises:
        WorkloadError: something is missing.
    """
    kafka_home = os.environ.get("KAFKA_HOME")
    looked_in = list(folders) or ([Path(kafka_home) / "libs"] if kafka_home else [])
    if not looked_in:
        raise WorkloadError(
            "the profile streams runs Kafka Streams: give --kafka-libs DIR, the folder libs of Kafka 4.2 or later, "
            "or set KAFKA_HOME"
        )
    names = [path.name for folder in looked_in for path in folder.glob("*.jar")]
    missing = [jar for jar in JARS if not any(_is_of(name, jar) for name in names)]
    if missing:
        places = ", ".join(map(str, looked_in))
        raise WorkloadError(f"{places}: no {missing[0]}-VERSION.jar; give --kafka-libs the folder libs of Kafka")
    home = os.environ.get("JAVA_HOME")
    program = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if program is None:
        where = f"{home}/bin has none" if home else "install Java 17 or later, or set JAVA_HOME"
        raise WorkloadError(f"the profile streams runs Kafka Streams and needs java: {where}")
    return Java(program=program, class_path=os.pathsep.join(str(folder / "*") for folder in looked_in))


def _is_of(name: str, jar: str) -> bool:
    """Whether a file is a version of a jar; some resolvers write the group before its name."""
    group, _, version = name.partition(f"{jar}-")
    return version[:1].isdigit() and group[-1:] in ("", "_")


class Instance:
    """One instance of an application. Its state stays in its folder, so that the next one there goes on with it."""

    def __init__(self, java: Java, main_class: str, settings: Mapping[str, object], folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        properties = folder / "application.properties"
        lines = [f"{name}={value}" for name, value in {**settings, "state.dir": folder / "state"}.items()]
        properties.write_text("\n".join(lines) + "\n", encoding="utf-8")
        self._output = folder / "output.txt"
        command = [java.program, *JVM_OPTIONS, "-cp", java.class_path, main_class, str(properties)]
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)

    def check(self) -> None:
        """Raise WorkloadError when it has ended by itself."""
        if self._process.poll() is not None:
            text = self._output.read_text(encoding="utf-8", errors="replace")[-OUTPUT_TAIL_BYTES:]
            last = next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "it printed nothing")
            raise WorkloadError(f"an instance of Kafka Streams ended with {self._process.returncode}: {last}")

    def close(self) -> None:
        """End it in order: it leaves its group."""
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(CLOSE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End it as a crash does: its group notices by the session timeout."""
        self._process.kill()
        self._process.wait()
