"""Positions in large segments without an index: certain to be batches of the log, with few bytes read."""

from pathlib import Path

import numpy as np
import pytest

from sharelens.kafka_log import probing, reader
from sharelens.kafka_log.layout import SegmentFile, scan_log_directory
from sharelens.kafka_log.probing import position_before, position_near_end
from sharelens.kafka_log.union import unite
from tests import once
from tests.memory_stores import in_memory
from tools.log_writer import encoding, writer

pytestmark = pytest.mark.slow

TOPIC = "__share_group_state"
BATCHES, BATCH_RECORDS = 1500, 4


def _write(place: Path) -> None:
    """15 MB of which every value is itself 9 KB of batches with plausible offsets and good checksums."""
    inner = writer.record_columns([b"k"] * 30, [b"v" * 200] * 30, [1] * 30)
    value = b"".join(writer.encode_batch(inner, base_offset=base) for base in (7, 4_000))[:2500]
    count = BATCHES * BATCH_RECORDS
    records = writer.record_columns([b"k"] * count, [value] * count, list(range(count)))
    log = encoding.encode(records, encoding.plan(records, [BATCH_RECORDS] * BATCHES))
    writer.write_partition(place, TOPIC, 0, log, segment_bytes=1 << 30)
    for index in place.rglob("*.index"):
        index.unlink()


@pytest.fixture
def place() -> Path:
    return once.made_once("segment-without-index", _write)


def segment_of(place: Path) -> SegmentFile:
    ((segment,),) = ([*partition.segments] for partition in scan_log_directory(str(place)).partitions)
    return segment


def test_a_position_is_that_of_a_batch_at_or_before_the_offset(place: Path) -> None:
    segment = segment_of(place)
    content = Path(segment.uri).read_bytes()
    assert segment.size_bytes > probing.LEAST_BYTES
    for offset in (0, 1, 2000, 3001, 4500, 5999, 9999):
        position = position_before(segment, offset)
        base_offset = int.from_bytes(content[position : position + 8], "big")
        batch_bytes = int.from_bytes(content[position + 8 : position + 12], "big") + 12
        assert base_offset % BATCH_RECORDS == 0
        assert position == base_offset // BATCH_RECORDS * batch_bytes
        assert base_offset <= offset
        assert min(offset, BATCHES * BATCH_RECORDS) - base_offset < BATCHES * BATCH_RECORDS // 2
    assert position_near_end(segment) >= segment.size_bytes - probing.WINDOW_BYTES


def test_reads_from_an_offset_and_looks_at_the_end_read_few_bytes(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (partition,) = unite([scan_log_directory(str(place))])
    sizes: list[int] = []
    original = probing.open_segment(segment_of(place)).__class__.read_at

    def counted(file: object, position: int, length: int) -> object:
        data = original(file, position, length)  # type: ignore[arg-type]
        sizes.append(len(data))
        return data

    monkeypatch.setattr("sharelens.kafka_log.filesystem.LocalFile.read_at", counted)
    assert reader.log_end(partition).end_offset == BATCHES * BATCH_RECORDS
    assert sum(sizes) < 3 * probing.WINDOW_BYTES
    sizes.clear()
    first = BATCHES * BATCH_RECORDS - 40
    split = reader.Split(partition=partition, from_offset=first, to_offset=1 << 62)
    offsets = [offset for chunk in reader.read_split(split) for offset in chunk.records["offset"].to_pylist()]
    assert offsets == list(range(first, BATCHES * BATCH_RECORDS))
    assert sum(sizes) < 6 * probing.WINDOW_BYTES


def test_of_a_segment_in_a_bucket_that_has_grown_only_the_new_end_is_read(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    buckets = in_memory(monkeypatch)
    buckets.put_folder(place, "s3://logs/grown")
    (partition,) = unite([scan_log_directory("s3://logs/grown")])
    end = reader.log_end(partition).end_offset
    assert end == BATCHES * BATCH_RECORDS
    split = reader.Split(partition=partition, from_offset=end - 40, to_offset=1 << 62)
    assert sum(chunk.records.num_rows for chunk in reader.read_split(split)) == 40
    (key,) = buckets.read_bytes.keys() & {segment_of(place).uri.replace(str(place), "grown")}
    assert buckets.read_bytes[key] < 2 * probing.WINDOW_BYTES


def test_damage_makes_a_segment_be_read_from_its_beginning(place: Path, tmp_path: Path) -> None:
    folder = tmp_path / f"{TOPIC}-0"
    folder.mkdir()
    segment = segment_of(place)
    content = np.frombuffer(Path(segment.uri).read_bytes(), np.uint8).copy()
    content[1 << 20 :: 1 << 20] ^= 0xFF
    (folder / Path(segment.uri).name).write_bytes(content.tobytes())
    assert position_before(segment_of(tmp_path), 5000) == 0
    assert position_near_end(segment_of(tmp_path)) == 0
