"""The copy of one partition: segments with the batches that were fetched, and the leader epochs of its records."""

import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sharelens.kafka_live.cluster import Position
from sharelens.kafka_log import record_batch as rb
from sharelens.kafka_log import text_files
from sharelens.kafka_log.leader_epochs import UNDEFINED, LeaderEpoch, below, end_offset_for, latest
from sharelens.kafka_log.record_batch import Table
from sharelens.kafka_log.segment_file import MAXIMUM_BATCH_BYTES

SEGMENT_BYTES = 1 << 30
NS_PER_MS = 1_000_000


class CopiedPartition:
    """A partition folder. `offset`: behind the last batch; `leader_epochs`, `newest_ms`: of all records below it, also
    of those that are not in the copy (None: there are none). `first_ms`: of the first batch since `move_to`.
    """

    def __init__(
        self,
        folder: Path,
        topic_id: str,
        offset: int,
        leader_epochs: Sequence[LeaderEpoch] = (),
        newest_ms: int | None = None,
    ) -> None:
        self.newest_ms = newest_ms
        self.first_ms: int | None = None
        self.offset = offset
        self.leader_epochs = below(leader_epochs, offset)
        self._folder = folder
        self._newest: Path | None = None
        """The segment of the last append."""
        folder.mkdir(parents=True, exist_ok=True)
        _write_unless_there(folder / text_files.PARTITION_METADATA, text_files.format_partition_metadata(topic_id))

    @property
    def position(self) -> Position:
        """From where to fetch."""
        return Position(self.offset, latest(self.leader_epochs))

    def append(self, data: bytes, headers: Table) -> None:
        """Appends whole batches with their headers (sharelens.kafka_log.record_batch.walk_headers)."""
        path = self._newest = self._segment(int(headers[0, rb.BASE_OFFSET]))
        with path.open("ab") as segment:
            segment.write(data)
        _set_time(path, headers)
        self.newest_ms = int(headers[-1, rb.MAX_TIMESTAMP])
        if self.first_ms is None:
            self.first_ms = int(headers[0, rb.BASE_TIMESTAMP])
        for epoch in np.unique(headers[:, rb.LEADER_EPOCH]).tolist():
            if epoch > latest(self.leader_epochs):
                start = int(headers[headers[:, rb.LEADER_EPOCH] == epoch, rb.BASE_OFFSET].min())
                self.leader_epochs = (*self.leader_epochs, (epoch, start))
        self.offset = int(headers[-1, rb.LAST_OFFSET]) + 1

    def truncate(self, diverging: LeaderEpoch) -> bool:
        """Drops the records behind the leader epoch that the leader's log shares with the copy, as a follower does.

        `diverging`: that epoch and its end in the leader's log. False: there are no such records, the answer is wrong.
        Rule: org.apache.kafka.server.AbstractFetcherThread.getOffsetTruncationState.
        """
        epoch, end_offset = diverging
        _, own_end = end_offset_for(self.leader_epochs, epoch, self.offset)
        offset = end_offset if own_end == UNDEFINED else min(end_offset, own_end)
        if not 0 <= offset < self.offset:
            return False
        self._drop_from(offset)
        self._newest = None
        self.offset, self.leader_epochs = offset, below(self.leader_epochs, offset)
        return True

    def move_to(self, log_start_offset: int) -> None:
        """Goes on at the log start offset, which has passed the position; what was pruned is a gap."""
        self.offset, self.leader_epochs, self.first_ms = log_start_offset, (), None

    def write_leader_epochs(self) -> None:
        """Writes the leader-epoch-checkpoint."""
        text = text_files.format_leader_epochs(self.leader_epochs)
        _write_unless_there(self._folder / text_files.LEADER_EPOCH_CHECKPOINT, text)

    def remove(self) -> None:
        """Removes the folder."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _segments(self) -> list[Path]:
        return sorted(self._folder.glob("*.log"))

    def _segment(self, first_offset: int) -> Path:
        """The newest segment, or a new one where there is none or it is full."""
        newest = self._newest or max(self._segments(), default=None)
        if newest is not None and newest.exists() and newest.stat().st_size < SEGMENT_BYTES:
            return newest
        return self._folder / f"{first_offset:020d}.log"

    def _drop_from(self, offset: int) -> None:
        """Removes the batches with records at or above an offset."""
        for path in reversed(self._segments()):
            headers, _, _ = rb.walk_headers(
                np.memmap(path, np.uint8, mode="r"), MAXIMUM_BATCH_BYTES, require_whole=True
            )
            kept_headers = headers[headers[:, rb.LAST_OFFSET] < offset]
            if len(kept_headers):
                os.truncate(path, int(kept_headers[-1, rb.POSITION] + kept_headers[-1, rb.SIZE]))
                _set_time(path, kept_headers)
                return
            path.unlink()


def _write_unless_there(path: Path, text: str) -> None:
    """Writes a file, unless an earlier copy at this place left it with the same text."""
    try:
        if path.read_text() == text:
            return
    except (FileNotFoundError, UnicodeDecodeError):
        pass
    path.write_text(text)


def _set_time(path: Path, headers: Table) -> None:
    """The time of the newest record, as on a broker's disk, where it is about the time of the append."""
    newest_ms = int(headers[:, rb.MAX_TIMESTAMP].max())
    if 0 <= newest_ms < time.time_ns() // NS_PER_MS:
        os.utime(path, ns=(newest_ms * NS_PER_MS, newest_ms * NS_PER_MS))
