"""The jars of Kafka Streams, beside those of Kafka's tools: fetched once from the public Maven repository and kept."""

import os

from tools.kafka_tools import GROUP, KAFKA_VERSION, class_path
from tools.kept_jars import kept_jars

FOLDER = f"kafka-streams-{KAFKA_VERSION}"
JARS = (f"{GROUP}_kafka-streams-{KAFKA_VERSION}.jar",)
IN_TOOLS = (f"{GROUP}:kafka-clients", f"{GROUP}:connect-json", "org.slf4j:slf4j-api")


def streams_class_path() -> str:
    """All that an application of Kafka Streams and Kafka's tools need, as Java's option takes it.

    Raises:
        ToolUnavailableError: no jars, and no way to get them.
    """
    folder = kept_jars(FOLDER, [(f"{GROUP}:kafka-streams:{KAFKA_VERSION}", IN_TOOLS)], JARS)
    return os.pathsep.join([class_path(), str(folder / "*")])
