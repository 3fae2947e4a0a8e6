"""What a run refuses before it writes: lakes that can't be one, directories that can't be read together."""

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from jobs.errors import JobError
from jobs.fetched import FETCHED
from jobs.ingest import plan
from jobs.ingest.sources import Sources
from jobs.options import RunOptions
from sharelens.evidence.state_topics import check_one_cluster, state_topic_id, state_topics
from sharelens.kafka_log import archives, filesystem
from sharelens.lake import scan

if TYPE_CHECKING:
    from sharelens.evidence.metadata_events import MetadataHistory

MOST_METADATA_BYTES = 2 << 30
"""A larger metadata log decides nothing here."""
OWN_NAMES = (".lock", ".lease", FETCHED, "bronze", "silver", "gold")
OLD_PROBE = ".lease.probe-"
"""The beginning of names of objects with which earlier versions tested a store; killed, they left them behind."""


def check_lake(options: RunOptions) -> None:
    """Refuses a lake that can't be one, before anything is written.

    Raises:
        JobError: the lake lies inside a log directory or the other way round, or is a folder with other things in it.
        LakeError: no lake there, and no log directory to make one of.
    """
    lake = options.lake
    _check_apart(options)
    try:
        names = lake.storage.names()
    except NotADirectoryError:
        raise JobError(f"{options.lake} is a file; give a folder for the lake") from None
    if scan.UPGRADE in names:
        scan.ensure_lake(lake)
    if names and not lake.is_lake():
        strange = [name for name in names if name not in OWN_NAMES and not name.startswith(OLD_PROBE)]
        if strange:
            raise JobError(
                f"{options.lake} holds other things ({sorted(strange)[0]}) and no lake; give an empty or new folder"
            )
    if not options.log_dirs and options.fetch is None:
        scan.ensure_lake(options.lake)  # without a source there are no records for a new lake


def check_sources(options: RunOptions) -> None:
    """Refuses directories that can't be read, or not together, before a lake is made for them.

    Raises:
        SharelensError: as `plan.scan_directories`, `unite`, `plan.cluster_of` and `check_one_cluster` say.
    """
    sources = Sources(plan.scan_directories(options.log_dirs, include_deleted=options.include_deleted))
    plan.cluster_of(sources.directories, options.cluster_id, ())
    topics = state_topics(sources.partitions)
    if len(topics) > 1:
        check_one_cluster(topics, state_topic_id(_metadata(sources)))


def _metadata(sources: Sources) -> "MetadataHistory | None":
    from sharelens.evidence.metadata_reading import TooLargeError, read_metadata  # few runs have two state topics

    try:
        return read_metadata(sources.directories, max_bytes=MOST_METADATA_BYTES)
    except TooLargeError:
        return None


def _check_apart(options: RunOptions) -> None:
    """Refuses a lake in a log directory, or the other way round, on a disk or in a store."""
    is_local = options.lake.storage.is_local
    lake = PurePosixPath(options.lake.storage.address)
    for uri in options.log_dirs:
        if archives.is_inside(uri) or filesystem.is_local(uri) is not is_local:
            continue
        directory = PurePosixPath(filesystem.absolute(uri))
        if lake == directory or directory in lake.parents or lake in directory.parents:
            raise JobError(f"lake {options.lake} and log directory {uri} lie inside each other; put the lake elsewhere")
