"""The jars of Kafka Streams and its examples, beside those of Kafka's tools: fetched once, and kept."""

import os
from pathlib import Path

from tools.kafka_tools import GROUP, KAFKA_VERSION, class_path
from tools.kept_jars import kept_jars

FOLDER = f"kafka-streams-{KAFKA_VERSION}"
ARTIFACT = "kafka-streams-examples"
JARS = tuple(f"{GROUP}_{artifact}-{KAFKA_VERSION}.jar" for artifact in ("kafka-streams", ARTIFACT))
IN_TOOLS = (f"{GROUP}:kafka-clients", f"{GROUP}:connect-json", "org.slf4j:slf4j-api")


def streams_class_path() -> str:
    """All that an application of Kafka Streams and Kafka's tools need, as Java's option takes it.

    Raises:
        ToolUnavailableError: no jars, and no way to get them.
    """
    return os.pathsep.join([class_path(), str(fetch_streams() / "*")])


def fetch_streams() -> Path:
    """The folder of the jars of Kafka Streams and of its examples. Raises ToolUnavailableError."""
    return kept_jars(FOLDER, [(f"{GROUP}:{ARTIFACT}:{KAFKA_VERSION}", IN_TOOLS)], JARS)
