"""Control records of the early design (KIP-932's draft) in the logs of user topics, as rows."""

import pyarrow as pa
import pyarrow.compute as pc

from state_model.columnar.schemas import column
from state_model.early_draft.records import control_type_of, decode
from state_model.errors import DecodeError

DRAFT_STATE = pa.struct(
    [
        pa.field("base_offset", pa.int64()),
        pa.field("last_offset", pa.int64()),
        pa.field("state", pa.int8()),
        pa.field("delivery_count", pa.int16()),
    ]
)
EARLY_DRAFT_RECORD = pa.schema(
    [
        column("topic", pa.string(), "user topic", nullable=False),
        column("topic_id", pa.string(), "its id, 22 characters; zero uuid when unknown", nullable=False),
        column("partition", pa.int32(), "its partition, which holds the record", nullable=False),
        column("log_offset", pa.int64(), "offset of the record there", nullable=False),
        column("timestamp_ms", pa.int64(), "timestamp of the record", nullable=False),
        column("type", pa.string(), "SHARE_CHECKPOINT or SHARE_DELTA", nullable=False),
        column("group_id", pa.string(), "share group; null where the record can't be decoded"),
        column("checkpoint_epoch", pa.int32(), "as logged"),
        column("start_offset", pa.int64(), "SPSO as logged; checkpoints only"),
        column("end_offset", pa.int64(), "SPEO as logged (exclusive); checkpoints only"),
        column("back_offset", pa.int64(), "offset of the group's control record before it; deltas only"),
        column("states", pa.list_(DRAFT_STATE), "states exactly as logged"),
        column("record_bytes", pa.int64(), "bytes of key and value", nullable=False),
        column("error", pa.string(), "why the record can't be decoded; null = decoded"),
    ]
)


def early_draft_records(rows: pa.Table) -> pa.Table:
    """EARLY_DRAFT_RECORD rows of LOG_RECORD rows, in their order; other records are left out.

    A control record of one of its two types that can't be decoded is a row with `error`.
    """
    names = ["topic", "topic_id", "partition", "offset", "timestamp_ms", "key", "value"]
    controls = rows.filter(pc.equal(rows.column("is_control"), True)).select(names).to_pylist()
    decoded = [_row(control) for control in controls]
    return pa.Table.from_pylist([row for row in decoded if row is not None], schema=EARLY_DRAFT_RECORD)


def _row(control: dict[str, object]) -> dict[str, object] | None:
    key, value = control.pop("key"), control.pop("value")
    assert isinstance(key, bytes | None)
    assert isinstance(value, bytes | None)
    row = {**control, "log_offset": control["offset"], "record_bytes": len(key or b"") + len(value or b"")}
    try:
        record = decode(key, value)
    except DecodeError as error:
        return {**row, "type": _type_of(key), "error": str(error)}
    if record is None:
        return None
    fields = record._asdict()
    fields["states"] = [dict(zip(DRAFT_STATE.names, batch[:4], strict=True)) for batch in record.states]
    return {**row, **fields, "type": _type_of(key)}


def _type_of(key: bytes | None) -> str:
    """The name of a control record's type, as far as its key can be read."""
    try:
        control_type = control_type_of(key)
    except DecodeError:
        control_type = None
    return "UNKNOWN" if control_type is None else control_type.name
