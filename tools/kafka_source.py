"""Spark's own Kafka source (spark-sql-kafka-0-10): its jars, which no session of ours needs, and how to read with it.

The token provider of the connector's version is missing from some mirrors; an older one does.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from tools.kept_jars import kept_jars

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CONNECTOR = "spark-sql-kafka-0-10_2.13"
CONNECTOR_VERSION = "4.1.3"
TOKEN_PROVIDER = "spark-token-provider-kafka-0-10_2.13"  # noqa: S105 - an artifact's name
TOKEN_PROVIDER_VERSION = "4.0.0"  # noqa: S105
SPARK = "org.apache.spark"
JARS = (
    f"{SPARK}_{CONNECTOR}-{CONNECTOR_VERSION}.jar",
    f"{SPARK}_{TOKEN_PROVIDER}-{TOKEN_PROVIDER_VERSION}.jar",
    "org.apache.kafka_kafka-clients-3.9.1.jar",
    "org.apache.commons_commons-pool2-2.12.1.jar",
)
SHOW_INTERNAL_TOPICS = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
"""Without it the source finds no partitions of internal topics, and reads them as empty."""


def source_jars() -> list[Path]:
    """The jars that a session lacks for the source. Raises ToolUnavailableError, a line that says why."""
    folder = kept_jars(
        f"spark-kafka-{CONNECTOR_VERSION}",
        (
            (f"{SPARK}:{CONNECTOR}:{CONNECTOR_VERSION}", [f"{SPARK}:{TOKEN_PROVIDER}"]),
            (f"{SPARK}:{TOKEN_PROVIDER}:{TOKEN_PROVIDER_VERSION}", ["org.apache.hadoop:*", "org.apache.kafka:*"]),
        ),
        JARS,
    )
    return [folder / name for name in JARS]


def read_topic(session: "SparkSession", bootstrap: str, topic: str, **options: str) -> "DataFrame":
    """All records that a topic holds now, internal ones too, by Spark's source."""
    for jar in source_jars():
        session.sql(f"ADD JAR '{jar}'")
    session.conf.set(SHOW_INTERNAL_TOPICS, "true")
    reader = session.read.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
    return reader.options(startingOffsets="earliest", endingOffsets="latest", **options).load()
