"""From where on a log has all its records, by their offsets: each offset has one until compaction removes it."""

import numpy as np
import pyarrow as pa


class Completeness:
    """From which log offset on no record of a log is missing, up to the last one that was taken.

    Compaction leaves gaps between offsets; the offsets before a gap may lack any record.
    """

    def __init__(self) -> None:
        self.complete_from = 0
        self._next = 0

    def take(self, log_offsets: pa.ChunkedArray) -> None:
        """Takes the log offsets of the next records of all kinds, ascending."""
        offsets = log_offsets.to_numpy()
        if not len(offsets):
            return
        gaps = np.flatnonzero(np.diff(offsets, prepend=self._next - 1) != 1)
        if len(gaps):
            self.complete_from = int(offsets[gaps[-1]])
        self._next = int(offsets[-1]) + 1

    @property
    def is_whole(self) -> bool:
        """Whether there is a record for every offset from 0 up to the last one that was taken."""
        return self.complete_from == 0
