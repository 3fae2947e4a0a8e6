"""The folder for what a run fetches from a cluster."""

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from sharelens.lake import lock
from sharelens.lake.errors import LakeLockedError
from sharelens.lake.lake import Lake
from sharelens.lake.local_storage import LocalStorage

FETCHED = ".fetched"
"""The name of the folder in a lake."""


def fetch_folder(lake: Lake) -> Path:
    """The local folder for what a run fetches: in the lake, or a temporary one where the lake is in a store.

    It is the same in each run, as it is one source in the books.
    """
    storage = lake.storage
    if isinstance(storage, LocalStorage):
        return storage.path / FETCHED
    digest = hashlib.sha256(storage.address.encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"sharelens{FETCHED}-{os.getuid()}-{digest}"


def remove_fetched(lake: Lake, *, but_folders: bool) -> None:
    """Removes what a run fetched; with `but_folders` the small files of partitions stay, which the next run would write
    again.
    """
    folder = fetch_folder(lake)
    if not but_folders:
        shutil.rmtree(folder, ignore_errors=True)
        return
    for segment in folder.glob("logs/*/*.log"):
        segment.unlink(missing_ok=True)


def remove_behind_runs(lake: Lake) -> None:
    """Removes the folder that runs left for the next one, unless another process writes the lake: its run does."""
    if not fetch_folder(lake).exists():
        return
    try:
        with lock.hold(lake, 0):
            remove_fetched(lake, but_folders=False)
    except LakeLockedError:
        return
