"""Removes old data files that no readable version needs, and commits that a checkpoint replaces.

Versions from the floor on stay as they are, with their live files and commits. The floor is the oldest version that a
reader may still open: the newest one when the window began, or an older one that the newest publication or one inside
the window names.

delta-rs lists the files that no version needs, but this module deletes them: the vacuum of delta-rs commits twice to
the table, beyond the publication. It also cuts the log by age alone, without regard to publications.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from lake import crash_points
from lake.lake import LOG, LOG_ENTRY, Lake
from lake.storage import Entry

STAGED = re.compile(r"#[0-9]+$")
"""The end of the name of a file of the log to which delta-rs had not given its own name yet."""
COMMIT, CHECKPOINT = re.compile(r"[0-9]{20}\.json"), ".checkpoint.parquet"
GRACE_MS = 3_600_000
"""Files younger than this stay, whatever the window: a task that outlived its run may still write one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """The removed files (with a dry run, the files to remove): data files with bytes, commits and checkpoints."""

    files: int = 0
    size_bytes: int = 0
    log_files: int = 0


def floor_of(lake: Lake, table: str, *, since_ms: int, named: Iterable[int]) -> int:
    """The oldest version to keep: the newest before `since_ms` (epoch ms), or an older one that is `named`.

    Versions that an upkeep with a shorter window has made unreadable don't count.
    """
    log = lake.log(table)
    return max(_oldest(log), min([_version_at(lake.version(table), _commit_times(log), since_ms), *named]))


def _commit_times(log: Iterable[Entry]) -> dict[int, int]:
    """By version when it was committed (epoch ms, by the file of its commit), where that file is there."""
    return {_version_of(file.name): file.modified_ms for file in log if COMMIT.fullmatch(file.name)}


def _oldest(log: Sequence[Entry]) -> int:
    """The oldest version that can still be read: the first one, or that of the oldest checkpoint."""
    if 0 in _commit_times(log):
        return 0
    return min(_version_of(file.name) for file in log if file.name.endswith(CHECKPOINT))


def _version_at(newest: int, times: Mapping[int, int], moment_ms: int) -> int:
    """The newest version committed at or before a moment; the oldest whose commit is there, when all came later."""
    version = newest
    while version > 0 and version - 1 in times and times.get(version, 0) > moment_ms:
        version -= 1
    return version


def remove_files(lake: Lake, table: str, floor: int, *, named: Iterable[int], now_ms: int, dry_run: bool) -> Removed:
    """Removes the data files that no version from `floor` on has, and files of killed runs.

    `named`: the versions that publications name. Between them a file is known to be of a later version by its time.
    """
    handle = lake.handle(table)
    keep = sorted({floor, int(handle.version()), *(version for version in named if version >= floor)})
    unused = handle.vacuum(
        retention_hours=0, dry_run=True, enforce_retention_duration=False, full=True, keep_versions=keep
    )
    youngest_ms = min(now_ms - GRACE_MS, _commit_times(lake.log(table)).get(floor, now_ms))
    storage = lake.table_storage(table)
    count = size = 0
    for path in sorted(map(unquote, unused)):
        file = storage.stat(path)
        if file is None or file.modified_ms > youngest_ms:  # delta-rs also lists what an earlier upkeep has removed
            continue
        if not dry_run:
            crash_points.passing(f"vacuum:{table}")
            lake.ensure_writable()
            storage.remove(path)
        count, size = count + 1, size + file.size_bytes
    return Removed(files=count, size_bytes=size)


def checkpoint(lake: Lake, table: str, floor: int) -> None:
    """Writes a checkpoint at the floor, where commits below it are there, and then one at the newest version."""
    names = {file.name for file in lake.log(table)}
    if floor == 0 or f"{floor - 1:020d}.json" not in names:
        return
    newest = lake.version(table)
    for version in [version for version in (floor, newest) if _checkpoint_name(version) not in names]:
        crash_points.passing(f"checkpoint:{table}")
        lake.write_checkpoint(table, version)
    lake.unsynced[table] = floor


def _checkpoint_name(version: int) -> str:
    return f"{version:020d}{CHECKPOINT}"


def remove_log(lake: Lake, table: str, floor: int, *, dry_run: bool) -> Removed:
    """Removes commits and checkpoints below a floor that has a checkpoint, and files of killed commits."""
    names = sorted(file.name for file in lake.log(table))
    stands = dry_run or _checkpoint_name(floor) in names
    old = [name for name in names if STAGED.search(name) or (stands and _version_of(name) < floor)]
    if not dry_run:
        log = lake.table_storage(table).folder(LOG)
        for name in old:
            crash_points.passing(f"log:{table}")
            lake.ensure_writable()
            log.remove(name)
    return Removed(log_files=len(old))


def _version_of(name: str) -> int:
    """The version of a commit or checkpoint; above all others for anything else."""
    entry = LOG_ENTRY.fullmatch(name)
    return int(entry[1]) if entry else 1 << 62
