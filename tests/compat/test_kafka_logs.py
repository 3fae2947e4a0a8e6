"""What we read in recorded broker logs against what Kafka's own tools printed of them."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sharelens.kafka_log import reader
from sharelens.kafka_log import record_batch as rb
from sharelens.kafka_log.codecs import NAMES
from sharelens.kafka_log.layout import scan_log_directory
from sharelens.kafka_log.schemas import LOG_RECORD, TOPIC_BATCH
from sharelens.kafka_log.segment_file import crc_ok
from sharelens.kafka_log.segments import CopyReader
from sharelens.kafka_log.union import LogPartition, unite
from tests.datasets import KINDS, dataset, kinds_first, scenarios
from tools.log_writer import encoding

_END = 1 << 62


def _lines(folder: Path, name: str) -> list[dict[str, Any]]:
    packed = folder / f"{name}.gz"
    if packed.exists():
        with gzip.open(packed, "rt", encoding="utf-8") as file:
            return [json.loads(line) for line in file]
    with open(folder / name, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _partitions(name: str) -> tuple[LogPartition, ...]:
    return unite([scan_log_directory(str(dataset(name) / "logs"))])


def _records(partition: LogPartition, first: int = 0, last: int = _END, split_bytes: int = 1 << 26) -> pa.Table:
    batches = []
    for split in reader.splits(partition, first, last, split_bytes):
        for chunk in reader.read_split(split, include_uncommitted=True):
            assert chunk.problems.num_rows == 0
            batches.append(chunk.records)
    return pa.Table.from_batches(batches, schema=LOG_RECORD)


def _headers(name: str) -> Iterator[dict[str, Any]]:
    """Every batch of a data set in the terms of its batches.jsonl."""
    for partition in _partitions(name):
        copy = partition.copies[0]
        for block in CopyReader(copy, from_offset=0, to_offset=_END, lost_below=0).blocks():
            valid = crc_ok(block.data, block.headers).tolist()
            for row, fits in zip(block.headers.tolist(), valid, strict=True):
                attributes = row[rb.ATTRIBUTES]
                yield {
                    "topic": partition.topic,
                    "partition": partition.partition,
                    "segment": Path(block.file).name,
                    "position": block.data_position + row[rb.POSITION],
                    "baseOffset": row[rb.BASE_OFFSET],
                    "lastOffset": row[rb.LAST_OFFSET],
                    "sizeInBytes": row[rb.SIZE],
                    "magic": row[rb.MAGIC],
                    "compression": NAMES[attributes & rb.CODEC_MASK],
                    "crc": row[rb.CRC],
                    "crcValid": fits,
                    "maxTimestamp": row[rb.MAX_TIMESTAMP],
                    "timestampType": "LogAppendTime" if attributes & rb.LOG_APPEND_TIME else "CreateTime",
                    "producerId": row[rb.PRODUCER_ID],
                    "producerEpoch": row[rb.PRODUCER_EPOCH],
                    "baseSequence": row[rb.BASE_SEQUENCE],
                    "leaderEpoch": row[rb.LEADER_EPOCH],
                    "transactional": bool(attributes & rb.TRANSACTIONAL),
                    "control": bool(attributes & rb.CONTROL),
                    "count": row[rb.RECORD_COUNT],
                }


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", scenarios())
def test_batch_headers_are_what_kafka_says(name: str) -> None:
    truth = {(row["topic"], row["partition"], row["baseOffset"]): row for row in _lines(dataset(name), "batches.jsonl")}
    read = {(row["topic"], row["partition"], row["baseOffset"]): row for row in _headers(name)}
    assert truth
    # The large sets list every 64th batch of the state topic only.
    assert {key: read.get(key) for key in truth} == truth
    assert name.startswith("big") or len(read) == len(truth)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", kinds_first(KINDS))
def test_state_records_have_kafkas_offsets_and_timestamps(name: str) -> None:
    truth = {(row["partition"], row["offset"]): row["timestamp"] for row in _lines(dataset(name), "formatter.jsonl")}
    read = {}
    for partition in _partitions(name):
        if partition.topic == "__share_group_state":
            table = _records(partition, split_bytes=1 << 16)
            offsets, times = table["offset"].to_pylist(), table["timestamp_ms"].to_pylist()
            assert offsets == sorted(set(offsets))
            read |= {(partition.partition, offset): time for offset, time in zip(offsets, times, strict=True)}
    assert truth
    assert read == truth


@pytest.mark.parametrize(
    "name", ["basic", "codec-gzip", "codec-lz4", "codec-snappy", "codec-zstd", "dlq", "transactions"]
)
def test_user_records_have_kafkas_keys_values_and_headers(name: str) -> None:
    truth = {(row["topic"], row["partition"], row["offset"]): row for row in _lines(dataset(name), "topics.jsonl")}
    read = {}
    for partition in _partitions(name):
        if not partition.topic.startswith("__"):
            for row in _records(partition).to_pylist():
                read[row["topic"], row["partition"], row["offset"]] = row
    assert truth.keys() == read.keys()
    assert truth
    for place, row in truth.items():
        value = read[place]
        assert value["timestamp_ms"] == row["timestamp"]
        assert value["is_control"] == ("control" in row)
        if "control" not in row:
            assert [_text(value["key"]), _text(value["value"])] == [row["key"], row["value"]]
            headers = [(header["key"], header["utf8"]) for header in row.get("headers", [])]
            assert [(header["key"], _text(header["value"])) for header in value["headers"]] == headers


def _text(raw: bytes | None) -> str | None:
    return None if raw is None else raw.decode()


def test_transaction_markers_are_told_apart() -> None:
    truth = {
        (row["topic"], row["partition"], row["offset"]): row["control"]
        for row in _lines(dataset("transactions"), "topics.jsonl")
        if "control" in row
    }
    read = {}
    for partition in _partitions("transactions"):
        if not partition.topic.startswith("__"):
            for batch in reader.scan_batches(partition, 0, _END):
                for row in batch.to_pylist():
                    if row["control_type"] is not None:
                        read[row["topic"], row["partition"], row["base_offset"]] = row["control_type"]
    assert set(truth.values()) == {"COMMIT", "ABORT"}
    assert read == truth


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", scenarios())
def test_uncompressed_segments_are_written_back_byte_for_byte(name: str) -> None:
    written = 0
    for partition in _partitions(name):
        for segment, following in _segments(partition):
            raw = Path(segment).read_bytes()
            headers = pa.Table.from_batches(list(reader.scan_batches(partition, *following)), schema=TOPIC_BATCH)
            records = _records(partition, *following)
            counts = headers["record_count"].to_numpy()
            first_rows = np.concatenate([[0], np.cumsum(counts)[:-1]]).astype(np.int64)
            attributes = records["attributes"].to_numpy()[first_rows]
            if (attributes & rb.CODEC_MASK).any():
                continue
            columns = {
                column: headers[column].to_numpy()
                for column in ("leader_epoch", "producer_id", "producer_epoch", "base_sequence")
            }
            table = encoding.plan(records, counts, attributes=attributes, **columns)
            assert encoding.encode(records, table).data.tobytes() == raw
            written += 1
    assert written


def _segments(partition: LogPartition) -> Iterator[tuple[str, tuple[int, int]]]:
    """The files of a partition's first copy that hold something, each with its range of offsets."""
    segments = partition.copies[0].segments
    ends = [segment.base_offset for segment in segments[1:]] + [_END]
    for segment, end in zip(segments, ends, strict=True):
        if segment.size_bytes:
            yield segment.uri, (segment.base_offset, end)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (1, 0, 2)])
def test_copies_of_a_crashed_broker_in_any_order_are_one_log(order: tuple[int, ...]) -> None:
    names = ("logs-live", "logs-crashed", "logs")
    alone = {(p.topic, p.partition): _records(p) for p in _partitions("crash")}
    directories = [scan_log_directory(str(dataset("crash") / names[place])) for place in order]
    united = {(p.topic, p.partition): _records(p, split_bytes=1 << 14) for p in unite(directories)}
    assert united.keys() == alone.keys()
    assert len(united) >= 7
    for place, table in united.items():
        assert table.combine_chunks().equals(alone[place].combine_chunks())


def test_a_copy_of_a_running_broker_is_an_exact_prefix() -> None:
    whole_records = {(p.topic, p.partition): _records(p) for p in _partitions("crash")}
    compared = 0
    for name in ("logs-live", "logs-crashed"):
        for partition in unite([scan_log_directory(str(dataset("crash") / name))]):
            end = reader.readable_end(partition, include_uncommitted=True)
            committed = reader.readable_end(partition, include_uncommitted=False)
            assert partition.committed_end is not None
            assert committed == min(end, partition.committed_end)
            records = _records(partition, 0, end)
            expected_records = whole_records[partition.topic, partition.partition].slice(0, records.num_rows)
            for column in ("offset", "timestamp_ms", "key", "value", "leader_epoch"):
                assert records[column].to_pylist() == expected_records[column].to_pylist()
            flags = [offset >= partition.committed_end for offset in records["offset"].to_pylist()]
            assert records["uncommitted"].to_pylist() == flags
            compared += records.num_rows
    assert compared > 500
