import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_model import share_records
from state_model.columnar.decode import (
    DECODE_PROBLEM,
    DETAILS,
    NOT_A_LOSS,
    REASONS,
    decode_share_records,
    key_mask,
    losses_of,
)
from state_model.columnar.schemas import SHARE_RECORD
from state_model.columnar.values import Loss
from state_model.errors import DecodeError
from state_model.share_records import ShareRecord, Tombstone, UnknownTypeRecord, UnknownVersionValue, share_partition_of
from tests.logs.log_rows import TOPIC_ID, log_rows, log_times
from tests.logs.share_values import RECORDS, described

TOPIC = "AAECAwQFBgcICQoLDA0ODw"
KEY_TAIL = "0002 6731 000102030405060708090a0b0c0d0e0f 00000007"
SNAPSHOT_KEY = bytes.fromhex("0000" + KEY_TAIL)
UPDATE_KEY = bytes.fromhex("0001" + KEY_TAIL)
UPDATE = bytes.fromhex(
    "0000 00000003 00000001 0000000000000064 02 0000000000000064 0000000000000068 02 0001 00 01000400000005"
)
UPDATE_HEAD = UPDATE[:18]


def decode(keys, values, control=None):
    rows = log_rows(keys, values, control=control)
    decoded = decode_share_records(rows, log_time_ms=log_times(rows) + 7)
    decoded.records.validate(full=True)
    decoded.problems.validate(full=True)
    assert decoded.records.schema.equals(SHARE_RECORD)
    assert decoded.problems.schema.equals(DECODE_PROBLEM)
    return decoded


def told_by_the_reference(key, value):
    """(row, None) or (None, reason)."""
    try:
        record = share_records.decode_record(key, value)
    except DecodeError as error:
        return None, error.reason
    if isinstance(record, UnknownTypeRecord):
        return described_other(record) if share_partition_of(record) else (None, "unknown_record_type")
    assert isinstance(record, ShareRecord)
    if isinstance(record.value, UnknownVersionValue):
        return None, "unknown_value_version"
    row = described(record)
    row["record_bytes"] = len(key) + len(value or b"")
    return row, None


def described_other(record):
    """The row of a record of unknown type: its key alone is decoded."""
    row = dict.fromkeys(described(ShareRecord(key=share_partition_of(record), value=Tombstone())))
    row |= share_partition_of(record)._asdict() | {"record_type": f"UNKNOWN({record.record_type})"}
    row |= {"unknown_tags": [], "trailing_bytes": 0, "record_bytes": len(record.key) + len(record.value or b"")}
    return row, None


@pytest.mark.parametrize("value", [None, b"", b"\0\1anything"])
def test_a_record_of_unknown_type_is_decoded_as_far_as_its_key(value):
    keys = [number.to_bytes(2, "big", signed=True) + UPDATE_KEY[2:] for number in (7, -3, 7)]
    decoded = decode([UPDATE_KEY, *keys], [UPDATE, value, value, value])
    assert decoded.problems.num_rows == 0
    rows = decoded.records.to_pylist()
    assert [row["record_type"] for row in rows] == ["update", "UNKNOWN(7)", "UNKNOWN(-3)", "UNKNOWN(7)"]
    assert {(row["group_id"], row["topic_id"], row["partition"]) for row in rows} == {("g1", TOPIC, 7)}
    for key, row in zip(keys, rows[1:], strict=True):
        expected, _ = told_by_the_reference(key, value)
        assert {name: row[name] for name in expected} == expected


@pytest.mark.parametrize("key", [b"\0\7", b"\0\7" + UPDATE_KEY[2:] + b"x", b"\0\7" + UPDATE_KEY[2:-1], b"\0\7later"])
def test_a_record_of_unknown_type_whose_key_has_another_form_may_concern_every_share_partition(key):
    decoded = decode([key], [UPDATE])
    assert told_by_the_reference(key, UPDATE) == (None, "unknown_record_type")
    assert losses_of(decoded.problems) == [Loss(first_offset=100, last_offset=100, reason="unknown_state")]


def test_the_byte_vectors_of_the_format_decode_to_their_fields():
    snapshot = bytes.fromhex(
        "0000 00000003 00000002 00000001 0000000000000064 0000018bcfe56800 0000018bcfe56801 03"
        "0000000000000064 0000000000000068 02 0001 00  0000000000000069 0000000000000069 00 0002 00  01 00 04 00000005"
    )
    decoded = decode([SNAPSHOT_KEY, UPDATE_KEY, SNAPSHOT_KEY], [snapshot, UPDATE, None])
    first, second, third = decoded.records.to_pylist()
    assert first == {
        "log_topic_id": TOPIC_ID,
        "state_partition": 3,
        "log_offset": 100,
        "timestamp_ms": 1000,
        "log_time_ms": 1007,
        "record_type": "snapshot",
        "group_id": "g1",
        "topic_id": TOPIC,
        "partition": 7,
        "value_version": 0,
        "snapshot_epoch": 3,
        "state_epoch": 2,
        "leader_epoch": 1,
        "start_offset": 100,
        "delivery_complete_count": 5,
        "create_timestamp_ms": 1_700_000_000_000,
        "write_timestamp_ms": 1_700_000_000_001,
        "state_batches": [
            {"first_offset": 100, "last_offset": 104, "delivery_state": 2, "delivery_count": 1},
            {"first_offset": 105, "last_offset": 105, "delivery_state": 0, "delivery_count": 2},
        ],
        "unknown_tags": [],
        "trailing_bytes": 0,
        "record_bytes": len(SNAPSHOT_KEY) + len(snapshot),
        "log_leader_epoch": 5,
        "below_log_start": False,
        "uncommitted": False,
    }
    assert second["record_type"] == "update"
    assert [second[name] for name in ("state_epoch", "create_timestamp_ms", "write_timestamp_ms")] == [None] * 3
    assert third["record_type"] == "tombstone"
    assert [third[name] for name in ("value_version", "start_offset", "state_batches")] == [None] * 3
    assert decoded.problems.num_rows == 0


@pytest.mark.slow
@given(st.lists(RECORDS, max_size=8))
def test_every_record_decodes_as_the_reference_reads_it(records):
    pairs = [share_records.encode_record(record) for record in records]
    decoded = decode([key for key, _ in pairs], [value for _, value in pairs])
    assert decoded.problems.num_rows == 0
    expected = [told_by_the_reference(*pair)[0] for pair in pairs]
    assert [
        {name: row[name] for name in want} for row, want in zip(decoded.records.to_pylist(), expected, strict=True)
    ] == expected


@st.composite
def damaged(draw):
    """Key and value of a record, cut, lengthened or with some bytes changed."""
    parts = []
    for part in share_records.encode_record(draw(RECORDS)):
        raw = bytearray(part or b"")
        for _ in range(draw(st.integers(0, 3))):
            if raw:
                raw[draw(st.integers(0, min(len(raw), 90) - 1))] = draw(st.sampled_from([0, 1, 2, 5, 0x7F, 0x80, 0xFF]))
        cut = draw(st.sampled_from([0, 0, 0, 1, 2, 7, 20]))
        raw = raw[: len(raw) - min(cut, len(raw))] + draw(st.sampled_from([b"", b"", b"\x00", b"trail"]))
        parts.append(draw(st.sampled_from([bytes(raw), bytes(raw), bytes(raw), None])))
    return tuple(parts)


@pytest.mark.slow
@given(st.lists(damaged(), min_size=1, max_size=12))
def test_damaged_bytes_are_taken_or_refused_as_by_the_reference(pairs):
    decoded = decode([key for key, _ in pairs], [value for _, value in pairs])
    expected = [told_by_the_reference(*pair) for pair in pairs]
    expected_rows = [row for row, _ in expected if row is not None]
    assert [
        {name: row[name] for name in expected_row}
        for row, expected_row in zip(decoded.records.to_pylist(), expected_rows, strict=True)
    ] == expected_rows
    refused = [(100 + place, reason) for place, (_, reason) in enumerate(expected) if reason is not None]
    problems = decoded.problems.to_pylist()
    assert [(row["log_offset"], row["reason"]) for row in problems] == refused
    assert [(row["key"], row["value"]) for row in problems] == [pairs[offset - 100] for offset, _ in refused]


@given(st.lists(st.tuples(st.binary(max_size=60), st.binary(max_size=120)), max_size=10))
def test_no_bytes_at_all_make_it_fail(pairs):
    keys = [bytes([0, len(key) % 2]) + key for key, _ in pairs] + [SNAPSHOT_KEY, UPDATE_KEY]
    values = [value for _, value in pairs] + [b"\x00\x00" + bytes(36) + b"\xff\xff\xff\xff\x0f", UPDATE_HEAD]
    decoded = decode(keys, values)
    assert decoded.records.num_rows + decoded.problems.num_rows == len(keys)


@pytest.mark.parametrize(
    ("key", "value", "reason", "group_id"),
    [
        pytest.param(None, UPDATE, "bad_key", None, id="no key"),
        pytest.param(UPDATE_KEY[:-1], UPDATE, "bad_key", None, id="a key that ends early"),
        pytest.param(b"\x00\x00\xff\xff" + bytes(20), UPDATE, "bad_key", None, id="a group id of negative length"),
        pytest.param(b"\x00\x00\x00\x02\xc3\x28" + bytes(20), UPDATE, "invalid_utf8", None, id="not UTF-8"),
        pytest.param(b"\x00\x02", None, "unknown_record_type", None, id="record type 2"),
        pytest.param(UPDATE_KEY, b"\x00\x01", "unknown_value_version", "g1", id="value version 1"),
        pytest.param(UPDATE_KEY, None, "update_without_value", "g1", id="an update without a value"),
        pytest.param(UPDATE_KEY, b"", "truncated_value", "g1", id="an empty value"),
        pytest.param(UPDATE_KEY, UPDATE[:30], "truncated_value", "g1", id="a value that ends in a batch"),
        pytest.param(UPDATE_KEY, UPDATE_HEAD + b"\x03" + UPDATE[19:], "truncated_value", "g1", id="one batch too many"),
        pytest.param(UPDATE_KEY, UPDATE_HEAD + b"\x00\x00", "invalid_length", "g1", id="a null list of batches"),
        pytest.param(UPDATE_KEY, UPDATE_HEAD + b"\x01\x01\x00\x02\x00\x05", "invalid_length", "g1", id="short count"),
        pytest.param(UPDATE_KEY, UPDATE_HEAD + b"\xff" * 6, "malformed_varint", "g1", id="a varint of six bytes"),
        pytest.param(UPDATE_KEY, UPDATE_HEAD + b"\x01\xff\xff\xff\xff\x0f", "truncated_value", "g1", id="2^32 tags"),
    ],
)  # fmt: skip
def test_what_cannot_be_decoded_says_why_and_whose_it_was(key, value, reason, group_id):
    decoded = decode([UPDATE_KEY, key, UPDATE_KEY], [UPDATE, value, UPDATE])
    assert decoded.records.column("log_offset").to_pylist() == [100, 102]
    (problem,) = decoded.problems.to_pylist()
    assert (problem["reason"], problem["group_id"], problem["log_offset"]) == (reason, group_id, 101)
    assert (problem["topic_id"], problem["partition"]) == ((TOPIC, 7) if group_id else (None, None))
    assert (problem["detail"], problem["is_loss"]) == (DETAILS[reason].format(1), reason not in NOT_A_LOSS)


def test_a_transaction_marker_is_set_aside_and_no_loss():
    decoded = decode([b"\x00\x00\x00\x01", UPDATE_KEY], [b"\x00" * 6, UPDATE], control=[True, False])
    assert decoded.records.num_rows == 1
    assert decoded.problems.select(["reason", "is_loss"]).to_pylist() == [
        {"reason": "control_record", "is_loss": False}
    ]


def test_a_claimed_count_allocates_nothing():
    value = UPDATE_HEAD + b"\xff\xff\xff\xff\x0f"
    before = pa.total_allocated_bytes()
    decoded = decode([UPDATE_KEY] * 50, [value] * 50)
    assert decoded.problems.num_rows == 50
    assert pa.total_allocated_bytes() - before < 1 << 20


def test_every_reason_has_a_detail():
    assert set(DETAILS) == set(REASONS[1:])


def test_slices_of_a_record_batch_decode_like_the_whole():
    values = [UPDATE_HEAD + bytes([1, 1, 9, 1, place]) for place in range(20)]
    rows = log_rows([UPDATE_KEY] * 20, values)
    all_records = decode_share_records(rows, log_time_ms=log_times(rows)).records
    for start, count in ((0, 0), (3, 5), (19, 1), (20, 0)):
        part = rows.slice(start, count)
        records = decode_share_records(part, log_time_ms=log_times(part)).records
        assert records.equals(all_records.slice(start, count))


def test_log_times_must_be_one_for_each_row():
    rows = log_rows([UPDATE_KEY], [UPDATE])
    with pytest.raises(ValueError, match="one for each row"):
        decode_share_records(rows, log_time_ms=np.zeros(2, np.int64))


SHARE_PARTITIONS = [
    (group, topic, partition) for group in ("g", "g1", "ü") for topic in (TOPIC, TOPIC_ID) for partition in (0, -1)
]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"group_id": "g1"},
        {"topic_id": TOPIC_ID},
        {"partition": -1},
        {"group_id": "ü", "topic_id": TOPIC, "partition": 0},
    ],
    ids=str,
)
def test_the_key_mask_keeps_matching_and_unreadable_keys(fields):
    keys = [
        share_records.encode_key(
            share_records.SharePartitionKey(group_id=group, topic_id=topic, partition=partition),
            share_records.RecordType.SHARE_UPDATE,
        )
        for group, topic, partition in SHARE_PARTITIONS
    ]
    rows = log_rows([*keys, None, b"\x00", b"\x00\x07later"], [UPDATE] * (len(keys) + 3))
    expected = [
        all(
            fields.get(name, value) == value
            for name, value in zip(("group_id", "topic_id", "partition"), key, strict=True)
        )
        for key in SHARE_PARTITIONS
    ]
    assert any(expected)
    assert key_mask(rows, **fields).to_pylist() == [*expected, True, True, True]
