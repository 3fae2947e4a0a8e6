"""Typed columns as the bytes of __share_group_state (share-group-state-log §2-3): the inverse of decoding."""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from state_model.columnar import buffers
from state_model.columnar.schemas import STATE_BATCH, UNKNOWN_TAG
from state_model.errors import EncodeError
from tools.log_writer import share_record_kernels as kernels

KEY_AND_VALUE = pa.schema([pa.field("key", pa.binary(), nullable=False), pa.field("value", pa.binary(), nullable=True)])
RECORD_TYPES = ("snapshot", "update", "tombstone")
INTS = ("snapshot_epoch", "state_epoch", "leader_epoch", "delivery_complete_count", "partition")
LONGS = ("start_offset", "create_timestamp_ms", "write_timestamp_ms")
SNAPSHOTS_ONLY = frozenset({"state_epoch", "create_timestamp_ms", "write_timestamp_ms"})
"""Columns that are null for an update."""
REASONS = {
    kernels.TAGS_OUT_OF_ORDER: "its unknown tags are not in the order of the batches that it has, its own last",
    kernels.TAG_TOO_LARGE: "the number of an unknown tag is not an unsigned integer of 32 bits",
}


def encode_share_records(records: pa.RecordBatch) -> pa.RecordBatch:
    """Key and value of each record, in the order of the rows; the value of a tombstone is null.

    Args:
        records: the columns of SHARE_RECORD that describe key and value; where the record came from is not needed. What
            Kafka's writer wrote comes back byte for byte after decoding; bytes behind a value that the broker ignores
            do not, because decoding only counts them.

    Raises:
        EncodeError: a row that no writer could write; the message names the row and what to change.
        OverflowError: more than 2 GiB of keys or values.
    """
    kinds = _kinds(records)
    scalars = kernels.Scalars(
        kinds=kinds, ints=_matrix(records, INTS, np.int32, kinds), longs=_matrix(records, LONGS, np.int64, kinds)
    )
    key = _encode_keys(records, scalars)
    value = _encode_values(records, scalars)
    return pa.RecordBatch.from_arrays([key, value], schema=KEY_AND_VALUE)


def _kinds(records: pa.RecordBatch) -> npt.NDArray[np.int8]:
    names = records.column("record_type")
    kinds: npt.NDArray[np.int8] = (
        pc.fill_null(pc.index_in(names, pa.array(RECORD_TYPES)), -1).to_numpy(zero_copy_only=False).astype(np.int8)
    )
    if (kinds < 0).any():
        row = int(np.flatnonzero(kinds < 0)[0])
        raise EncodeError(f"row {row}: {names[row].as_py()!r} is not snapshot, update or tombstone")
    if "value_version" in records.schema.names:
        versions = buffers.booleans(pc.fill_null(pc.not_equal(records.column("value_version"), 0), fill_value=False))
        if versions.any():
            raise EncodeError(f"row {int(np.flatnonzero(versions)[0])}: only value version 0 can be written")
    return kinds


def _matrix(
    records: pa.RecordBatch, names: tuple[str, ...], kind: type[np.signedinteger], kinds: npt.NDArray[np.int8]
) -> npt.NDArray[np.signedinteger]:
    """The named columns as rows of one matrix, 0 where a type has no such field."""
    matrix = np.zeros((len(names), records.num_rows), kind)
    for index, name in enumerate(names):
        array = records.column(name)
        needed = kinds == kernels.SNAPSHOT if name in SNAPSHOTS_ONLY else kinds != kernels.TOMBSTONE
        _check_there(array, needed | (name == "partition"), name)
        matrix[index] = pc.fill_null(array, 0).to_numpy(zero_copy_only=False) if array.null_count else array.to_numpy()
    return matrix


def _check_there(array: pa.Array, needed: buffers.Bools, name: str) -> None:
    if array.null_count:
        missing = needed & ~buffers.booleans(array.is_valid())
        if missing.any():
            raise EncodeError(
                f"row {int(np.flatnonzero(missing)[0])}: {name} is null, and its record type has the field"
            )


def _encode_keys(records: pa.RecordBatch, scalars: kernels.Scalars) -> pa.Array:
    for name in ("group_id", "topic_id"):
        _check_there(records.column(name), np.ones(records.num_rows, np.bool_), name)
    groups = buffers.binary_view(records.column("group_id"))
    topics = buffers.binary_view(records.column("topic_id"))
    sizes = np.empty(records.num_rows, np.int64)
    row = kernels.size_keys(groups.at, sizes)
    if row >= 0:
        raise EncodeError(f"row {row}: the group id is longer than {kernels.MAX_STRING_BYTES} bytes")
    ends = buffers.ends_of(sizes)
    out = np.empty(int(ends[-1]), np.uint8)
    row = kernels.write_keys(scalars.kinds, groups.data, groups.at, topics.data, topics.at, scalars.ints, ends, out)
    if row >= 0:
        raise EncodeError(f"row {row}: {records.column('topic_id')[row].as_py()!r} is no uuid of 22 characters")
    return buffers.texts(pa.binary(), ends, out)


def _encode_values(records: pa.RecordBatch, scalars: kernels.Scalars) -> pa.Array:
    batches = records.column("state_batches").cast(pa.list_(STATE_BATCH))
    has_value = scalars.kinds != kernels.TOMBSTONE
    _check_there(batches, has_value, "state_batches")
    tags = _tags(records)
    batch_at = _list_ends(batches)
    sizes = np.empty(records.num_rows, np.int64)
    row, reason = kernels.size_values(scalars, batch_at, tags, sizes)
    if row >= 0:
        raise EncodeError(f"row {row}: {REASONS[reason]}")
    ends = buffers.ends_of(sizes)
    out = np.empty(int(ends[-1]), np.uint8)
    columns = (_numbers(batches.values, name) for name in STATE_BATCH.names)
    kernels.write_values(scalars, kernels.Batches(batch_at, *columns), tags, ends, out)
    return buffers.texts(pa.binary(), ends, out, has_value)


def _tags(records: pa.RecordBatch) -> kernels.Tags:
    """The unknown tags of the records."""
    lists = records.column("unknown_tags").cast(pa.list_(UNKNOWN_TAG))
    data = buffers.binary_view(lists.values.field("data"))
    starts = data.at[:-1].astype(np.int64)
    batch = pc.fill_null(lists.values.field("batch_index"), kernels.OWN_TAGS).to_numpy(zero_copy_only=False)
    number = _numbers(lists.values, "tag")
    table = np.stack([batch.astype(np.int64), number.astype(np.int64), starts, data.at[1:] - starts])
    return kernels.Tags(at=_list_ends(lists), table=table, data=data.data)


def _list_ends(array: pa.ListArray) -> buffers.Int32s:
    """Boundaries of the rows of a list array in its values; a view."""
    if not len(array):
        return np.zeros(1, np.int32)
    return np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, array.offset * 4)


def _numbers(structs: pa.StructArray, name: str) -> npt.NDArray[np.signedinteger]:
    """A field of all structs, of which none may be null; pyarrow aligns it with the boundaries of their lists."""
    array = structs.field(name)
    if structs.null_count or array.null_count:
        raise EncodeError(f"a state batch or its {name} is null")
    values: npt.NDArray[np.signedinteger] = array.to_numpy()
    return values
