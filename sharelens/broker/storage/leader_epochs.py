"""The leader epochs of a partition and their first offsets (leader-epoch-checkpoint, LeaderEpochFileCache).

Each start of a single-node broker raises the epoch by 2 and notes the end of the log as the new epoch's first offset;
an epoch without a batch is removed (measured on Kafka 4.1 to 4.4).
"""

from pathlib import Path
from typing import Final

from sharelens.broker.storage.files import replace_file
from sharelens.kafka_log.errors import CheckpointError
from sharelens.kafka_log.leader_epochs import end_offset_for
from sharelens.kafka_log.text_files import LEADER_EPOCH_CHECKPOINT, format_leader_epochs, parse_leader_epochs

RAISE_AT_START: Final = 2


class LeaderEpochs:
    """(leader epoch, first offset), ascending, of one partition folder. Every change is written; StorageError."""

    __slots__ = ("_entries", "_path")

    def __init__(self, directory: Path) -> None:
        self._path = directory / LEADER_EPOCH_CHECKPOINT
        self._entries: list[tuple[int, int]] = []

    @classmethod
    def load(cls, directory: Path) -> "LeaderEpochs | None":
        """From the checkpoint; None when it is missing or was not written completely. Raises OSError."""
        epochs = cls(directory)
        try:
            text = epochs._path.read_text(encoding="utf-8")
            epochs._entries = list(parse_leader_epochs(text, str(epochs._path)))
        except (FileNotFoundError, CheckpointError, UnicodeDecodeError):
            return None
        return epochs if epochs._entries else None

    @property
    def latest(self) -> int:
        """The epoch of the next batch; -1 before the first."""
        return self._entries[-1][0] if self._entries else -1

    def entries(self) -> tuple[tuple[int, int], ...]:
        """All entries."""
        return tuple(self._entries)

    def begin(self, epoch: int, end_offset: int) -> None:
        """A new epoch begins at the end of the log."""
        self._entries = [entry for entry in self._entries if entry[1] < end_offset and entry[0] < epoch]
        self._entries.append((epoch, end_offset))
        self._save()

    def note(self, epoch: int, first_offset: int) -> None:
        """Add the epoch of a batch while the checkpoint is rebuilt; written by the next `begin`."""
        if epoch > self.latest:
            self._entries.append((epoch, first_offset))

    def cut_start(self, start_offset: int) -> None:
        """Move the first offset of the epoch at the new log start there; remove earlier epochs."""
        started = [entry for entry in self._entries if entry[1] <= start_offset]
        if started and (len(started) > 1 or started[0][1] < start_offset):
            later = self._entries[len(started) :]
            self._entries = [(started[-1][0], start_offset), *later]
            self._save()

    def end_offset_for(self, epoch: int, end_offset: int) -> tuple[int, int]:
        """(epoch, end offset) of the largest epoch at or below one; an epoch below all ends at the first one's start.

        (-1, -1): the epoch is negative or above all (LeaderEpochFileCache.endOffsetFor).
        """
        return end_offset_for(self._entries, epoch, end_offset)

    def _save(self) -> None:
        replace_file(self._path, format_leader_epochs(self._entries))
