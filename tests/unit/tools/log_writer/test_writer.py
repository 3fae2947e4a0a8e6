"""Record batches there and back; segments, indexes and folders as a broker leaves them."""

from pathlib import Path
from typing import Any

import crc32c
import hypothesis
import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest

from sharelens.kafka_log import reader
from sharelens.kafka_log import record_batch as rb
from sharelens.kafka_log.layout import scan_log_directory
from sharelens.kafka_log.schemas import HEADER, LOG_RECORD
from sharelens.kafka_log.union import unite
from tools.log_writer import encoding, writer
from tools.log_writer.errors import BatchEncodeError

# One record with key k, value v, one header h=1, at offset 5 and time 1000: each field of the layout by hand.
BY_HAND = bytes.fromhex(
    "0000000000000005"  # base offset
    "00000041"  # bytes that follow
    "00000002"  # leader epoch
    "02"  # magic
    "00000000"  # checksum, filled in below
    "0000"  # attributes
    "00000000"  # last offset delta
    "00000000000003e8"  # base timestamp
    "00000000000003e8"  # max timestamp
    "ffffffffffffffff"  # producer id
    "ffff"  # producer epoch
    "ffffffff"  # base sequence
    "00000001"  # records
    "1e"  # record length 15
    "00"  # record attributes
    "00"  # timestamp delta
    "00"  # offset delta
    "026b"  # key
    "0276"  # value
    "02"  # one header
    "0268"  # its key
    "0831323334"  # its value 1234
)


def test_a_batch_is_the_bytes_of_the_layout() -> None:
    headers = pa.array([[{"key": "h", "value": b"1234"}]], pa.list_(HEADER))
    records = writer.record_columns([b"k"], [b"v"], [1000]).append_column("headers", headers)
    expected = bytearray(BY_HAND)
    expected[17:21] = crc32c.crc32c(bytes(expected[21:])).to_bytes(4, "big")
    assert writer.encode_batch(records, base_offset=5, leader_epoch=2) == bytes(expected)


OPTIONAL = st.none() | st.binary(max_size=30)
RECORD = st.fixed_dictionaries(
    {
        "key": OPTIONAL,
        "value": OPTIONAL,
        "timestamp_ms": st.integers(-(1 << 62), 1 << 62),
        "headers": st.lists(st.fixed_dictionaries({"key": st.text(max_size=5), "value": OPTIONAL}), max_size=3),
    }
)


@pytest.mark.slow
@hypothesis.given(
    rows=st.lists(RECORD, min_size=1, max_size=25),
    gaps=st.lists(st.integers(1, 1 << 20), min_size=25, max_size=25),
    codec=st.integers(0, 4),
    cut=st.integers(1, 25),
    epochs=st.tuples(st.integers(0, 5), st.integers(0, 1 << 30)),
    producer=st.tuples(st.integers(-1, 1 << 62), st.integers(-1, 32767), st.integers(-1, 1 << 30)),
    transactional=st.booleans(),
)
def test_what_is_written_is_read_back(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[dict[str, Any]],
    gaps: list[int],
    codec: int,
    cut: int,
    epochs: tuple[int, int],
    producer: tuple[int, int, int],
    transactional: bool,
) -> None:
    offsets = np.cumsum(gaps[: len(rows)]).tolist()
    columns = writer.record_columns(
        [row["key"] for row in rows], [row["value"] for row in rows], [row["timestamp_ms"] for row in rows]
    )
    columns = columns.append_column("headers", pa.array([row["headers"] for row in rows], pa.list_(HEADER)))
    columns = columns.append_column("offset", pa.array(offsets, pa.int64()))
    counts = [min(cut, len(rows) - start) for start in range(0, len(rows), cut)]
    attributes = codec | (rb.TRANSACTIONAL if transactional else 0)
    plan = encoding.plan(
        columns,
        counts,
        leader_epoch=epochs[1],
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
        attributes=attributes,
    )
    place = tmp_path_factory.mktemp("log")
    writer.write_partition(place, "orders", 0, encoding.encode(columns, plan))
    (partition,) = unite([scan_log_directory(str(place))])
    split = reader.Split(partition=partition, from_offset=0, to_offset=1 << 62)
    chunks = list(reader.read_split(split))
    assert sum(chunk.problems.num_rows for chunk in chunks) == 0
    table = pa.Table.from_batches([chunk.records for chunk in chunks], schema=LOG_RECORD)
    read = table.select(["offset", "key", "value", "timestamp_ms", "headers"]).to_pylist()
    assert read == [{"offset": offset, **row} for offset, row in zip(offsets, rows, strict=True)]
    assert set(table["leader_epoch"].to_pylist()) == {epochs[1]}
    assert set(table["producer_id"].to_pylist()) == {producer[0]}
    assert set(table["producer_epoch"].to_pylist()) == {producer[1]}
    assert set(table["attributes"].to_pylist()) == {attributes}
    scanned = pa.Table.from_batches(list(reader.scan_batches(partition, 0, 1 << 62)))
    assert scanned["record_count"].to_pylist() == counts
    assert set(scanned["base_sequence"].to_pylist()) == {producer[2]}


def test_log_append_time_replaces_the_timestamps_of_records(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    batch = writer.encode_batch(
        writer.record_columns([b"a", b"b"], [None, b""], [5, 9]), base_offset=0, log_append_time_ms=77
    )
    (folder / "00000000000000000000.log").write_bytes(batch)
    (partition,) = unite([scan_log_directory(str(tmp_path))])
    split = reader.Split(partition=partition, from_offset=0, to_offset=2)
    rows = [row for chunk in reader.read_split(split) for row in chunk.records.to_pylist()]
    assert [(row["timestamp_ms"], row["timestamp_type"]) for row in rows] == [(77, "LogAppendTime")] * 2
    assert [row["value"] for row in rows] == [None, b""]


def test_an_index_entry_is_due_after_more_than_the_interval() -> None:
    records = writer.record_columns([b"k"] * 6, [b"v" * 900] * 6, [10, 50, 30, 40, 60, 20])
    log = encoding.encode(records, encoding.plan(records, [1] * 6))
    size = int(log.headers[0, rb.SIZE])
    indexes = writer.build_indexes(log.headers, 0, interval_bytes=2 * size)
    # Three batches (3 * size > 2 * size) lie before the first entry and before the next one would.
    entries = np.frombuffer(indexes.offset_index, dtype=">i4").reshape(-1, 2).tolist()
    assert entries == [[3, 3 * size]]
    times = np.frombuffer(indexes.time_index, dtype=[("time", ">i8"), ("offset", ">i4")]).tolist()
    assert times == [(50, 1), (60, 4)]


def test_segments_roll_at_their_size_and_carry_indexes_and_epochs(tmp_path: Path) -> None:
    records = writer.record_columns([b"k"] * 9, [b"v" * 100] * 9, list(range(9)))
    log = encoding.encode(records, encoding.plan(records, [3, 3, 3], leader_epoch=[1, 1, 4]))
    folder = writer.write_partition(tmp_path, "orders", 0, log, segment_bytes=int(log.headers[:2, rb.SIZE].sum()))
    assert [path.name for path in sorted(folder.glob("*.log"))] == [f"{0:020d}.log", f"{6:020d}.log"]
    assert len(list(folder.glob("*.index"))) == len(list(folder.glob("*.timeindex"))) == 2
    assert b"".join(path.read_bytes() for path in sorted(folder.glob("*.log"))) == log.data.tobytes()
    (partition,) = scan_log_directory(str(tmp_path)).partitions
    assert partition.leader_epochs == ((1, 0), (4, 6))


def test_a_plan_that_does_not_fit_is_refused() -> None:
    records = writer.record_columns([b"k"] * 3, [b"v"] * 3, [1, 2, 3])
    with pytest.raises(BatchEncodeError, match="planned for 3"):
        encoding.plan(records, [2, 2])
    with pytest.raises(BatchEncodeError, match="planned for 3"):
        encoding.plan(records, [3, 0])
    with pytest.raises(BatchEncodeError, match="these are 2"):
        encoding.encode(records.slice(0, 2), encoding.plan(records, [3]))
    backwards = records.append_column("offset", pa.array([1, 3, 2], pa.int64()))
    with pytest.raises(BatchEncodeError, match="ascend"):
        encoding.plan(backwards, [3])


def test_generated_logs_are_cut_into_equal_batches() -> None:
    records = writer.record_columns([b"k"] * 10, [b"v"] * 10, list(range(10)))
    log = writer.encode_log(records, records_per_batch=4, base_offset=100, leader_epoch=7)
    assert log.headers[:, [rb.BASE_OFFSET, rb.LAST_OFFSET, rb.LEADER_EPOCH]].tolist() == [
        [100, 103, 7],
        [104, 107, 7],
        [108, 109, 7],
    ]
