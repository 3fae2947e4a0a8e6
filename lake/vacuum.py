"""Removes what no reader of the last days needs: data files, and commits that a checkpoint stands for.

Everything from a version on, the floor, stays as it is: the files that were live there, those that came later, and the
commits. The floor is the oldest version that somebody may still ask for: the newest one when the window began, or older
where the newest publication, or one inside the window, names an older one.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from deltalake import DeltaTable

from lake import crash_points, delta

GRACE_MS = 3_600_000
"""Files younger than this stay, whatever the window: a task that outlived its run may still write one."""
LOG = "_delta_log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Removed:
    """What was removed, or would be: data files with their bytes, commits and checkpoints of the log."""

    files: int = 0
    size_bytes: int = 0
    log_files: int = 0


def floor_of(path: Path, *, since_ms: int, named: Iterable[int]) -> int:
    """The oldest version to keep: the newest before `since_ms` (epoch ms), or an older one that is `named`.

    Versions that an upkeep with a shorter window has made unreadable are beyond keeping.
    """
    return max(_oldest(path), min([_version_at(path, since_ms), *named]))


def _oldest(path: Path) -> int:
    """The oldest version that can still be read: the first one, or that of the oldest checkpoint."""
    if delta.commit_file(path, 0).exists():
        return 0
    return min(_version_of(file) for file in (path / LOG).glob("*.checkpoint.parquet"))


def _version_at(path: Path, moment_ms: int) -> int:
    """The newest version committed at or before a moment; the oldest whose commit is there, when all came later."""
    version = delta.latest_version(path)
    low = version
    while low > 0 and delta.commit_file(path, low - 1).exists() and delta.commit_ms(path, low) > moment_ms:
        low -= 1
    return low


def remove_files(path: Path, floor: int, *, now_ms: int, dry_run: bool) -> Removed:
    """Removes the data files that no version from `floor` on holds, and what killed runs left."""
    needed = _needed(path, floor)
    count = size = 0
    for file in sorted(path.rglob("*.parquet")):
        name = file.relative_to(path).as_posix()
        if name.startswith(LOG) or name in needed:
            continue
        found = file.stat()
        if found.st_mtime_ns // 1_000_000 > now_ms - GRACE_MS:
            continue
        if not dry_run:
            crash_points.passing(f"vacuum:{path.parent.name}.{path.name}")
            file.unlink()
        count, size = count + 1, size + found.st_size
    return Removed(files=count, size_bytes=size)


def _needed(path: Path, floor: int) -> set[str]:
    """Paths of the files that were live at the floor or were added since."""
    needed = {str(file["path"]) for file in delta.live_files(path, floor)}
    for version in range(floor + 1, delta.latest_version(path) + 1):
        for line in delta.commit_file(path, version).read_text(encoding="utf-8").splitlines():
            action = json.loads(line)
            if "add" in action:
                needed.add(action["add"]["path"])
    return needed


def checkpoint(path: Path, floor: int) -> None:
    """Writes a checkpoint at the floor, where commits below it are there, and then one at the newest version."""
    if floor == 0 or not delta.commit_file(path, floor - 1).exists():
        return
    newest = delta.latest_version(path)
    for version in [version for version in (floor, newest) if not _checkpoint_file(path, version).exists()]:
        crash_points.passing(f"checkpoint:{path.parent.name}.{path.name}")
        DeltaTable(path, version=version).create_checkpoint()


def _checkpoint_file(path: Path, version: int) -> Path:
    return path / LOG / f"{version:020d}.checkpoint.parquet"


def remove_log(path: Path, floor: int, *, dry_run: bool) -> Removed:
    """Removes commits and checkpoints below the floor, once a checkpoint stands at the floor; `.commit-` leftovers."""
    log = path / LOG
    stands = dry_run or _checkpoint_file(path, floor).exists()
    old = [file for file in sorted(log.iterdir()) if _is_scratch(file) or (stands and _version_of(file) < floor)]
    if not dry_run:
        for file in old:
            crash_points.passing(f"log:{path.parent.name}.{path.name}")
            file.unlink()
    return Removed(log_files=len(old))


def _is_scratch(file: Path) -> bool:
    return file.name.startswith(delta.SCRATCH)


def _version_of(file: Path) -> int:
    """The version of a commit or checkpoint; above all others for anything else."""
    number = file.name.split(".", 1)[0]
    return int(number) if len(number) == 20 and number.isdigit() else 1 << 62
