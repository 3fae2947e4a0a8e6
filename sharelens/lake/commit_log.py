"""The log of a table as upkeep reads it: commits with their times, checkpoints, and the files that commits removed.

A process that runs for long asks again and again: it looks at each commit once, and goes on behind the newest one.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from sharelens.lake.storage import Entry, Storage
from sharelens.lake.transactions import LOG, commit_path, paths_in

CHECKPOINT = ".checkpoint.parquet"
ENTRY = re.compile(r"([0-9]{20})\.(json|checkpoint\.parquet)")
STAGED = re.compile(r"#[0-9]+$")
"""The end of the name of a file of the log to which delta-rs had not given its own name yet."""


@dataclass(slots=True, kw_only=True)
class CommitLog:
    """`times`: when each commit that is there was written, epoch ms; `checkpoints`: the versions that have one.

    `staged`: files of killed commits, below the table's folder.
    """

    times: dict[int, int] = field(default_factory=dict)
    checkpoints: set[int] = field(default_factory=set)
    staged: set[str] = field(default_factory=set)
    removed: dict[int, set[str]] = field(default_factory=dict)
    """The data files that a commit removed, by version, of the commits above the floor that were read."""
    dead: set[str] = field(default_factory=set)
    """The data files that the commits that were read have removed up to the floor."""

    @classmethod
    def of_entries(cls, entries: Iterable[Entry], before: "CommitLog | None") -> "CommitLog":
        """The log by a listing of its files; `before`: an earlier one, with what was read of the commits."""
        log = cls() if before is None else cls(removed=before.removed, dead=before.dead)
        for file in entries:
            entry = ENTRY.fullmatch(file.name)
            if STAGED.search(file.name):
                log.staged.add(f"{LOG}/{file.name}")
            elif entry and entry[2] == "json":
                log.times[int(entry[1])] = file.modified_ms
            elif entry:
                log.checkpoints.add(int(entry[1]))
        return log

    def follow(self, storage: Storage, newest: int) -> None:
        """Looks at the versions behind the newest known one, up to `newest`."""
        for version in range(max(self.times, default=-1) + 1, newest + 1):
            commit = storage.stat(commit_path(version))
            if commit is not None:
                self.times[version] = commit.modified_ms
            if storage.stat(checkpoint_path(version)) is not None:
                self.checkpoints.add(version)

    @property
    def oldest(self) -> int:
        """The oldest version that can be read: the first one, or that of the oldest checkpoint."""
        return 0 if 0 in self.times else min(self.checkpoints)

    def version_at(self, newest: int, moment_ms: int) -> int:
        """The newest version committed at or before a moment; the oldest whose commit is there, when all came later."""
        version = newest
        while version > 0 and version - 1 in self.times and self.times.get(version, 0) > moment_ms:
            version -= 1
        return version

    def removed_after(self, storage: Storage, floor: int, newest: int) -> set[str]:
        """The data files that versions after `floor` removed, up to `newest`; `dead` has those of other versions.

        Raises:
            FileNotFoundError: a commit after the floor is missing.
        """
        for version in [version for version in self.removed if version <= floor]:
            self.dead.update(self.removed.pop(version))
        for version in range(floor + 1, newest + 1):
            if version not in self.removed:
                self.removed[version] = paths_in(storage.read(commit_path(version)), "remove")
        return {path for paths in self.removed.values() for path in paths}

    def cut(self, floor: int) -> None:
        """Forgets the commits and checkpoints below a version."""
        self.times = {version: time_ms for version, time_ms in self.times.items() if version >= floor}
        self.checkpoints = {version for version in self.checkpoints if version >= floor}
        self.staged.clear()


def checkpoint_path(version: int) -> str:
    """The file of a checkpoint, below the table's folder."""
    return f"{LOG}/{version:020d}{CHECKPOINT}"
