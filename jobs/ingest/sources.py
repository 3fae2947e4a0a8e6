"""The log directories of a run, and the rows of the books about what the run takes of them."""

from collections.abc import Sequence
from typing import Any

from jobs import books
from jobs.ingest import plan
from jobs.ingest.plan import Extent
from sharelens.evidence.read_until import read_until
from sharelens.kafka_log import reader
from sharelens.kafka_log.layout import LogDirectory
from sharelens.kafka_log.reader import LogEnd
from sharelens.kafka_log.union import LogPartition, unite


class Sources:
    """Log directories and the union of their partitions; without directories there is nothing to read."""

    def __init__(self, directories: Sequence[LogDirectory]) -> None:
        self.directories = directories
        self.partitions: Sequence[LogPartition] = unite(directories)
        self._until: tuple[int | None] | None = None

    def _read_until(self, extents: Sequence[Extent]) -> int | None:
        """Reads ends of logs, but for those of the extents; so only a run with news takes it."""
        if self._until is None:
            end_by_partition = {_place(extent.partition): extent.log_end for extent in extents}

            def log_end(partition: LogPartition) -> LogEnd:
                return end_by_partition.get(_place(partition)) or reader.log_end(partition)

            self._until = (read_until(self.directories, self.partitions, log_end, books.now_ms()),)
        return self._until[0]

    def extent_rows(
        self, extents: Sequence[Extent], cluster_id: str, run: int, until_ms: int | None
    ) -> list[dict[str, Any]]:
        """The rows of the books that plan the extents of a run.

        `until_ms`: the log time up to which the run reads records (exclusive); None: all.
        """
        if not extents:
            return []
        read_until_ms = self._read_until(extents)
        if read_until_ms is not None and until_ms is not None:
            read_until_ms = min(read_until_ms, until_ms)
        return plan.extent_rows(extents, cluster_id=cluster_id, run=run, until_ms=until_ms, read_until_ms=read_until_ms)


def _place(partition: LogPartition) -> tuple[str, str, int]:
    return partition.topic, partition.topic_id, partition.partition
