"""The rules on classic groups on raw rows of `__consumer_offsets`: tables have no records of them."""

import pyarrow as pa
import pyarrow.compute as pc

from state_model.audit.classic.group import GROUP_METADATA, ClassicGroup, read_group
from state_model.audit.classic.rules import CHECKS
from state_model.audit.columnar.proofs import LogRecord, Place, Proofs
from state_model.errors import DecodeError
from state_model.group_records import GroupRecord, decode_record
from state_model.topics import OFFSETS_TOPIC

KEY_PREFIX = GROUP_METADATA.to_bytes(2, "big")


class ClassicGroupAudit:
    """The classic groups of one partition of `__consumer_offsets` after the rows so far."""

    def __init__(self, proofs: Proofs) -> None:
        self._proofs = proofs
        self._groups: dict[str, tuple[ClassicGroup, LogRecord]] = {}

    def take(self, rows: pa.Table) -> None:
        """Tests the rules on the next LOG_RECORD rows; what can't be decoded says nothing, and ends what was known."""
        keys = rows.column("key")
        is_of_group = pc.and_(pc.equal(pc.binary_slice(keys, 0, 2), KEY_PREFIX), pc.is_valid(keys))
        columns = ["partition", "offset", "timestamp_ms", "key", "value"]
        for row in rows.filter(is_of_group).select(columns).to_pylist():
            try:
                record = decode_record(row["key"], row["value"])
                group = None if row["value"] is None else read_group(row["value"])
            except DecodeError:
                continue
            if isinstance(record, GroupRecord):
                self._test(record.group_id, group, LogRecord(OFFSETS_TOPIC, row["partition"], row["offset"]), row)

    def _test(self, group_id: str, group: ClassicGroup | None, record: LogRecord, row: dict[str, int]) -> None:
        before = self._groups.pop(group_id, None)
        if group is None:
            return
        for rule, check in CHECKS.items():
            violation = check(None if before is None else before[0], group)
            if violation is not None:
                proof = [] if before is None else [before[1]]
                self._proofs.add(rule, Place(group_id), violation.difference, record, row["timestamp_ms"], proof)
        self._groups[group_id] = group, record
