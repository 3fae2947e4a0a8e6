"""The last step of an upgrade: the new lake takes the place of the old one, layer by layer; resumes after a kill.

On a disk folders are renamed. A store has no folders: objects are copied, and the new lake stays complete below
`.upgrade` until the last one is in its place.
"""

from sharelens.lake import crash_points
from sharelens.lake.lake import Lake
from sharelens.lake.local_storage import LocalStorage
from sharelens.lake.object_storage import ObjectStorage
from sharelens.lake.scan import UPGRADE, UPGRADE_COMPLETE

OLDER = ".older"
LAYERS = ("gold", "silver", "bronze")
"""In the order in which they are exchanged: a folder without bronze is no lake to any reader."""


def is_complete(lake: Lake) -> bool:
    """Whether a published new lake waits to take the place of this one."""
    return lake.storage.stat(f"{UPGRADE}/{UPGRADE_COMPLETE}") is not None


def exchange(lake: Lake) -> None:
    """Replaces the tables of the old lake by those of the new one."""
    storage = lake.storage
    if isinstance(storage, LocalStorage):
        _rename(storage)
    elif isinstance(storage, ObjectStorage):
        _copy(lake, storage)


def _rename(storage: LocalStorage) -> None:
    path, new, older = storage.path, storage.path / UPGRADE, storage.path / OLDER
    older.mkdir(mode=0o700, exist_ok=True)
    for layer in LAYERS:
        if (new / layer).exists():
            crash_points.passing(f"exchange:{layer}:before")
            if (path / layer).exists():
                (path / layer).rename(older / layer)
            crash_points.passing(f"exchange:{layer}:between")
            (new / layer).rename(path / layer)
            _sync(storage, ".", UPGRADE, OLDER)
    crash_points.passing("exchange:done")
    (new / UPGRADE_COMPLETE).unlink(missing_ok=True)
    _sync(storage, UPGRADE)
    for folder in (UPGRADE, OLDER):
        storage.remove_folder(folder)


def _sync(storage: LocalStorage, *folders: str) -> None:
    storage.sync(folder for folder in folders if (storage.path / folder).exists())


def _copy(lake: Lake, storage: ObjectStorage) -> None:
    for layer in LAYERS:
        crash_points.passing(f"exchange:{layer}:before")
        lake.ensure_writable()
        storage.remove_folder(layer)
        crash_points.passing(f"exchange:{layer}:between")
        storage.copy_folder(f"{UPGRADE}/{layer}", layer)
    crash_points.passing("exchange:done")
    storage.remove(f"{UPGRADE}/{UPGRADE_COMPLETE}")
    storage.remove_folder(UPGRADE)
