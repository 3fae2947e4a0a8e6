"""Removes old data files that no readable version needs, and commits that a checkpoint replaces.

Versions from the floor on stay as they are, with their live files and commits. The floor is the oldest version that a
reader may still open: the newest one when the window began, or an older one that the newest publication or one inside
the window names.

delta-rs lists the files that no version needs, but this module deletes them: the vacuum of delta-rs commits twice to
the table, beyond the publication. It also cuts the log by age alone, without regard to publications.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from lake import crash_points
from lake.lake import LOG, LOG_ENTRY, Lake

STAGED = re.compile(r"#[0-9]+$")
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
    return max(_oldest(lake, table), min([_version_at(lake, table, since_ms), *named]))


def _oldest(lake: Lake, table: str) -> int:
    """The oldest version that can still be read: the first one, or that of the oldest checkpoint."""
    if lake.has_commit(table, 0):
        return 0
    return min(_version_of(file) for file in _log(lake, table).glob("*.checkpoint.parquet"))


def _version_at(lake: Lake, table: str, moment_ms: int) -> int:
    """The newest version committed at or before a moment; the oldest whose commit is there, when all came later."""
    version = lake.version(table)
    while version > 0 and lake.has_commit(table, version - 1) and lake.commit_ms(table, version) > moment_ms:
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
    youngest_ms = min(now_ms - GRACE_MS, lake.commit_ms(table, floor) or now_ms)
    root = lake.table_storage(table).path
    count = size = 0
    for name in sorted(unused):
        file = root / unquote(name)
        try:
            status = file.stat()
        except FileNotFoundError:
            continue  # delta-rs also lists what an earlier upkeep has removed
        if status.st_mtime_ns // 1_000_000 > youngest_ms:
            continue
        if not dry_run:
            crash_points.passing(f"vacuum:{table}")
            file.unlink()
        count, size = count + 1, size + status.st_size
    return Removed(files=count, size_bytes=size)


def checkpoint(lake: Lake, table: str, floor: int) -> None:
    """Writes a checkpoint at the floor, where commits below it are there, and then one at the newest version."""
    if floor == 0 or not lake.has_commit(table, floor - 1):
        return
    newest = lake.version(table)
    for version in [version for version in (floor, newest) if not _checkpoint_file(lake, table, version).exists()]:
        crash_points.passing(f"checkpoint:{table}")
        lake.write_checkpoint(table, version)
    lake.unsynced[table] = floor


def _log(lake: Lake, table: str) -> Path:
    return lake.table_storage(table).path / LOG


def _checkpoint_file(lake: Lake, table: str, version: int) -> Path:
    return _log(lake, table) / f"{version:020d}.checkpoint.parquet"


def remove_log(lake: Lake, table: str, floor: int, *, dry_run: bool) -> Removed:
    """Removes commits and checkpoints below a floor that has a checkpoint, and files of killed commits."""
    stands = dry_run or _checkpoint_file(lake, table, floor).exists()
    log = _log(lake, table)
    old = [file for file in sorted(log.iterdir()) if _is_staged(file) or (stands and _version_of(file) < floor)]
    if not dry_run:
        for file in old:
            crash_points.passing(f"log:{table}")
            file.unlink()
    return Removed(log_files=len(old))


def _is_staged(file: Path) -> bool:
    """Whether a file of the log is one that delta-rs had not given its name yet."""
    return STAGED.search(file.name) is not None


def _version_of(file: Path) -> int:
    """The version of a commit or checkpoint; above all others for anything else."""
    entry = LOG_ENTRY.fullmatch(file.name)
    return int(entry[1]) if entry else 1 << 62
