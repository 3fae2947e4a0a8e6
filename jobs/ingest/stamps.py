"""The columns of the books about a run and until when it read its log directories."""

from collections.abc import Sequence
from typing import Any

from evidence.read_until import read_until
from jobs import books
from kafka_log import reader
from kafka_log.layout import LogDirectory
from kafka_log.union import LogPartition
from state_model.topics import STATE_TOPIC


def stamp(
    directories: Sequence[LogDirectory], partitions: Sequence[LogPartition], until_ms: int | None
) -> dict[str, Any]:
    """The columns for extents of these directories; without directories nothing is read, and `read_until_ms` is null.

    `until_ms`: the log time up to which the run reads records (exclusive); None: all.
    """
    state_ends = ((part, reader.log_end(part)) for part in partitions if part.topic == STATE_TOPIC)
    read_until_ms = read_until(directories, state_ends, books.now_ms())
    if read_until_ms is not None and until_ms is not None:
        read_until_ms = min(read_until_ms, until_ms)
    return {**books.stamp(), "until_ms": until_ms, "read_until_ms": read_until_ms}
