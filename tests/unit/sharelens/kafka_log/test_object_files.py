"""Log directories in buckets: read like those on a disk, with few requests; what a store refuses is no damage."""

from pathlib import Path

import numpy as np
import obstore
import pyarrow as pa
import pytest
from obstore.exceptions import GenericError, PermissionDeniedError

from sharelens.kafka_log import object_files, reader
from sharelens.kafka_log.errors import LogDirectoryError
from sharelens.kafka_log.filesystem import folder_at
from sharelens.kafka_log.layout import scan_log_directory
from sharelens.kafka_log.object_files import BLOCK_BYTES
from sharelens.kafka_log.schemas import LOG_RECORD
from sharelens.kafka_log.union import LogPartition, unite
from tests.memory_stores import MemoryBuckets, in_memory
from tools.log_writer import encoding, writer

TOPIC = "__share_group_state"
COUNT = 800


@pytest.fixture
def buckets(monkeypatch: pytest.MonkeyPatch) -> MemoryBuckets:
    return in_memory(monkeypatch)


def write_log(place: Path, *, segment_bytes: int = 5000, partitions: int = 1) -> Path:
    """Partitions with records of four in a batch."""
    records = writer.record_columns([b"k"] * COUNT, [b"v" * 20] * COUNT, list(range(COUNT)))
    log = encoding.encode(records, encoding.plan(records, [4] * (COUNT // 4)))
    for partition in range(partitions):
        writer.write_partition(place, TOPIC, partition, log, segment_bytes=segment_bytes)
    writer.write_checkpoints(place, high_watermarks={(TOPIC, partition): COUNT - 10 for partition in range(partitions)})
    return place


def partition_of(place: Path | str) -> LogPartition:
    (partition,) = unite([scan_log_directory(str(place))])
    return partition


def records_of(partition: LogPartition) -> pa.Table:
    end = reader.readable_end(partition, include_uncommitted=False)
    splits = reader.splits(partition, 0, end, 4000)
    chunks = [chunk.records for split in splits for chunk in reader.read_split(split)]
    return pa.Table.from_batches(chunks, schema=LOG_RECORD)


def test_a_log_in_a_bucket_reads_like_one_on_a_disk(tmp_path: Path, buckets: MemoryBuckets) -> None:
    buckets.put_folder(write_log(tmp_path), "s3://logs/broker-1")
    local, remote = partition_of(tmp_path), partition_of("s3://logs//broker-1/")
    assert len(remote.copies[0].segments) > 5
    assert remote.committed_end == local.committed_end == COUNT - 10
    assert remote.copies[0].source_id.endswith("s3://logs/broker-1")
    assert records_of(local).num_rows == COUNT - 10
    assert records_of(remote).equals(records_of(local))


def test_a_look_at_a_directory_is_one_listing_and_one_request_for_each_new_small_file(
    tmp_path: Path, buckets: MemoryBuckets
) -> None:
    buckets.put_folder(write_log(tmp_path, partitions=3), "s3://logs/few")
    scan_log_directory("s3://logs/few")
    small = [path for path in tmp_path.rglob("*") if path.name in object_files.SMALL_FILES]
    assert len(small) >= 4
    assert buckets.requests == {"list": 1, "list_with_delimiter": 2, "get_range": len(small)}
    buckets.requests.clear()
    scan_log_directory("s3://logs/few")
    assert buckets.requests == {"list": 1, "list_with_delimiter": 2}


def test_segments_are_read_once_whatever_is_asked_of_them(tmp_path: Path, buckets: MemoryBuckets) -> None:
    buckets.put_folder(write_log(tmp_path, segment_bytes=1 << 20), "s3://logs/once")
    partition = partition_of("s3://logs/once")
    buckets.requests.clear()
    for _ in range(3):
        records_of(partition)
        list(reader.scan_batches(partition, 0, COUNT))
    (segment,) = partition.copies[0].segments
    assert buckets.read_bytes[segment.uri.removeprefix("s3://logs/")] == segment.size_bytes
    assert buckets.requests["list"] == 0


def test_reads_give_the_bytes_of_any_range(buckets: MemoryBuckets) -> None:
    content = np.random.default_rng(5).integers(0, 256, 6 * BLOCK_BYTES + 17, dtype=np.uint8)
    obstore.put(buckets.bucket("b"), "file", content.tobytes())
    with folder_at("s3://b").open("file") as file:
        assert file.size() == len(content)
        for position, length in (
            (0, 5), (BLOCK_BYTES - 2, 4), (7, 5 * BLOCK_BYTES), (len(content) - 3, 9), (len(content), 1), (3, 0),
        ):  # fmt: skip
            read = file.read_at(position, length)
            assert read.flags.writeable
            assert np.array_equal(read, content[position : position + length])


def test_a_segment_that_vanished_is_a_gap_and_one_of_a_stale_listing_stops_the_reader(
    tmp_path: Path, buckets: MemoryBuckets, monkeypatch: pytest.MonkeyPatch
) -> None:
    buckets.put_folder(write_log(tmp_path), "s3://logs/stale")
    partition = partition_of("s3://logs/stale")
    gone = partition.copies[0].segments[1]
    split = reader.Split(partition=partition, from_offset=0, to_offset=COUNT)
    listed = obstore.list_with_delimiter(buckets.bucket("logs"), "stale/__share_group_state-0/")
    buckets.remove(gone.uri)
    problems = [row for chunk in reader.read_split(split) for row in chunk.problems.to_pylist()]
    assert [(row["reason"], row["first_offset"]) for row in problems] == [("vanished", gone.base_offset)]
    monkeypatch.setattr(obstore, "list_with_delimiter", lambda store, prefix: listed)
    with pytest.raises(LogDirectoryError, match=rf"^{gone.uri}: the store lists this object and does not have it"):
        list(reader.read_split(split))


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (PermissionDeniedError("403 <Code>AccessDenied</Code>"), r"no right to do this; grant list and read below"),
        (GenericError("503 <Code>SlowDown</Code>"), r"there are too many; run again later \(SlowDown\)"),
    ],
)
def test_a_store_that_refuses_is_one_line_and_no_damage_of_the_log(
    error: Exception, words: str, tmp_path: Path, buckets: MemoryBuckets, monkeypatch: pytest.MonkeyPatch
) -> None:
    buckets.put_folder(write_log(tmp_path), f"s3://logs/{type(error).__name__}")
    partition = partition_of(f"s3://logs/{type(error).__name__}")

    def refused(*_args: object, **_options: object) -> None:
        raise error

    monkeypatch.setattr(obstore, "get_range", refused)
    with pytest.raises(LogDirectoryError, match=words):
        records_of(partition)
    monkeypatch.setattr(obstore, "list_with_delimiter", refused)
    with pytest.raises(LogDirectoryError, match=f"can't list it at .*{words}"):
        scan_log_directory("s3://logs/any")


@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("hdfs://name/logs", "no storage for hdfs:// URIs: reading files from HDFS needs a JVM in every worker"),
        ("memory://x/y", "no storage for memory:// URIs: known are s3://, az://, abfss://, gs://"),
        ("s3:/bucket/logs", "no bucket in s3:/bucket/logs; give s3://BUCKET/FOLDER"),
        ("s3://bucket/absent", "no such directory: s3://bucket/absent; a Kafka log directory holds"),
        ("s3://bucket/file", "not a directory: s3://bucket/file"),
        ("s3://bucket/folder", "not a log directory: s3://bucket/folder: nothing like that in its 1 entries"),
        ("s3://bucket/logs/__share_group_state-0", "is the folder of one partition: give its parent, s3://bucket/logs"),
    ],
)
def test_what_is_no_log_directory_is_refused_in_one_line(
    uri: str, words: str, tmp_path: Path, buckets: MemoryBuckets
) -> None:
    buckets.put_folder(write_log(tmp_path), "s3://bucket/logs")
    obstore.put(buckets.bucket("bucket"), "file", b"x")
    obstore.put(buckets.bucket("bucket"), "folder/file", b"x")
    with pytest.raises(LogDirectoryError, match=words) as caught:
        scan_log_directory(uri)
    assert "\n" not in str(caught.value)
