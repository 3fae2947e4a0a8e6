"""The end of the evidence that a command line names, before a question is asked."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sharelens.source.request import Source


@dataclass(frozen=True, slots=True)
class EvidenceEnd:
    """The end of the evidence (epoch ms); None: it has no record, or goes on (a running cluster).

    `newest_ms`: of its newest record. `until_ms`: up to when it is known that there is no other, by its files' times.
    """

    newest_ms: int | None = None
    until_ms: int | None = None


GOES_ON = EvidenceEnd()


def evidence_end(source: Source) -> EvidenceEnd:
    """The end of the evidence of a source.

    Without a record of the state log or of the group coordinator's log those of the metadata log count.
    """
    if source.live is not None:
        return GOES_ON
    return _lake_end(source) if source.lake is not None else _logs_end(source)


def _lake_end(source: Source) -> EvidenceEnd:
    from sharelens.tables.opening import open_evidence

    with open_evidence(source) as evidence:
        group_logs = evidence.group_log_covers().values()
        end_ms = _latest((*(part.last_ms for part in evidence.cover()), *(log.last_ms for log in group_logs)))
        history = evidence.metadata.history if end_ms is None else None
        if history is None:
            return EvidenceEnd(end_ms, _latest((end_ms, evidence.read_until_ms())))
        newest_ms = _latest(row.begin.timestamp_ms for row in history.validities)
        return EvidenceEnd(newest_ms, newest_ms)


def _logs_end(source: Source) -> EvidenceEnd:
    """By the last batches of the logs alone, however long they are."""
    from sharelens.kafka_log.reader import log_end
    from sharelens.tables.logs.directories import LogDirectories, log_directories
    from state_model.topics import METADATA_TOPIC, RECORD_TOPICS

    source = replace(source, needs_state_log=False, sets_clusters_apart=True)
    logs = LogDirectories(source, log_directories(source))

    def newest_of(*topics: str) -> int | None:
        return _latest(log_end(log).newest_ms for log in logs.united if log.topic in topics)

    end_ms = newest_of(*RECORD_TOPICS)
    if end_ms is not None:
        return EvidenceEnd(end_ms, _latest((end_ms, logs.read_until_ms())))
    newest_ms = newest_of(METADATA_TOPIC)
    return EvidenceEnd(newest_ms, newest_ms)


def _latest(times: Iterable[int | None]) -> int | None:
    return max((time for time in times if time is not None), default=None)
