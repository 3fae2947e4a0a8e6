"""Durability across power cuts: flushes commits to the disk, refuses torn commits, and sets them aside.

    data files | commits of a stage | the commit that marks the stage as done | ... | publication
    ^ on the disk before their commit ^ on the disk before the mark             ^ all on the disk before it

So a commit on the disk has its files, a mark its stage's commits, and a publication its whole cut.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path

from sharelens.lake.commit_log import checkpoint_path
from sharelens.lake.errors import LakeError
from sharelens.lake.lake import LOG_ENTRY, Lake
from sharelens.lake.local_storage import LocalStorage
from sharelens.lake.transactions import LOG, commit_path

LAST_CHECKPOINT = "_last_checkpoint"
SET_ASIDE = ".torn"
PARQUET_END = b"PAR1"
LINE_END_BYTES = 8
"""Of the end of a commit, which holds the end of its last action and a line break."""


def sync(lake: Lake) -> None:
    """Flushes the commits of this process, and their folders, to the disk; a store has what it has accepted."""
    if not lake.storage.is_local:
        return
    names = set()
    for table, since in lake.unsynced.items():
        folder = table.replace(".", "/")
        names |= {f"{folder}/{path}" for path in _written(lake, table, since)}
        names |= {f"{folder}/{LOG}", folder}
        if since == 0:
            names |= {os.path.dirname(folder), "."}
    lake.storage.sync(sorted(names))
    lake.unsynced.clear()


def _written(lake: Lake, table: str, since: int) -> Iterator[str]:
    """The commits and checkpoints from a version on, by their names: a log may have thousands."""
    storage = lake.table_storage(table)
    newest = lake.version(table)
    paths = [path(version) for version in range(since, newest + 1) for path in (commit_path, checkpoint_path)]
    return (path for path in [*paths, f"{LOG}/{LAST_CHECKPOINT}"] if storage.stat(path) is not None)


def _entries(lake: Lake, table: str, since: int) -> Iterator[str]:
    """Commits and checkpoints from a version on."""
    for file in lake.log(table):
        entry = LOG_ENTRY.fullmatch(file.name)
        if file.name == LAST_CHECKPOINT or (entry and int(entry[1]) >= since):
            yield file.name


def set_aside_torn(lake: Lake, table: str, published: int) -> list[str]:
    """Renames the empty or torn newest commit, and checkpoints, that a power cut left in a table's log.

    `published`: the version of the newest publication; -1 for none. One line for each file that was set aside. In a
    store each object is whole.

    Raises:
        LakeError: the commit is one that the publication names, or an older one.
    """
    storage = lake.table_storage(table)
    if not isinstance(storage, LocalStorage):
        return []
    log = storage.path / LOG
    entries = [entry for file in lake.log(table) if (entry := LOG_ENTRY.fullmatch(file.name))]
    newest = max((entry for entry in entries if entry[2] == "json"), key=lambda entry: int(entry[1]), default=None)
    checkpoints = [entry for entry in entries if entry[2] != "json" and int(entry[1]) > published]
    torn = [log / entry[0] for entry in checkpoints if _is_torn_parquet(log / entry[0])]
    last = log / LAST_CHECKPOINT
    if last.exists() and (torn or _is_torn_json(last)):
        torn.append(last)
    if newest is not None and _is_torn_json(log / newest[0]):
        if int(newest[1]) <= published:
            raise LakeError(
                f"{table} in {lake}: the commit of its published version {int(newest[1])} is damaged "
                f"({log / newest[0]}); put the file back from a copy, or make a new lake from the logs"
            )
        torn.append(log / newest[0])
    for path in torn:
        path.rename(path.with_name(path.name + SET_ASIDE))
    return [f"{table}: {path.name} was torn by a power cut: set aside" for path in torn]


def set_aside_unpublished(lake: Lake, table: str, published: int) -> list[str]:
    """Renames every commit and checkpoint above the published version; one line where there was any."""
    storage = lake.table_storage(table)
    if not isinstance(storage, LocalStorage):
        return []
    log = storage.path / LOG
    later = [name for name in _entries(lake, table, published + 1) if name != LAST_CHECKPOINT]
    for name in [*later, LAST_CHECKPOINT] if later else []:
        path = log / name
        if path.exists():
            path.rename(path.with_name(name + SET_ASIDE))
    return [f"{table}: versions above {published} rest on what was torn: set aside"] if later else []


def ensure_whole(lake: Lake, table: str, version: int | None = None) -> None:
    """Refuses a version (None: the newest one in the log) with a commit that is gone, empty or cut off.

    delta-rs reads an empty commit as one that changed nothing, so rows would be missing without a word. Looked at are
    the commits behind the newest checkpoint. In a store each object is whole.

    Raises:
        LakeError: there is such a commit.
    """
    storage = lake.table_storage(table)
    if not isinstance(storage, LocalStorage):
        return
    names = set(storage.folder(LOG).names())
    numbers = {int(entry[1]) for name in names if (entry := LOG_ENTRY.fullmatch(name))}
    for number in range(max(numbers, default=-1) if version is None else version, -1, -1):
        if os.path.basename(checkpoint_path(number)) in names:
            return
        path = storage.path / commit_path(number)
        problem = (
            "is damaged" if path.name in names and _is_cut_off(path) else "is gone" if path.name not in names else ""
        )
        if problem:
            remedy = "`sharelens run` sets it aside" if version is None else "make a new lake from the logs"
            raise LakeError(
                f"{table} in {lake}: the commit of its version {number} {problem} ({path}), so rows would be missing; "
                f"put the file back from a copy, or {remedy}"
            )


def _is_cut_off(path: Path) -> bool:
    """Whether a commit is empty, or does not end as one does."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - LINE_END_BYTES))
        return not file.read().rstrip().endswith(b"}")


def _is_torn_json(path: Path) -> bool:
    content = path.read_bytes()
    try:
        return not content.strip() or not all(isinstance(json.loads(line), dict) for line in content.splitlines())
    except ValueError:
        return True


def _is_torn_parquet(path: Path) -> bool:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - len(PARQUET_END)))
        return file.read() != PARQUET_END
