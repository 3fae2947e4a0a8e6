import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_model.codec.primitives import UnknownTag
from state_model.errors import (
    BufferUnderflowError,
    DecodeError,
    EncodeError,
    InvalidKeyError,
    InvalidTextError,
    MissingValueError,
)
from state_model.share_records import (
    DeliveryState,
    RecordType,
    SharePartitionKey,
    ShareRecord,
    ShareSnapshot,
    ShareUpdate,
    StateBatch,
    Tombstone,
    UnknownTypeRecord,
    UnknownVersionValue,
    decode_record,
    delivery_state_name,
    encode_record,
)

G1 = SharePartitionKey(group_id="g1", topic_id="AAECAwQFBgcICQoLDA0ODw", partition=7)
FIRST_MS = 0x18BCFE56800
REST_OF_KEY = "0002 6731 000102030405060708090a0b0c0d0e0f 00000007"
ACKNOWLEDGED = StateBatch(first_offset=100, last_offset=104, delivery_state=2, delivery_count=1)
AVAILABLE = StateBatch(first_offset=105, last_offset=105, delivery_state=0, delivery_count=2)

# The bytes are those of the 4.3.1 serde (share-group-state-log §3).
VECTORS = {
    "snapshot": (
        "0000" + REST_OF_KEY,
        """0000 00000003 00000002 00000001 0000000000000064 0000018bcfe56800 0000018bcfe56801 03
        0000000000000064 0000000000000068 02 0001 00  0000000000000069 0000000000000069 00 0002 00
        01 00 04 00000005""",
        ShareSnapshot(
            snapshot_epoch=3,
            state_epoch=2,
            leader_epoch=1,
            start_offset=100,
            create_timestamp_ms=FIRST_MS,
            write_timestamp_ms=FIRST_MS + 1,
            state_batches=(ACKNOWLEDGED, AVAILABLE),
            delivery_complete_count=5,
        ),
    ),
    "initial snapshot": (
        "0000" + REST_OF_KEY,
        "0000 00000000 00000001 00000000 ffffffffffffffff 0000018bcfe56800 0000018bcfe56800 01 00",
        ShareSnapshot(
            snapshot_epoch=0,
            state_epoch=1,
            leader_epoch=0,
            start_offset=-1,
            create_timestamp_ms=FIRST_MS,
            write_timestamp_ms=FIRST_MS,
            state_batches=(),
        ),
    ),
    "update": (
        "0001" + REST_OF_KEY,
        "0000 00000003 00000001 0000000000000064 02 0000000000000064 0000000000000068 02 0001 00 01 00 04 00000005",
        ShareUpdate(
            snapshot_epoch=3,
            leader_epoch=1,
            start_offset=100,
            state_batches=(ACKNOWLEDGED,),
            delivery_complete_count=5,
        ),
    ),
    "update of nothing but the leader epoch": (
        "0001" + REST_OF_KEY,
        "0000 00000003 00000001 ffffffffffffffff 01 00",
        ShareUpdate(snapshot_epoch=3, leader_epoch=1, start_offset=-1, state_batches=()),
    ),
}

INT8, INT16 = st.integers(-(1 << 7), (1 << 7) - 1), st.integers(-(1 << 15), (1 << 15) - 1)
INT32, INT64 = st.integers(-(1 << 31), (1 << 31) - 1), st.integers(-(1 << 63), (1 << 63) - 1)


def tags(first):
    return st.lists(
        st.builds(UnknownTag, tag=st.integers(first, 500), data=st.binary(max_size=4)),
        max_size=2,
        unique_by=lambda tag: tag.tag,
    ).map(lambda unordered: tuple(sorted(unordered, key=lambda tag: tag.tag)))


BATCHES = st.lists(
    st.builds(
        StateBatch,
        first_offset=INT64,
        last_offset=INT64,
        delivery_state=INT8,
        delivery_count=INT16,
        unknown_tags=tags(0),
    ),
    max_size=4,
).map(tuple)
SNAPSHOTS = st.builds(
    ShareSnapshot,
    snapshot_epoch=INT32,
    state_epoch=INT32,
    leader_epoch=INT32,
    start_offset=INT64,
    create_timestamp_ms=INT64,
    write_timestamp_ms=INT64,
    state_batches=BATCHES,
    delivery_complete_count=INT32,
    unknown_tags=tags(1),
)
UPDATES = st.builds(
    ShareUpdate,
    snapshot_epoch=INT32,
    leader_epoch=INT32,
    start_offset=INT64,
    state_batches=BATCHES,
    delivery_complete_count=INT32,
    unknown_tags=tags(1),
)
UNKNOWN_VERSIONS = st.builds(
    UnknownVersionValue,
    record_type=st.sampled_from(RecordType),
    version=INT16.filter(lambda version: version != 0),
    data=st.binary(max_size=20),
)
KEYS = st.builds(
    SharePartitionKey,
    group_id=st.text(st.characters(codec="utf-8"), max_size=20),
    topic_id=st.just(G1.topic_id),
    partition=INT32,
)
VALUES = SNAPSHOTS | UPDATES | st.just(Tombstone()) | UNKNOWN_VERSIONS
RECORDS = st.builds(ShareRecord, key=KEYS, value=VALUES, trailing_bytes=st.just(0))


@pytest.mark.parametrize("name", VECTORS)
def test_the_bytes_of_the_real_serde_are_read_and_written(name):
    key_hex, value_hex, value = VECTORS[name]
    key, raw = bytes.fromhex(key_hex), bytes.fromhex(value_hex)
    assert decode_record(key, raw) == ShareRecord(key=G1, value=value)
    assert encode_record(ShareRecord(key=G1, value=value)) == (key, raw)


def test_a_null_value_under_a_snapshot_key_is_a_tombstone():
    key = bytes.fromhex("0000" + REST_OF_KEY)
    assert decode_record(key, None) == ShareRecord(key=G1, value=Tombstone())
    assert encode_record(ShareRecord(key=G1, value=Tombstone())) == (key, None)


def test_an_update_has_no_tombstone():
    with pytest.raises(MissingValueError, match="g1/AAECAwQFBgcICQoLDA0ODw/7"):
        decode_record(bytes.fromhex("0001" + REST_OF_KEY), None)


@given(RECORDS)
def test_what_is_written_is_read_back(record):
    assert decode_record(*encode_record(record)) == record


@given(RECORDS, st.binary(min_size=1, max_size=9))
def test_bytes_behind_the_value_are_counted_and_ignored(record, extra_bytes):
    key, value = encode_record(record)
    if value is None or isinstance(record.value, UnknownVersionValue):
        return
    assert decode_record(key, value + extra_bytes) == record._replace(trailing_bytes=len(extra_bytes))


def test_bytes_behind_the_key_are_ignored():
    key_hex, value_hex, value = VECTORS["update"]
    assert decode_record(bytes.fromhex(key_hex + "00"), bytes.fromhex(value_hex)) == ShareRecord(key=G1, value=value)


@pytest.mark.parametrize("record_type", [-1, 2, 32767])
def test_unknown_record_types_are_kept_as_they_are(record_type):
    key = record_type.to_bytes(2, "big", signed=True) + b"whatever"
    record = decode_record(key, b"\x00")
    assert record == UnknownTypeRecord(record_type=record_type, key=key, value=b"\x00")
    assert encode_record(record) == (key, b"\x00")


def test_unknown_value_versions_are_kept_as_they_are():
    key, value = bytes.fromhex("0000" + REST_OF_KEY), b"\x00\x01anything"
    record = decode_record(key, value)
    assert record == ShareRecord(
        key=G1, value=UnknownVersionValue(record_type=RecordType.SHARE_SNAPSHOT, version=1, data=b"anything")
    )
    assert encode_record(record) == (key, value)


@pytest.mark.parametrize(
    ("key", "error"),
    [
        (None, InvalidKeyError),
        (b"", InvalidKeyError),
        (b"\0", InvalidKeyError),
        (b"\0\0", InvalidKeyError),
        (bytes.fromhex("0000" + REST_OF_KEY)[:-1], InvalidKeyError),
        (bytes.fromhex("0000" + REST_OF_KEY.replace("0002", "ffff", 1)), InvalidKeyError),
        (bytes.fromhex("0000" + REST_OF_KEY.replace("6731", "67ff", 1)), InvalidTextError),
    ],
)
def test_keys_that_are_no_keys_are_refused(key, error):
    with pytest.raises(error):
        decode_record(key, b"")


def test_every_cut_of_a_value_is_refused():
    cuts = 0
    for key_hex, value_hex, _ in VECTORS.values():
        value = bytes.fromhex(value_hex)
        for cut in range(len(value)):
            with pytest.raises(BufferUnderflowError):
                decode_record(bytes.fromhex(key_hex), value[:cut])
            cuts += 1
    assert cuts == sum(len(bytes.fromhex(value_hex)) for _, value_hex, _ in VECTORS.values())


@given(
    st.binary(max_size=120), st.binary(max_size=120), st.sampled_from(["", "0000" + REST_OF_KEY, "0001" + REST_OF_KEY])
)
def test_arbitrary_bytes_are_read_or_refused(key, value, known_key):
    try:
        record = decode_record(bytes.fromhex(known_key) or key, value)
    except DecodeError as error:
        reason = error.reason
    else:
        reason = None
        if isinstance(record, ShareRecord):
            record = record._replace(trailing_bytes=0)
        assert decode_record(*encode_record(record)) == record
    assert reason in {None, "bad_key", "invalid_utf8", "truncated_value", "malformed_varint", "invalid_length"}


def test_delivery_states_have_kafkas_names():
    names = [delivery_state_name(state) for state in range(-1, 6)]
    assert names == ["UNKNOWN(-1)", "AVAILABLE", "ACQUIRED", "ACKNOWLEDGED", "ARCHIVING", "ARCHIVED", "UNKNOWN(5)"]
    assert DeliveryState(3) is DeliveryState.ARCHIVING


@pytest.mark.parametrize("field", ["leader_epoch", "delivery_complete_count"])
def test_an_integer_that_is_too_wide_is_refused_by_its_type(field):
    update = ShareUpdate(snapshot_epoch=0, leader_epoch=0, start_offset=0, state_batches=())
    key = SharePartitionKey(group_id="g", topic_id="A" * 22, partition=0)
    with pytest.raises(EncodeError, match="2147483648 is no int32"):
        encode_record(ShareRecord(key=key, value=update._replace(**{field: 1 << 31})))
