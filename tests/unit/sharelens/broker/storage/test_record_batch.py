"""Record batches: there and back in every codec, equal to the log writer's, checked, bounded, one family of errors."""

import struct
from contextlib import suppress

import pyarrow as pa
import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from sharelens.broker.errors import CorruptBatchError, InvalidRecordError, InvalidTimestampError
from sharelens.broker.ports import Record
from sharelens.broker.storage import record_batch as rb
from tools.log_writer import writer

CODECS = range(5)
optional_bytes = st.none() | st.binary(max_size=200) | st.just(b"x" * 3000)
records = st.lists(
    st.builds(
        Record,
        key=optional_bytes,
        value=optional_bytes,
        headers=st.lists(st.tuples(st.text(max_size=20), optional_bytes), max_size=3).map(tuple),
        timestamp_ms=st.integers(0, 1 << 50),
    ),
    min_size=1,
    max_size=20,
)


def numbered(values: list[Record], base_offset: int) -> list[Record]:
    return [
        Record(key=r.key, value=r.value, headers=r.headers, timestamp_ms=r.timestamp_ms, offset=base_offset + at)
        for at, r in enumerate(values)
    ]


def mended(batch: bytes) -> bytes:
    """The batch with the checksum that its bytes ask for."""
    return batch[:17] + crc32c(batch[21:]).to_bytes(4, "big") + batch[21:]


def client_batch(values: list[Record] | None = None, **options: int) -> bytes:
    return rb.build(values or [Record(key=b"k", value=b"v", timestamp_ms=5)], **options)


@pytest.mark.slow
@given(records, st.sampled_from(CODECS), st.integers(0, 1 << 60))
def test_records_come_back_as_they_were_in_every_codec(values, codec, base_offset):
    batch = rb.build(values, codec=codec, base_offset=base_offset, leader_epoch=7)
    (header,) = rb.split(batch)
    assert rb.parse(batch) == numbered(values, base_offset)
    assert (header.codec, header.leader_epoch, header.record_count) == (codec, 7, len(values))
    assert header.last_offset == base_offset + len(values) - 1
    assert header.max_timestamp_ms == max(record.timestamp_ms for record in values)


@given(records, st.sampled_from(CODECS), st.integers(0, 1 << 40), st.integers(0, 1000))
def test_bytes_equal_those_of_the_log_writer(values, codec, base_offset, leader_epoch):
    columns = pa.table(
        {
            "timestamp_ms": pa.array([r.timestamp_ms for r in values], pa.int64()),
            "key": pa.array([r.key for r in values], pa.binary()),
            "value": pa.array([r.value for r in values], pa.binary()),
        }
    )
    plain = [Record(key=r.key, value=r.value, timestamp_ms=r.timestamp_ms) for r in values]
    expected = writer.encode_batch(columns, base_offset=base_offset, leader_epoch=leader_epoch, codec=codec)
    assert rb.build(plain, base_offset=base_offset, leader_epoch=leader_epoch, codec=codec) == expected


@pytest.mark.parametrize("commit", [True, False])
def test_markers_equal_those_of_the_log_writer(commit):
    batch = rb.build_control(
        commit=commit, producer_id=9, producer_epoch=2, coordinator_epoch=3, now_ms=77, base_offset=5, leader_epoch=4
    )
    assert batch == writer.encode_control_batch(
        writer.COMMIT if commit else writer.ABORT,
        offset=5, timestamp_ms=77, producer_id=9, producer_epoch=2, leader_epoch=4, coordinator_epoch=3,
    )  # fmt: skip
    (header,) = rb.split(batch)
    assert rb.parse_control(batch, header) == (commit, 3)


def test_a_record_without_a_timestamp_gets_the_time_of_now():
    assert rb.parse(rb.build([Record(key=None, value=b"v")], now_ms=1234))[0].timestamp_ms == 1234


@given(records, st.sampled_from(CODECS))
def test_stamping_changes_offset_and_leader_epoch_alone(values, codec):
    batch = client_batch(values, codec=codec)
    header = rb.validate_client(batch)
    stamped = b"".join(rb.stamp(batch, header, base_offset=40, leader_epoch=6))
    assert stamped == rb.build(values, codec=codec, base_offset=40, leader_epoch=6)


@given(records)
def test_a_log_append_time_stands_for_every_record(values):
    batch = client_batch(values)
    header = rb.validate_client(batch)
    stamped = b"".join(rb.stamp(batch, header, base_offset=3, leader_epoch=1, log_append_time_ms=999))
    (changed,) = rb.split(stamped)
    assert changed.max_timestamp_ms == 999
    assert [record.timestamp_ms for record in rb.parse(stamped)] == [999] * len(values)
    assert stamped == rb.build(values, base_offset=3, leader_epoch=1, now_ms=999, attributes=rb.LOG_APPEND_TIME)


def test_sequences_go_on_at_zero_after_the_largest():
    batch = client_batch(
        [Record(key=None, value=b"")] * 3, producer_id=1, producer_epoch=0, base_sequence=(1 << 31) - 2
    )
    assert rb.validate_client(batch).last_sequence == 0


def changed(at: int, layout: str, value: int) -> bytes:
    batch = bytearray(client_batch([Record(key=b"k", value=b"v", timestamp_ms=5)] * 2))
    struct.pack_into(layout, batch, at, value)
    return mended(bytes(batch))


@pytest.mark.parametrize(
    ("data", "error", "message"),
    [
        (b"", InvalidRecordError, "no record batch"),
        (changed(0, ">q", 1), InvalidRecordError, "base offset 1"),
        (changed(16, ">b", 1), InvalidRecordError, "message format 1"),
        (changed(16, ">b", 0), InvalidRecordError, "message format 0"),
        (changed(16, ">b", 3), CorruptBatchError, "no complete"),
        (changed(8, ">i", 1 << 30), CorruptBatchError, "no complete"),
        (changed(8, ">i", -1), CorruptBatchError, "no complete"),
        (changed(21, ">h", rb.CONTROL), InvalidRecordError, "control"),
        (changed(21, ">h", rb.LOG_APPEND_TIME), InvalidTimestampError, "append times"),
        (changed(21, ">h", rb.TRANSACTIONAL), InvalidRecordError, "producer id"),
        (changed(21, ">h", 5), CorruptBatchError, "codec 5"),
        (changed(23, ">i", 5), InvalidRecordError, "2 records on 6 offsets"),
        (changed(57, ">i", 1), InvalidRecordError, "1 records on 2 offsets"),
        (changed(43, ">q", 8), InvalidRecordError, "base sequence -1"),
        (client_batch() * 2, InvalidRecordError, "2 record batches"),
        (client_batch()[:-1], CorruptBatchError, "no complete"),
        (client_batch()[:-1] + b"x", CorruptBatchError, "checksum"),
        (mended(client_batch()[:-1] + b"\x7e"), None, ""),
    ],
)
def test_what_a_client_must_not_send_is_refused(data, error, message):
    if error is None:
        rb.validate_client(data)  # only the inside of a record is wrong: seen by who parses it
        with pytest.raises(CorruptBatchError):
            rb.parse(data)
        return
    with pytest.raises(error, match=message):
        rb.validate_client(data)


def test_more_records_than_there_are_bytes_are_refused():
    batch = bytearray(client_batch())
    struct.pack_into(">i", batch, 23, (1 << 31) - 2)
    struct.pack_into(">i", batch, 57, (1 << 31) - 1)
    with pytest.raises(CorruptBatchError, match="fewer than"):
        rb.validate_client(mended(bytes(batch)))


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_a_batch_that_grows_beyond_the_limit_is_refused(codec):
    batch = client_batch([Record(key=None, value=bytes(200_000))], codec=codec)
    assert rb.validate_client(batch, limit_bytes=1 << 20).codec == codec
    with pytest.raises(CorruptBatchError, match="100000"):
        rb.validate_client(batch, limit_bytes=100_000)


@given(st.binary(max_size=200) | st.tuples(st.integers(0, 120), st.binary(min_size=1, max_size=8)), st.booleans())
def test_any_bytes_are_read_or_refused_by_an_error_of_ours(noise, mend):
    data = noise
    if isinstance(noise, tuple):
        sound = client_batch([Record(key=b"key", value=b"value", headers=(("h", b"x"),))] * 3)
        at = min(noise[0], len(sound))
        data = sound[:at] + noise[1] + sound[at + len(noise[1]) :]
    if mend and len(data) > 21:
        data = mended(data)
    for check in (rb.validate_client, rb.parse):
        with suppress(CorruptBatchError, InvalidTimestampError):
            check(data)


@given(st.binary(max_size=300), st.integers(1, 4))
def test_noise_in_a_compressed_body_is_refused(noise, codec):
    head = client_batch(codec=codec)[: rb.HEADER_BYTES]
    data = bytearray(head + noise)
    struct.pack_into(">i", data, 8, len(data) - 12)
    with pytest.raises(CorruptBatchError):
        rb.parse(mended(bytes(data)))
