"""Removes old data files that no readable version needs, and commits that a checkpoint replaces.

Versions from the floor on stay as they are, with their live files and commits. The floor is the oldest version that a
reader may still open: the newest one when the window began, or an older one that the newest publication or one inside
the window names.

The vacuum of delta-rs commits twice to the table, beyond the publication, and replays each version that is to stay; it
cuts the log by age alone, without regard to publications.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sharelens.lake import crash_points
from sharelens.lake.commit_log import checkpoint_path
from sharelens.lake.lake import Lake
from sharelens.lake.storage import Storage
from sharelens.lake.transactions import commit_path

GRACE_MS = 3_600_000
"""A file that no known commit removed stays so long: a task that outlived its run may still write one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """The removed files (with a dry run, the files to remove): data files with bytes, commits and checkpoints."""

    files: int = 0
    size_bytes: int = 0
    log_files: int = 0


def floor_of(lake: Lake, table: str, *, since_ms: int, oldest_named: int | None) -> int:
    """The oldest version to keep: the newest before `since_ms` (epoch ms), or an older one that a publication names.

    Versions that an upkeep with a shorter window has made unreadable don't count.
    """
    log = lake.commit_log(table)
    version = log.version_at(lake.version(table), since_ms)
    return max(log.oldest, version if oldest_named is None else min(version, oldest_named))


def remove_files(lake: Lake, table: str, floor: int, *, now_ms: int, dry_run: bool) -> Removed:
    """Removes the data files that no version from `floor` on has, and files of killed runs.

    A version after the floor has no file that is neither live now nor removed since. What commits removed that an
    earlier upkeep of this process has read goes at once; the other files are looked at, and go behind GRACE_MS.
    """
    needed = lake.removed_since(table, floor) | set(lake.snapshot(table, any_schema=True).paths)
    log, storage = lake.commit_log(table), lake.table_storage(table)
    youngest_ms = min(now_ms - GRACE_MS, log.times.get(floor, now_ms))
    count = size = 0
    for path in sorted(set(_data_files(storage)) - needed):
        file = storage.stat(path)
        if file is None or (path not in log.dead and file.modified_ms > youngest_ms):
            continue
        if not dry_run:
            crash_points.passing(f"vacuum:{table}")
            lake.ensure_writable()
            storage.remove(path)
        count, size = count + 1, size + file.size_bytes
    if not dry_run:
        log.dead &= needed
    return Removed(files=count, size_bytes=size)


def _data_files(storage: Storage) -> Iterator[str]:
    """The files of a table's folder and of its partitions, without its log."""
    for name in storage.names():
        if "=" in name:
            yield from (f"{name}/{path}" for path in storage.folder(name).names())
        elif not name.startswith(("_", ".")):
            yield name


def checkpoint(lake: Lake, table: str, floor: int) -> None:
    """Writes a checkpoint at the floor, where commits below it are there, and then one at the newest version."""
    log = lake.commit_log(table)
    if floor == 0 or floor - 1 not in log.times:
        return
    for version in sorted({floor, lake.version(table)} - log.checkpoints):
        crash_points.passing(f"checkpoint:{table}")
        lake.write_checkpoint(table, version)
        log.checkpoints.add(version)
    lake.unsynced[table] = floor


def remove_log(lake: Lake, table: str, floor: int, *, dry_run: bool) -> Removed:
    """Removes commits and checkpoints below a floor that has a checkpoint, and files of killed commits."""
    log = lake.commit_log(table)
    old = sorted(log.staged)
    if dry_run or floor in log.checkpoints:
        old += [commit_path(version) for version in sorted(log.times) if version < floor]
        old += [checkpoint_path(version) for version in sorted(log.checkpoints) if version < floor]
    if not dry_run:
        storage = lake.table_storage(table)
        for path in old:
            crash_points.passing(f"log:{table}")
            lake.ensure_writable()
            storage.remove(path)
        log.cut(floor if floor in log.checkpoints else 0)
    return Removed(log_files=len(old))
