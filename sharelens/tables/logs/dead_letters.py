"""Dead letters from the partitions of their topics in log directories."""

from collections.abc import Sequence

import pyarrow as pa

from sharelens.evidence.conditions import filter_rows
from sharelens.kafka_log.union import LogPartition
from sharelens.lake import dlq_partitions
from sharelens.source.request import Source
from sharelens.tables import dlq_filter
from sharelens.tables.dlq_filter import DeadLetterFilter
from sharelens.tables.limits import MEMORY_PER_BYTE, size_text, too_much
from sharelens.tables.logs import topics as topic_evidence
from sharelens.tables.logs.state import size_bytes
from sharelens.tables.logs.topics import LettersSeen


class DeadLetterLogs:
    """The partitions of dead-letter topics; counts the dead letters of each, and sees the oldest, while it reads.

    Raises:
        TooMuchError: they are larger than --max-bytes.
    """

    def __init__(self, source: Source, partitions: Sequence[LogPartition]) -> None:
        size = sum(size_bytes(partition) for partition in partitions)
        if size > source.max_bytes:
            raise too_much(f"{size_text(size)} of dead-letter topics would have to be read")
        self._source = source
        self._logs = partitions
        self._letters_seen: list[LettersSeen] = []

    def letters(self, letter_filter: DeadLetterFilter) -> pa.Table:
        """DLQ_RECORD rows of these dead letters, by (topic, id, partition, offset).

        Raises:
            TooMuchError: they take too much memory.
        """
        condition, tables, size, all_seen = letter_filter.expression(), [], 0, []
        for log in self._logs:
            letters_seen = LettersSeen()
            for rows in topic_evidence.read_letters(log, self._source.include_uncommitted):
                letters_seen = letters_seen.also(rows)
                tables.append(filter_rows(rows, condition))
                size += tables[-1].nbytes
                if size > self._source.max_bytes * MEMORY_PER_BYTE:
                    raise too_much(f"the selected dead letters take more than {size_text(size)}")
            all_seen.append(letters_seen)
        self._letters_seen = all_seen
        return dlq_filter.in_order(tables)

    def partitions(self) -> pa.Table:
        """DLQ_PARTITION rows; the partitions are read when no question has read them."""
        if not self._letters_seen:
            self.letters(DeadLetterFilter(groups=frozenset()))
        uncommitted = self._source.include_uncommitted
        return dlq_partitions.partitions_table(
            topic_evidence.partition_row(log, uncommitted, letters_seen)
            for log, letters_seen in zip(self._logs, self._letters_seen, strict=True)
        )
