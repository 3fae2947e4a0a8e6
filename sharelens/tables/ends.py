"""The end of the evidence that a command line names, before a question is asked."""

from collections.abc import Iterable
from dataclasses import replace

from sharelens.source.request import Source


def evidence_end_ms(source: Source) -> int | None:
    """The moment up to which the evidence of a source reaches (epoch ms), by its newest record and by its files' times.

    Without a record of the state log or of the group coordinator's log those of the metadata log count. None: the
    evidence has no record, or goes on (a running cluster).
    """
    if source.live is not None:
        return None
    return _lake_end(source) if source.lake is not None else _logs_end(source)


def _lake_end(source: Source) -> int | None:
    from sharelens.tables.opening import open_evidence

    with open_evidence(source) as evidence:
        group_logs = evidence.group_log_covers().values()
        end_ms = _latest((*(part.last_ms for part in evidence.cover()), *(log.last_ms for log in group_logs)))
        history = evidence.metadata.history if end_ms is None else None
        if history is None:
            return _latest((end_ms, evidence.read_until_ms()))
        return _latest(row.begin.timestamp_ms for row in history.validities)


def _logs_end(source: Source) -> int | None:
    """By the last batches of the logs alone, however long they are."""
    from sharelens.kafka_log.reader import log_end
    from sharelens.tables.logs.directories import LogDirectories, log_directories
    from state_model.topics import METADATA_TOPIC, RECORD_TOPICS

    source = replace(source, needs_state_log=False, sets_clusters_apart=True)
    logs = LogDirectories(source, log_directories(source))

    def newest_of(*topics: str) -> int | None:
        return _latest(log_end(log).newest_ms for log in logs.united if log.topic in topics)

    end_ms = newest_of(*RECORD_TOPICS)
    return newest_of(METADATA_TOPIC) if end_ms is None else _latest((end_ms, logs.read_until_ms()))


def _latest(times: Iterable[int | None]) -> int | None:
    return max((time for time in times if time is not None), default=None)
