"""Opens the evidence that a command line names."""

from dataclasses import replace
from typing import TYPE_CHECKING

from sharelens.settings.files import SettingsFiles
from sharelens.source.request import Source
from sharelens.tables.port import Tables

if TYPE_CHECKING:
    from sharelens.lake.scan import Cut


def open_evidence(source: Source) -> Tables:
    """The lake at its published cut, the log directories, or a cluster's logs; imports that source's modules only."""
    if source.lake is not None:
        from sharelens.lake.scan import open_lake

        return open_cut(open_lake(source.lake), source.cluster_id, source.settings_files)
    return open_logs(source)


def open_logs(source: Source) -> Tables:
    """The log directories, or a cluster's logs."""
    from sharelens.tables.logs.directories import log_directories
    from sharelens.tables.logs.tables import open_log_tables

    cluster = source.live
    if cluster is None:
        return open_log_tables(source)
    from sharelens.tables.logs.cluster import ClusterTables

    source = in_directories(source)
    return ClusterTables(source, log_directories(source), cluster)


def open_cut(lake: "Cut", cluster_id: str | None, settings_files: SettingsFiles | None = None) -> Tables:
    """One cluster of a lake at a published cut that is open; `settings_files`: those of the command line.

    Raises:
        UsageError: an unknown cluster, or none is named and the lake has several.
    """
    from sharelens.settings.files import NO_SETTINGS_FILES
    from sharelens.tables.lakes.tables import LakeTables

    return LakeTables(lake, cluster_id, settings_files or NO_SETTINGS_FILES)


def in_directories(source: Source) -> Source:
    """The source with log directories: those of the command line, or with what the cluster's logs hold now."""
    if source.live is None:
        return source
    logs = source.live.refresh(
        source.cluster_id,
        source.settings_files,
        needs_state_log=source.needs_state_log,
        takes_group_log=source.takes_group_log,
    )
    return replace(
        source,
        log_dirs=(str(logs.folder),),
        topic_names=source.topic_names or logs.settings_files.topics,
        settings_files=logs.settings_files,
        needs_state_log=source.needs_state_log and logs.has_state_log,
    )
