import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_model import share_records
from state_model.columnar.decode import decode_share_records
from state_model.columnar.schemas import SHARE_RECORD
from state_model.errors import EncodeError
from tests.logs.log_rows import log_rows, log_times
from tests.logs.share_values import RECORDS, described
from tools.log_writer.share_records import encode_share_records

TOPIC = "AAECAwQFBgcICQoLDA0ODw"
BATCH = {"first_offset": 1, "last_offset": 2, "delivery_state": 2, "delivery_count": 1}
ROW = {
    "record_type": "update",
    "group_id": "g1",
    "topic_id": TOPIC,
    "partition": 7,
    "value_version": 0,
    "snapshot_epoch": 3,
    "leader_epoch": 1,
    "start_offset": 100,
    "delivery_complete_count": 5,
    "state_batches": [BATCH],
    "unknown_tags": [],
}


def batch_of(rows):
    return pa.RecordBatch.from_pylist(rows, schema=pa.schema([field.with_nullable(True) for field in SHARE_RECORD]))


def pairs_of(encoded):
    encoded.validate(full=True)
    return list(zip(encoded.column("key").to_pylist(), encoded.column("value").to_pylist(), strict=True))


@pytest.mark.slow
@given(st.lists(RECORDS, max_size=8))
def test_rows_are_written_as_the_reference_writes_the_records(records):
    encoded = encode_share_records(batch_of([described(record) for record in records]))
    assert pairs_of(encoded) == [share_records.encode_record(record) for record in records]


@pytest.mark.soak
@pytest.mark.slow
@given(st.lists(RECORDS, max_size=8), st.integers(0, 8), st.integers(0, 8))
def test_decoding_and_encoding_any_slice_gives_the_same_bytes(records, start, count):
    pairs = [share_records.encode_record(record) for record in records]
    rows = log_rows([key for key, _ in pairs], [value for _, value in pairs])
    decoded = decode_share_records(rows, log_time_ms=log_times(rows)).records
    assert pairs_of(encode_share_records(decoded.slice(start, count))) == pairs[start : start + count]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"record_type": "note"}, "row 1: 'note' is not snapshot, update or tombstone"),
        ({"record_type": None}, "row 1: None is not snapshot"),
        ({"record_type": "snapshot"}, "row 1: state_epoch is null"),
        ({"leader_epoch": None}, "row 1: leader_epoch is null"),
        ({"partition": None}, "row 1: partition is null"),
        ({"group_id": None}, "row 1: group_id is null"),
        ({"group_id": "g" * 32768}, "row 1: the group id is longer than 32767 bytes"),
        ({"topic_id": "short"}, "row 1: 'short' is no uuid"),
        ({"topic_id": TOPIC[:-1] + "x"}, "no uuid of 22 characters"),
        ({"topic_id": TOPIC[:-1] + "/"}, "no uuid of 22 characters"),
        ({"value_version": 1}, "row 1: only value version 0"),
        ({"state_batches": None}, "row 1: state_batches is null"),
        ({"state_batches": [BATCH | {"first_offset": None}]}, "a state batch or its first_offset is null"),
        ({"unknown_tags": [{"batch_index": 1, "tag": 0, "data": b""}]}, "row 1: its unknown tags are not in the order"),
        (
            {"unknown_tags": [{"batch_index": -2, "tag": 0, "data": b""}]},
            "row 1: its unknown tags are not in the order",
        ),
        (
            {"unknown_tags": [{"batch_index": None, "tag": 3, "data": b""}, {"batch_index": 0, "tag": 3, "data": b""}]},
            "row 1: its unknown tags are not in the order",
        ),
        ({"unknown_tags": [{"batch_index": None, "tag": 1 << 32, "data": b""}]}, "row 1: the number of an unknown tag"),
    ],
    ids=str,
)
def test_rows_that_no_writer_could_write_are_refused_by_name(change, message):
    with pytest.raises(EncodeError, match=message):
        encode_share_records(batch_of([ROW, ROW | change]))


def test_a_count_of_minus_one_is_left_out_of_the_bytes():
    with_count, without = (
        value for _, value in pairs_of(encode_share_records(batch_of([ROW, ROW | {"delivery_complete_count": -1}])))
    )
    assert (len(with_count) - len(without), without[-1:]) == (6, b"\x00")
