"""Log directories of other clusters than that of the state log, by their meta.properties."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sharelens.kafka_log import reader
from sharelens.kafka_log.layout import LogDirectory, scan_log_directory
from sharelens.kafka_log.union import unite
from sharelens.tables.logs.directories import LogDirectories
from state_model.audit.columnar.proofs import LogRecord, Place, Proofs
from state_model.audit.columnar.topic_metadata import OTHER_CLUSTER
from state_model.audit.rule import Difference, Field
from state_model.topics import INTERNAL_TOPICS, METADATA_TOPIC


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherClusters:
    """The log directories of a command line that its evidence leaves out."""

    directories: Sequence[LogDirectory]

    @classmethod
    def beside(cls, evidence: LogDirectories) -> "OtherClusters":
        """Those that name another cluster than the evidence."""
        uris = evidence.source.log_dirs if len(evidence.source.log_dirs) > len(evidence.directories) else ()
        directories = [scan_log_directory(uri, include_deleted=evidence.source.include_deleted) for uri in uris]
        return cls(directories=[d for d in directories if d.cluster_id not in (None, evidence.cluster)])

    def prove(self, proofs: Proofs) -> None:
        """Adds a violation for each of their topics: the first record of its first partition."""
        topics = {log.topic: (log, time_ms) for log, time_ms in reversed(list(self._first_records()))}
        for log, time_ms in topics.values():
            proofs.add(OTHER_CLUSTER, Place(), Difference(Field.KNOWN, 1, 0), log, time_ms)

    def _first_records(self) -> Iterator[tuple[LogRecord, int]]:
        """The first record of each log that the audit would read, with its time."""
        for directory in self.directories:
            for partition in unite([directory]):
                end = reader.log_end(partition)
                if partition.topic in INTERNAL_TOPICS | {METADATA_TOPIC} and end.newest_ms is not None:
                    yield LogRecord(partition.topic, partition.partition, partition.log_start_offset), end.newest_ms
