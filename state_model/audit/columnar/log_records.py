"""Rules 1, 4 and 5: log records that no coordinator writes, or that can't be decoded."""

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from state_model.audit.columnar.auditor import RECORD_TYPES, Auditor
from state_model.audit.columnar.violations import NO_VIOLATIONS, of_log, violation_rows
from state_model.audit.placement import NOT_PLAIN
from state_model.audit.rule import DECODE_REASONS, Field
from state_model.columnar.decode import UNKNOWN_RECORD_TYPE
from state_model.columnar.keys import SHARE_PARTITION_KEY, Ints
from state_model.columnar.values import UNKNOWN_STATE, Loss

RULE_OF_REASON: Final = {
    "control_record": 40,
    UNKNOWN_RECORD_TYPE: 11,
    "unknown_value_version": 11,
    "update_without_value": 50,
}
"""Rules of records that can't be decoded, by reason; of any other reason UNDECODABLE."""
UNDECODABLE: Final = 10


def odd_batches(log_records: pa.RecordBatch, logs: Ints, offsets: Ints, times: Ints) -> pa.Table:
    """Rule 4, but for control records, which decoding names; `logs`, `offsets`, `times`: of the records."""
    attributes = log_records.column("attributes").to_numpy().astype(np.int64)
    producers = log_records.column("producer_id").to_numpy()
    headers = pc.list_value_length(log_records.column("headers")).to_numpy(zero_copy_only=False)
    headers = np.nan_to_num(headers.astype(np.float64)).astype(np.int64)
    is_control = log_records.column("is_control").to_numpy(zero_copy_only=False)
    transactional = (attributes & NOT_PLAIN) != 0
    produced = ~transactional & (producers != -1)
    headed = ~transactional & ~produced & (headers > 0)
    tables = [NO_VIOLATIONS]
    cases: tuple[tuple[npt.NDArray[np.bool_], Field, Ints, Ints], ...] = (
        (transactional, Field.BATCH_ATTRIBUTES, attributes & ~NOT_PLAIN, attributes),
        (produced, Field.PRODUCER_ID, np.full(len(offsets), -1), producers),
        (headed, Field.HEADERS, np.zeros(len(offsets), np.int64), headers),
    )
    for chosen, field, expected, actual in cases:
        rows = np.flatnonzero(chosen & ~is_control)
        if len(rows):
            tables.append(
                violation_rows(
                    rule=40,
                    share_partition=of_log(logs[rows]),
                    log_offset=offsets[rows],
                    log_time_ms=times[rows],
                    field=int(field),
                    expected=expected[rows],
                    seen=actual[rows],
                )
            )
    return pa.concat_tables(tables)


def undecodable(auditor: Auditor, problems: pa.Table, logs: Ints) -> pa.Table:
    """Rules 1, 4 and 5 for records that could not be decoded (DECODE_PROBLEM), or not beyond their key."""
    if problems.num_rows == 0:
        return NO_VIOLATIONS
    numbers = of_log(logs)
    keyed = np.flatnonzero(problems.column("group_id").is_valid().to_numpy())
    numbers[keyed] = auditor.numbers_of(problems.take(pa.array(keyed)), logs[keyed])
    reasons = problems.column("reason").to_pylist()
    return violation_rows(
        rule=np.array([RULE_OF_REASON.get(reason, UNDECODABLE) for reason in reasons], np.int64),
        share_partition=numbers,
        log_offset=problems.column("log_offset").to_numpy(),
        log_time_ms=problems.column("log_time_ms").to_numpy(),
        field=int(Field.DECODING),
        expected=0,
        seen=np.array([DECODE_REASONS.index(reason) for reason in reasons], np.int64),
    )


def of_known_type(records: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The records of known types, and those of unknown type with the column `reason`."""
    is_known = pc.is_in(records.column("record_type"), value_set=RECORD_TYPES)
    unknown_records = records.filter(pc.invert(is_known))
    reason = pa.repeat(UNKNOWN_RECORD_TYPE, unknown_records.num_rows)
    return (records.filter(is_known) if unknown_records.num_rows else records), unknown_records.append_column(
        "reason", reason
    )


def losses_of_unknown_type(of_unknown_type: pa.Table) -> list[Loss]:
    """Records of unknown type as losses: a later Kafka may change the state of their share partitions by them."""
    offsets = of_unknown_type.column("log_offset").to_pylist()
    keys = of_unknown_type.select(SHARE_PARTITION_KEY).to_pylist()
    return [
        Loss(first_offset=offset, last_offset=offset, reason=UNKNOWN_STATE, **key)
        for offset, key in zip(offsets, keys, strict=True)
    ]
