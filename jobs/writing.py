"""Writing to a lake: under its lock, its version checked, its logs whole again after a power cut."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from jobs import books, publish
from sharelens.lake import durability, lock
from sharelens.lake.lake import Lake
from sharelens.lake.lease import Lease
from sharelens.lake.other_writers import check_writers
from sharelens.lake.scan import UNLISTED
from sharelens.lake.tables import SILVER_METADATA_RECORD, TABLES
from sharelens.measures.catalog import STAGED

CHECKED = (books.EXTENT, "gold.share_partition_state", publish.PUBLICATION)
"""Tables whose schema version is that of the lake."""
LAYERS = ("bronze", "silver", "gold")
WRITTEN_BY = {
    "ingest": ("bronze.log_record", "bronze.quarantine"),
    "topics": ("bronze.topic_batch", "bronze.quarantine"),
    "decode": tuple(name for name in TABLES if name.startswith("silver.") and name != SILVER_METADATA_RECORD),
    "replay": ("gold.share_partition_history", "gold.delivery_history"),
    "groups": ("gold.member_history", "gold.task_history", "gold.share_initialization_history"),
    "measure": tuple(measure.table for measure in STAGED.values()),
}
"""Tables that a stage commits to in every run before it is marked as done (`jobs.books.MARKER`)."""


def is_written(lake: Lake, stage: str, run: int) -> bool:
    """Whether all tables of a stage have its rows of a run."""
    return all(books.is_committed(lake, table, stage, run) for table in (*WRITTEN_BY[stage], books.MARKER[stage]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """The writer of a lake. `set_aside`: one line for each torn file of a log that was renamed."""

    lock: lock.LakeLock | Lease
    set_aside: tuple[str, ...]


@contextmanager
def writing(lake: Lake, timeout_s: float) -> Iterator[Writer]:
    """Holds a lake for writing; files are readable for their owner only.

    Raises:
        LakeLockedError: somebody else writes.
        LakeVersionError: another version wrote the lake.
        LakeError: a log is damaged where a publication needs it, another program has changed a table, or a store's
            listings are stale.
    """
    os.umask(0o077)
    lake.storage.make()
    with lock.hold(lake, timeout_s) as lock_of_lake:
        set_aside: list[str] = []
        if lock_of_lake.changed_hands:
            lake.forget()  # an upkeep elsewhere may have cut the logs that the handles read
            if isinstance(lock_of_lake, Lease):
                lake.least_versions[publish.PUBLICATION] = lock_of_lake.least_published
            set_aside = _recovered(lake)
        _check_writers(lake)
        yield Writer(lock=lock_of_lake, set_aside=tuple(set_aside))
        if isinstance(lock_of_lake, Lease):
            lock_of_lake.published = lake.version(publish.PUBLICATION)


def _check_writers(lake: Lake) -> None:
    """Refuses a lake with a table that another program has changed since the newest publication."""
    published = publish.published_versions(lake)
    for name in TABLES.keys() & published:
        check_writers(lake, name, published[name])


def _rests_on_torn(lake: Lake, torn: Iterable[str]) -> str | None:
    """The first layer with a table that lost a commit of a stage that is marked as done; None for none.

    A power cut leaves no such table, as a mark comes after what it stands for: other damage does.
    """
    lost = [
        table
        for table in torn
        if any(
            table in tables and books.done(lake, stage) > (lake.transaction(table, stage) or 0)
            for stage, tables in WRITTEN_BY.items()
        )
    ]
    return min((table.partition(".")[0] for table in lost), key=LAYERS.index, default=None)


def _recovered(lake: Lake) -> list[str]:
    """Sets torn commits aside, and notes which commits of earlier runs the disk may not have yet."""
    lines = durability.set_aside_torn(lake, publish.PUBLICATION, -1)
    published = publish.published_versions(lake)
    lake.least_versions.update(published)
    torn = []
    for name in TABLES:
        if name != publish.PUBLICATION:
            torn_lines = durability.set_aside_torn(lake, name, published.get(name, -1))
            torn += [name] if torn_lines else []
            lines += torn_lines
    layer = _rests_on_torn(lake, torn)
    if layer is not None:
        later = LAYERS[LAYERS.index(layer) :]
        for name in TABLES:
            if name.partition(".")[0] in later and name not in UNLISTED:
                lines += durability.set_aside_unpublished(lake, name, published.get(name, -1))
        lake.forget()
    for name in CHECKED:
        if lake.exists(name):
            lake.snapshot(name)
    for name in TABLES if lake.storage.is_local else ():
        since = published.get(name, -1) + 1
        if name not in UNLISTED and lake.version(name) >= since:
            lake.unsynced[name] = since
    return lines
