"""The findings of log directories: their state log is audited in this process, from its beginning."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.auditing import audited_batches
from sharelens.evidence.conditions import filter_rows
from sharelens.evidence.reading import Reading
from sharelens.measures.settings.over_time import DELIVERY_COUNT_LIMIT, largest
from sharelens.output.wording import counted
from sharelens.tables.limits import WORKERS, size_text, too_much
from sharelens.tables.logs.between_logs import AuditedLog, BesideAudit, OtherLogs
from sharelens.tables.logs.directories import LogDirectories
from sharelens.tables.logs.other_clusters import OtherClusters
from sharelens.tables.logs.state import StateLog
from sharelens.tables.where import Span
from state_model.audit.columnar.explained import INVOLVED, of_rules, with_causes
from state_model.audit.columnar.findings import finding_counts, findings, misplacements, ordered
from state_model.audit.columnar.partition import PartitionAudit
from state_model.audit.columnar.proofs import Proofs
from state_model.audit.columnar.topic_metadata import OTHER_CLUSTER
from state_model.audit.columnar.user_topics import newest_states
from state_model.audit.rule import Need, Rule
from state_model.audit.table import BY_CODE
from state_model.errors import SharelensError
from state_model.threads import map_in_threads, threads_for
from state_model.topics import OFFSETS_TOPIC, STATE_TOPIC

PRUNED_SNAPSHOTS = "needed_snapshot_pruned"


class LogAudit:
    """The findings of log directories; of violations between two log times alone, if a span says so."""

    def __init__(self, evidence: LogDirectories, span: Span) -> None:
        self._evidence = evidence
        self._between_ms = (span.from_ms, span.to_ms)
        self._other_logs = OtherLogs(evidence, self._between_ms)
        self._other_clusters = OtherClusters.beside(evidence)
        if not evidence.logs and not self._other_logs.has_groups:
            raise SharelensError(
                f"no partition of {STATE_TOPIC} or {OFFSETS_TOPIC} in {', '.join(evidence.source.log_dirs)}; "
                f"copy the brokers' {STATE_TOPIC}-N folders too"
            )

    @property
    def has_state_log(self) -> bool:
        """Whether there is a state log."""
        return bool(self._evidence.logs)

    @property
    def available(self) -> frozenset[Need]:
        """The needs that the logs beside the state log meet."""
        return self._other_logs.available

    @property
    def proven(self) -> Set[int]:
        """The rule that logs of other clusters violate, if there are any."""
        return frozenset({OTHER_CLUSTER} if self._other_clusters.directories else ())

    def counts(self, severities: Mapping[int, str], condition: pc.Expression | None) -> Counter[str]:
        """The number of findings by severity, without a row for each."""
        audits, proofs = self._judged
        choose = None if condition is None else lambda rows: filter_rows(rows, condition)
        counts = finding_counts(audits, severities, choose)
        counts.update(filter_rows(proofs.findings(severities), condition).column("severity").to_pylist())
        return counts

    def rows(self, severities: Mapping[int, str], listed: Set[int]) -> pa.Table:
        """FINDING rows of the rules `listed`, the worst first."""
        audits, proofs = self._judged
        read = listed | INVOLVED  # a cause may be a finding without a row
        return of_rules(
            with_causes(ordered(findings(audits, severities, read), proofs.findings(severities, read))), listed
        )

    def warnings(self, rules: Sequence[Rule]) -> Sequence[str]:
        """Logs without their newest records, and logs that were not read."""
        return [*_warnings(self._evidence, rules), *self._other_logs.warnings]

    @cached_property
    def _judged(self) -> tuple[list[PartitionAudit], Proofs]:
        """The audits of all state partitions, and the violations of rules that need other logs."""
        audited = _audited(self._evidence, self._other_logs, self._between_ms)
        audits = [logged.audit for logged in audited]
        misplacements(audits, self._between_ms)
        proofs = self._other_logs.prove(audited)
        self._other_clusters.prove(proofs)
        return audits, proofs


def _audited(
    evidence: LogDirectories, other_logs: OtherLogs, between_ms: tuple[int | None, int | None]
) -> list[AuditedLog]:
    """The audits of all state partitions, large ones two at a time: the kernels run without the interpreter's lock."""
    size = sum(log.size_bytes for log in evidence.logs)
    max_bytes = evidence.source.max_bytes
    if size > max_bytes:
        raise too_much(
            f"{size_text(size)} of state log would have to be read, --max-bytes allows {size_text(max_bytes)}"
        )
    limits = largest(evidence.settings.groups, DELIVERY_COUNT_LIMIT)
    audits = [
        PartitionAudit(
            log.number,
            first_offset=log.first_offset,
            log_start_offset=log.log_start_offset,
            has_newest=_has_newest(log),
            limit_of_group=limits,
            between_ms=between_ms,
        )
        for log in evidence.logs
    ]
    beside = [other_logs.beside(audit) for audit in audits]
    inputs = zip(evidence.logs, audits, beside, strict=True)
    return map_in_threads(lambda of_log: _audit_log(*of_log), inputs, threads_for(size, WORKERS))


def _audit_log(log: StateLog, audited: PartitionAudit, beside: BesideAudit) -> AuditedLog:
    """Reads a state log once, chunk after chunk; leaves its reading there, as every other question does."""
    reading = Reading(log.partition, log.end_offset)
    for chunk in log.read_raw():
        times = reading.take(chunk.records, chunk.problems)
        for decoded in audited_batches(audited, pa.Table.from_batches([chunk.records]), times):
            reading.take_undecodable(decoded.problems)
            beside.take(decoded.records)
    reading.close()
    log.reading = reading
    audited.close()
    beside.topics.close(newest_states(audited.auditor, audited.state_partitions))
    return AuditedLog(log=log, audit=audited, beside=beside)


def _has_newest(log: StateLog) -> bool:
    """Whether the log is there up to an end that the checkpoints of the copy do not lie beyond, all of it committed."""
    end = log.log_end.end_offset
    committed_end = log.partition.committed_end
    return (
        log.end_offset == end and log.log_end.unreadable_bytes == 0 and (committed_end is None or committed_end <= end)
    )


def _warnings(evidence: LogDirectories, rules: Sequence[Rule]) -> Iterator[str]:
    if BY_CODE[PRUNED_SNAPSHOTS] not in rules:
        return
    ends = [log.number for log in evidence.logs if log.log_start_offset > 0 and not _has_newest(log)]
    if ends:
        yield (
            f"rule {PRUNED_SNAPSHOTS} was not tested in {counted(len(ends), 'state partition')}: the copy lacks their "
            "newest committed records; copy them again, the *-checkpoint files first"
        )
