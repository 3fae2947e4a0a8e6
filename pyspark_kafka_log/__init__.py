"""`spark.read.format("kafka_log")`: the records of log directories as a DataFrame.

Spark registers a data source when a top-level module named `pyspark_` plus the format's name has a class
`DefaultSource`. Each action plans the read again: write it to a table when it is needed twice. Filters are not pushed
down (Spark refuses a source that implements that unless a setting allows it): ranges are options.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructField, StructType

from sharelens.kafka_log import reader
from sharelens.kafka_log.archives import log_directories
from sharelens.kafka_log.layout import LogDirectory, scan_log_directory
from sharelens.kafka_log.schemas import LOG_RECORD, PROBLEM
from sharelens.kafka_log.union import unite
from sharelens.output.wording import listed
from state_model.errors import UsageError

DEFAULT_SPLIT_BYTES = 64 << 20
_ROWS = {"records": LOG_RECORD, "problems": PROBLEM}
_OPTIONS = frozenset(
    {
        "path", "paths", "topic", "topics", "includeuncommitted", "includedeleted",
        "startingoffset", "endingoffset", "splitbytes", "rows",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The options of a read; their names are not case-sensitive."""

    paths: tuple[str, ...]
    topics: frozenset[str] | None
    include_uncommitted: bool
    include_deleted: bool
    starting_offset: int
    ending_offset: int | None
    split_bytes: int
    rows: str


def settings_of(options: dict[str, str]) -> Settings:
    """The settings of a read. Raises UsageError naming the option that is missing, unknown or malformed.

    path, or paths as a JSON list: log directories, or archives of them. topic or topics: names, separated by commas,
    each of a topic that is there; all when absent.
    includeUncommitted, includeDeleted: true or false. startingOffset (inclusive), endingOffset (exclusive): of every
    partition. splitBytes: bytes of log a task. rows: `records`, or `problems` for bytes that could not be read.
    """
    values = {name.lower(): value for name, value in options.items()}
    unknown = sorted(name for name in options if name.lower() not in _OPTIONS)
    if unknown:
        raise UsageError(f"kafka_log has no option {', '.join(unknown)}; it has {', '.join(sorted(_OPTIONS))}")
    rows = values.get("rows", "records").lower()
    if rows not in _ROWS:
        raise UsageError(f"option rows is {rows!r}: say records or problems")
    topics = values.get("topics", values.get("topic"))
    return Settings(
        paths=_paths(values),
        topics=None if topics is None else frozenset(name.strip() for name in topics.split(",")),
        include_uncommitted=_flag(values, "includeUncommitted"),
        include_deleted=_flag(values, "includeDeleted"),
        starting_offset=_number(values, "startingOffset", 0),
        ending_offset=_number(values, "endingOffset", 0) if "endingoffset" in values else None,
        split_bytes=max(1, _number(values, "splitBytes", DEFAULT_SPLIT_BYTES)),
        rows=rows,
    )


def _paths(values: dict[str, str]) -> tuple[str, ...]:
    if "paths" in values:
        try:
            paths = json.loads(values["paths"])
        except json.JSONDecodeError:
            paths = None
        if not isinstance(paths, list) or not paths or not all(isinstance(path, str) for path in paths):
            raise UsageError("option paths is no JSON list of log directories")
        return tuple(paths)
    if "path" not in values:
        raise UsageError('kafka_log needs a log directory: spark.read.format("kafka_log").load(DIR)')
    return (values["path"],)


def _flag(values: dict[str, str], name: str) -> bool:
    value = values.get(name.lower(), "false").lower()
    if value not in ("true", "false"):
        raise UsageError(f"option {name} is {value!r}: say true or false")
    return value == "true"


def _number(values: dict[str, str], name: str, default: int) -> int:
    value = values.get(name.lower(), str(default)).strip()
    if not value.isdecimal():
        raise UsageError(f"option {name} is {value!r}: say a number, 0 or larger")
    return int(value)


def spark_schema(schema: pa.Schema) -> StructType:
    """An Arrow schema as Spark's, with its comments."""
    return StructType(
        [
            StructField(
                field.name,
                from_arrow_type(field.type),
                field.nullable,
                {"comment": (field.metadata or {}).get(b"comment", b"").decode()},
            )
            for field in schema
        ]
    )


class SplitPartition(InputPartition):
    """A split of a log partition, for one task."""

    def __init__(self, split: reader.Split) -> None:
        super().__init__(split)
        self.split = split


class DefaultSource(DataSource):
    """The data source; see `settings_of` for its options."""

    @classmethod
    def name(cls) -> str:
        """The name after `format`."""
        return "kafka_log"

    def schema(self) -> StructType:
        """LOG_RECORD, or PROBLEM."""
        return spark_schema(_ROWS[settings_of(dict(self.options)).rows])

    def reader(self, schema: StructType) -> "LogReader":
        """A reader; `schema` is ignored, the source has its own."""
        return LogReader(settings_of(dict(self.options)))


def _topics_of(directories: Iterable[LogDirectory]) -> frozenset[str]:
    return frozenset(folder.topic for directory in directories for folder in directory.partitions)


class LogReader(DataSourceReader):
    """Plans the splits on the driver, reads them in tasks."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def partitions(self) -> Sequence[SplitPartition]:
        """The splits of all partitions, by topic, partition and offset.

        Raises:
            UsageError: the log directories have no folder of a topic that the option `topics` names.
        """
        settings = self.settings
        directories = [
            scan_log_directory(path, include_deleted=settings.include_deleted, topics=settings.topics)
            for path in log_directories(settings.paths)
        ]
        if settings.topics is not None:
            self._refuse_missing_topics(settings.topics - _topics_of(directories))
        splits = []
        for partition in unite(directories):
            end = reader.readable_end(partition, include_uncommitted=settings.include_uncommitted)
            if settings.ending_offset is not None:
                end = min(end, settings.ending_offset)
            splits += reader.splits(partition, settings.starting_offset, end, settings.split_bytes)
        return [SplitPartition(split) for split in splits]

    def _refuse_missing_topics(self, missing: frozenset[str]) -> None:
        """Raises UsageError where a topic is missing; the message has the topics that are there."""
        if not missing:
            return
        paths, include_deleted = self.settings.paths, self.settings.include_deleted
        directories = [scan_log_directory(path, include_deleted=include_deleted) for path in log_directories(paths)]
        present = listed(sorted(_topics_of(directories)))
        raise UsageError(
            f"option topics: no folder of {listed(sorted(missing))} in {', '.join(paths)}; topics: {present}"
        )

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        """The rows of one split; Spark passes None when there is no split."""
        if not isinstance(partition, SplitPartition):
            return
        for chunk in reader.read_split(partition.split, include_uncommitted=self.settings.include_uncommitted):
            batch = chunk.records if self.settings.rows == "records" else chunk.problems
            if batch.num_rows:
                yield batch
