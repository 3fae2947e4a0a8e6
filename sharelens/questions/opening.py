"""Opens the evidence that a command line names."""

from dataclasses import replace
from typing import TYPE_CHECKING

from sharelens.questions.evidence import Evidence
from sharelens.source.request import Source

if TYPE_CHECKING:
    from sharelens.questions.log_evidence import LogEvidence


def open_evidence(source: Source) -> Evidence:
    """The lake at its published cut, the log directories, or a cluster's logs; imports that source's modules only."""
    if source.lake is not None:
        from sharelens.questions.lake_evidence import open_lake_evidence

        return open_lake_evidence(source.lake, source.cluster_id, source.settings_files)
    return open_logs(source)


def open_logs(source: Source) -> "LogEvidence":
    """The log directories, or a cluster's logs."""
    from sharelens.questions.log_evidence import log_directories, open_log_evidence

    cluster = source.live
    if cluster is None:
        return open_log_evidence(source)
    from sharelens.questions.live_evidence import LiveEvidence

    source = in_directories(source)
    return LiveEvidence(source, log_directories(source), cluster)


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
