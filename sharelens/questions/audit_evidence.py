"""What log directories have for the rules that need more than the state log."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evidence.group_decoding import decode_groups
from evidence.reading import read_whole
from evidence.schemas import GROUP_RECORD, ODD_GROUP_RECORD
from kafka_log.union import LogPartition, unite
from sharelens.questions.log_evidence import LogEvidence, size_text
from sharelens.questions.state_log import StateLog, size_bytes
from state_model.audit.columnar.continuation import KEYS
from state_model.audit.columnar.cross_checks import StateLogs, cross_check
from state_model.audit.columnar.group_audit import Groups, audit_groups
from state_model.audit.columnar.lives import TURN, Turns, lives_of
from state_model.audit.columnar.partition import PartitionAudit
from state_model.audit.columnar.places import DECIDING, count_of_keys
from state_model.audit.columnar.proofs import Proofs
from state_model.audit.periods import BEGINNING
from state_model.audit.rule import Need
from state_model.share_records import SharePartitionKey
from state_model.topics import INTERNAL_TOPICS, OFFSETS_TOPIC
from state_model.uuids import ZERO_UUID

GIVEN_BY_LOGS = frozenset({Need.GROUP_COORDINATOR})
"""The needs of rules that logs beside the state log can meet."""


@dataclass(slots=True, kw_only=True)
class AuditedLog:
    """A state log after its audit, with the turns of its share partitions."""

    log: StateLog
    audit: PartitionAudit
    turns: Turns = field(default_factory=Turns)


class OtherLogs:
    """The logs of log directories besides the state log, as far as the audit reads them."""

    def __init__(self, evidence: LogEvidence) -> None:
        self._evidence = evidence
        self.warnings: list[str] = []

    @cached_property
    def available(self) -> frozenset[Need]:
        """The needs of rules that the directories meet."""
        return frozenset({Need.GROUP_COORDINATOR}) if self._group_partitions else frozenset()

    def prove(self, audited: Sequence[AuditedLog], between_ms: tuple[int | None, int | None]) -> Proofs:
        """The violations of rules that need other logs."""
        proofs = Proofs(between_ms)
        if self._group_partitions:
            groups = self._groups(proofs)
            cross_check(self._state_logs(audited), groups, proofs, topic_exists=self._topic_exists)
        return proofs

    @cached_property
    def _group_partitions(self) -> list[LogPartition]:
        partitions = [part for part in unite(self._evidence.directories) if part.topic == OFFSETS_TOPIC]
        size = sum(size_bytes(partition) for partition in partitions)
        if size > self._evidence.source.max_bytes:
            self.warnings.append(
                f"{size_text(size)} of {OFFSETS_TOPIC} were not read, --max-bytes allows "
                f"{size_text(self._evidence.source.max_bytes)}; raise it to test the rules on groups"
            )
            return []
        return partitions

    def _groups(self, proofs: Proofs) -> Groups:
        records, odd_records = [GROUP_RECORD.empty_table()], [ODD_GROUP_RECORD.empty_table()]
        for partition in self._group_partitions:
            for chunk in read_whole(partition, include_uncommitted=False):
                decoded = decode_groups(pa.Table.from_batches([chunk.records]))
                records.append(decoded.records)
                odd_records.append(decoded.odd_records)
        numbers = frozenset(partition.partition for partition in self._group_partitions)
        return audit_groups(pa.concat_tables(records), pa.concat_tables(odd_records), numbers, proofs)

    def _state_logs(self, audited: Sequence[AuditedLog]) -> StateLogs:
        auditors = [logged.audit.auditor for logged in audited]
        keys = pa.concat_tables([KEYS.empty_table(), *(auditor.keys for auditor in auditors)])
        owner = np.repeat([logged.log.number for logged in audited], [auditor.keys.num_rows for auditor in auditors])
        columns = (keys.column(name).to_pylist() for name in keys.column_names)
        known = {logged.log.number: _known_from_ms(logged) for logged in audited}
        return StateLogs(
            lives=lives_of(pa.concat_tables([TURN.empty_table(), *(logged.turns.table() for logged in audited)])),
            with_records=frozenset(SharePartitionKey(*key) for key in zip(*columns, strict=True)),
            known_from_ms={number: from_ms for number, from_ms in known.items() if from_ms is not None},
            until_ms=max((_until_ms(logged) for logged in audited), default=BEGINNING),
            count=count_of_keys(keys.slice(0, DECIDING), owner[:DECIDING]),
        )

    def _topic_exists(self, topic_id: str) -> bool | None:
        return True if topic_id in self._topic_ids else None

    @cached_property
    def _topic_ids(self) -> frozenset[str]:
        """The user topics that have a folder."""
        partitions = (part for directory in self._evidence.directories for part in directory.partitions)
        return frozenset(
            part.topic_id
            for part in partitions
            if part.topic not in INTERNAL_TOPICS and part.topic_id != ZERO_UUID and part.status == "live"
        )


def _known_from_ms(audited: AuditedLog) -> int | None:
    """From when on the log shows which share partitions live; None: records are missing."""
    log = audited.log
    if not audited.audit.auditor.is_without_losses:
        return None
    if log.first_offset == 0 and log.log_start_offset == 0:
        return BEGINNING
    return None if log.reading is None else log.reading.first_ms


def _until_ms(audited: AuditedLog) -> int:
    return int(pc.max(pa.array(audited.audit.auditor.last_ms)).as_py() or BEGINNING)
