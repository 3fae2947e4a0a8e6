"""How far a log reads, how it splits, what happens when files move underneath, where a moment lies."""

import pickle
import shutil
from dataclasses import replace
from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import pyarrow as pa
import pytest

from sharelens.kafka_log import reader
from sharelens.kafka_log import record_batch as rb
from sharelens.kafka_log.errors import SourceMissingError
from sharelens.kafka_log.layout import scan_log_directory
from sharelens.kafka_log.union import LogPartition, unite
from tools.log_writer import encoding, writer

TOPIC = "__share_group_state"


def make_log(counts: list[int], times: list[int] | None = None) -> encoding.Encoded:
    total = sum(counts)
    records = writer.record_columns(
        [b"k%d" % row for row in range(total)], [b"v" * 20] * total, times or [1_000 + row for row in range(total)]
    )
    return encoding.encode(records, encoding.plan(records, counts))


def write_log(
    place: Path, log: encoding.Encoded, *, segment_bytes: int = 1 << 30, committed: int | None = None
) -> Path:
    folder = writer.write_partition(place, TOPIC, 0, log, segment_bytes=segment_bytes)
    if committed is not None:
        writer.write_checkpoints(place, high_watermarks={(TOPIC, 0): committed})
    return folder


def partition_of(place: Path | str) -> LogPartition:
    (partition,) = unite([scan_log_directory(str(place))])
    return partition


def offsets_of(split: reader.Split, *, batch_bytes: int = 8 << 20) -> list[int]:
    chunks = reader.read_split(split, include_uncommitted=True, batch_bytes=batch_bytes)
    return [offset for chunk in chunks for offset in chunk.records["offset"].to_pylist()]


def split_of(partition: LogPartition, first: int = 0, last: int = 1 << 62) -> reader.Split:
    return reader.Split(partition=partition, from_offset=first, to_offset=last)


def test_the_readable_end_is_the_committed_end_or_the_last_batch(tmp_path: Path) -> None:
    for name, committed, held_back, end in (("a", 7, 7, 12), ("b", 99, 12, 12), ("c", None, 12, 12), ("d", 0, 0, 12)):
        write_log(tmp_path / name, make_log([4, 4, 4]), committed=committed)
        partition = partition_of(tmp_path / name)
        assert reader.readable_end(partition, include_uncommitted=False) == held_back
        assert reader.readable_end(partition, include_uncommitted=True) == end


def test_an_empty_active_segment_ends_where_it_starts(tmp_path: Path) -> None:
    folder = write_log(tmp_path, make_log([4, 4, 4]))
    (folder / "00000000000000000012.log").write_bytes(b"")
    assert reader.readable_end(partition_of(tmp_path), include_uncommitted=True) == 12


def test_a_partition_without_segments_is_empty(tmp_path: Path) -> None:
    folder = tmp_path / f"{TOPIC}-0"
    folder.mkdir()
    (folder / "partition.metadata").write_text("version: 0\ntopic_id: Fux62faITayNUQtdp4cGlg")
    partition = partition_of(tmp_path)
    assert reader.readable_end(partition, include_uncommitted=True) == 0
    assert reader.splits(partition, 0, 0, 100) == []
    assert offsets_of(split_of(partition)) == []


def test_held_back_records_are_not_read_and_others_are_flagged(tmp_path: Path) -> None:
    write_log(tmp_path, make_log([4, 4, 4]), committed=6)
    split = split_of(partition_of(tmp_path))
    held_back = pa.Table.from_batches([chunk.records for chunk in reader.read_split(split)])
    assert held_back["offset"].to_pylist() == list(range(6))
    with_uncommitted = pa.Table.from_batches(
        [chunk.records for chunk in reader.read_split(split, include_uncommitted=True)]
    )
    assert with_uncommitted["uncommitted"].to_pylist() == [False] * 6 + [True] * 6


@hypothesis.given(
    counts=st.lists(st.integers(1, 30), min_size=1, max_size=60),
    segment_bytes=st.sampled_from([500, 3000, 20_000]),
    split_bytes=st.sampled_from([1, 300, 2000, 1 << 20]),
    bounds=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    with_index=st.booleans(),
)
def test_splits_cover_a_range_once_whatever_their_size(
    tmp_path_factory: pytest.TempPathFactory,
    counts: list[int],
    segment_bytes: int,
    split_bytes: int,
    bounds: tuple[float, float],
    with_index: bool,
) -> None:
    place = tmp_path_factory.mktemp("log")
    folder = write_log(place, make_log(counts), segment_bytes=segment_bytes)
    if not with_index:
        for index in folder.glob("*.index"):
            index.unlink()
    first, last = sorted(int(bound * sum(counts)) for bound in bounds)
    splits = reader.splits(partition_of(place), first, last, split_bytes)
    edges = [split.from_offset for split in splits] + [last]
    assert edges == sorted(set(edges) | {last})
    assert edges[0] == first
    assert all(split.to_offset == edge for split, edge in zip(splits, edges[1:], strict=True))
    carried = [pickle.loads(pickle.dumps(split)) for split in splits]
    read = [offset for split in carried for offset in offsets_of(split, batch_bytes=700)]
    assert read == list(range(first, last))


def test_one_segment_is_cut_by_its_index_near_the_size_asked_for(tmp_path: Path) -> None:
    log = make_log([5] * 2000)
    write_log(tmp_path, log)
    partition = partition_of(tmp_path)
    target = len(log.data) // 8
    splits = reader.splits(partition, 0, 10_000, target)
    assert 7 <= len(splits) <= 9
    positions = dict(log.headers[:, [rb.BASE_OFFSET, rb.POSITION]].tolist())
    for split in splits[1:]:
        assert split.start is not None
        assert positions[split.from_offset] == split.start.position


def test_an_index_that_lies_is_not_followed(tmp_path: Path) -> None:
    log = make_log([5] * 400)
    folder = write_log(tmp_path, log)
    index = folder / "00000000000000000000.index"
    raw = bytearray(index.read_bytes())
    assert len(raw) > 32
    raw[4:8] = (7777).to_bytes(4, "big")
    raw[8:12] = (3).to_bytes(4, "big")
    index.write_bytes(raw)
    partition = partition_of(tmp_path)
    assert reader.readable_end(partition, include_uncommitted=True) == 2000
    read = [offset for split in reader.splits(partition, 11, 2000, 3000) for offset in offsets_of(split)]
    assert read == list(range(11, 2000))


def test_a_segment_that_grows_is_read_to_the_end_that_was_planned(tmp_path: Path) -> None:
    log = make_log([4, 4, 4])
    folder = write_log(tmp_path, log)
    path = folder / "00000000000000000000.log"
    raw = path.read_bytes()
    path.write_bytes(raw[: int(log.headers[2, rb.POSITION])])
    partition = partition_of(tmp_path)
    (split,) = reader.splits(partition, 0, reader.readable_end(partition, include_uncommitted=True), 1 << 20)
    path.write_bytes(raw)
    assert offsets_of(split) == list(range(8))


def test_a_segment_that_vanished_is_a_problem_with_its_range(tmp_path: Path) -> None:
    folder = write_log(tmp_path, make_log([4, 4, 4]), segment_bytes=1)
    split = split_of(partition_of(tmp_path), 1, 12)
    (folder / "00000000000000000000.log").rename(folder / "00000000000000000000.log.deleted")
    chunks = list(reader.read_split(split))
    rows = [row for chunk in chunks for row in chunk.problems.to_pylist()]
    assert [(row["reason"], row["first_offset"], row["last_offset"]) for row in rows] == [("vanished", 1, 3)]
    assert [offset for chunk in chunks for offset in chunk.records["offset"].to_pylist()] == list(range(4, 12))


def test_a_topic_that_is_deleted_meanwhile_vanishes_whole(tmp_path: Path) -> None:
    writer.write_partition(tmp_path, "orders", 0, make_log([1]))
    folder = write_log(tmp_path, make_log([4, 4]))
    (partition,) = (part for part in unite([scan_log_directory(str(tmp_path))]) if part.topic == TOPIC)
    folder.rename(tmp_path / f"{TOPIC}-0.0a1b2c-delete")
    rows = [row for chunk in reader.read_split(split_of(partition, 0, 8)) for row in chunk.problems.to_pylist()]
    assert [(row["reason"], row["first_offset"], row["last_offset"]) for row in rows] == [("vanished", 0, 7)]


@pytest.mark.parametrize("leave_root", [True, False])
def test_a_machine_that_lacks_the_directory_fails_with_host_and_path(tmp_path: Path, leave_root: bool) -> None:
    place = tmp_path / "logs"
    write_log(place, make_log([4, 4]))
    partition = partition_of(place)
    shutil.rmtree(place)
    if leave_root:
        place.mkdir()
    for attempt in (
        lambda: offsets_of(split_of(partition)),
        lambda: reader.readable_end(partition, include_uncommitted=True),
        lambda: list(reader.scan_batches(partition, 0, 8)),
    ):
        with pytest.raises(SourceMissingError, match=f"host .* does not see the log directory {place}"):
            attempt()


def naive_end(times: list[int], first: int, running: int, until: int) -> tuple[int, int]:
    for offset in range(first, len(times)):
        if max(running, times[offset]) >= until:
            return offset, running
        running = max(running, times[offset])
    return len(times), running


@hypothesis.given(
    times=st.lists(st.integers(0, 40), min_size=1, max_size=60),
    cut=st.integers(1, 9),
    first=st.integers(0, 20),
    running=st.integers(-1, 45),
    until=st.integers(0, 45),
)
def test_the_end_of_a_moment_is_exact_to_the_record(
    tmp_path_factory: pytest.TempPathFactory, times: list[int], cut: int, first: int, running: int, until: int
) -> None:
    counts = [min(cut, len(times) - start) for start in range(0, len(times), cut)]
    place = tmp_path_factory.mktemp("log")
    write_log(place, make_log(counts, times), segment_bytes=400)
    first = min(first, len(times))
    end = reader.log_time_end(partition_of(place), first, len(times), running, until)
    assert end == (naive_end(times, first, running, until) if running < until else (first, running))


def test_batch_headers_are_read_without_their_bodies(tmp_path: Path) -> None:
    records = writer.record_columns([b"k"] * 40, [b"v" * 50_000] * 40, list(range(40)))
    log = encoding.encode(records, encoding.plan(records, [4] * 10))
    write_log(tmp_path, log, committed=30)
    partition = partition_of(tmp_path)
    rows = pa.Table.from_batches(list(reader.scan_batches(partition, 6, 33))).to_pylist()
    assert [(row["base_offset"], row["last_offset"]) for row in rows] == [(4 * n, 4 * n + 3) for n in range(1, 9)]
    assert [row["size_bytes"] for row in rows] == log.headers[1:9, rb.SIZE].tolist()
    assert [row["max_timestamp_ms"] for row in rows] == [4 * n + 3 for n in range(1, 9)]
    assert [row["uncommitted"] for row in rows] == [row["last_offset"] >= 30 for row in rows]
    assert {row["control_type"] for row in rows} == {None}


def test_control_batches_say_what_they_decide(tmp_path: Path) -> None:
    folder = tmp_path / "orders-0"
    folder.mkdir()
    pieces = [
        writer.encode_batch(
            writer.record_columns([b"k"], [b"v"], [5]),
            base_offset=0,
            transactional=True,
            producer_id=9,
            producer_epoch=1,
        )
    ]
    for offset, kind in ((1, writer.COMMIT), (2, writer.ABORT), (3, 7)):
        pieces.append(writer.encode_control_batch(kind, offset=offset, timestamp_ms=6, producer_id=9, producer_epoch=1))
    (folder / "00000000000000000000.log").write_bytes(b"".join(pieces))
    partition = partition_of(tmp_path)
    rows = pa.Table.from_batches(list(reader.scan_batches(partition, 0, 4))).to_pylist()
    assert [row["control_type"] for row in rows] == [None, "COMMIT", "ABORT", "OTHER"]
    assert [row["transactional"] for row in rows] == [True] * 4
    records = pa.Table.from_batches([chunk.records for chunk in reader.read_split(split_of(partition))])
    assert records["is_control"].to_pylist() == [False, True, True, True]
    assert records["producer_id"].to_pylist() == [9] * 4


def test_records_below_the_log_start_are_taken_and_flagged(tmp_path: Path) -> None:
    write_log(tmp_path, make_log([4, 4]))
    writer.write_checkpoints(tmp_path, log_starts={(TOPIC, 0): 5})
    records = pa.Table.from_batches([chunk.records for chunk in reader.read_split(split_of(partition_of(tmp_path)))])
    assert records["below_log_start"].to_pylist() == [True] * 5 + [False] * 3


def test_a_split_carries_only_the_files_it_reads(tmp_path: Path) -> None:
    write_log(tmp_path, make_log([4] * 50), segment_bytes=1)
    partition = partition_of(tmp_path)
    assert len(partition.copies[0].segments) == 50
    splits = reader.splits(partition, 0, 200, 400)
    assert len(splits) > 5
    assert max(len(split.partition.copies[0].segments) for split in splits) < 12
    assert replace(splits[0].partition, copies=()) == replace(partition, copies=())
