"""Several copies of one log read as one: whole, short, broken, compacted, replaced, contradicting."""

import itertools
import shutil
from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest

from sharelens.kafka_log import reader
from sharelens.kafka_log import record_batch as rb
from sharelens.kafka_log.errors import CopyConflictError, MixedClustersError
from sharelens.kafka_log.layout import scan_log_directory
from sharelens.kafka_log.schemas import LOG_RECORD, PROBLEM
from sharelens.kafka_log.union import LogPartition, unite
from tools.log_writer import encoding, writer

TOPIC = "__share_group_state"
TOPIC_ID = "Fux62faITayNUQtdp4cGlg"


def make_log(
    counts: list[int], *, epochs: list[int] | None = None, base_offset: int = 0, salt: bytes = b""
) -> encoding.Encoded:
    total = sum(counts)
    records = writer.record_columns(
        [b"k%d" % (base_offset + row) for row in range(total)],
        [salt + b"v%d" % (base_offset + row) for row in range(total)],
        [1_000 + base_offset + row for row in range(total)],
    )
    plan = encoding.plan(records, counts, base_offset=base_offset, leader_epoch=epochs or 0)
    return encoding.encode(records, plan, base_offset=base_offset)


def joined(*logs: encoding.Encoded) -> encoding.Encoded:
    """Logs one behind the other."""
    tables, start = [], 0
    for log in logs:
        table = log.headers.copy()
        table[:, rb.POSITION] += start
        start += len(log.data)
        tables.append(table)
    return encoding.Encoded(data=np.concatenate([log.data for log in logs]), headers=np.concatenate(tables))


def batches(log: encoding.Encoded, first: int, last: int) -> encoding.Encoded:
    """Some batches of a log, as another copy may hold them."""
    table = log.headers[first:last].copy()
    start, end = int(table[0, rb.POSITION]), int(table[-1, rb.POSITION] + table[-1, rb.SIZE])
    table[:, rb.POSITION] -= start
    return encoding.Encoded(data=log.data[start:end], headers=table)


def write_copy(
    place: Path, log: encoding.Encoded, *, committed: int | None = None, segment_bytes: int = 1 << 30
) -> Path:
    writer.write_partition(place, TOPIC, 0, log, topic_id=TOPIC_ID, segment_bytes=segment_bytes)
    if committed is not None:
        writer.write_checkpoints(place, high_watermarks={(TOPIC, 0): committed})
    return place


def united(*places: Path) -> LogPartition:
    (partition,) = unite([scan_log_directory(str(place)) for place in places])
    return partition


def read(partition: LogPartition, first: int = 0, last: int | None = None, *, split_bytes: int = 300) -> pa.Table:
    end = reader.readable_end(partition, include_uncommitted=True) if last is None else last
    chunks = [chunk for split in reader.splits(partition, first, end, split_bytes) for chunk in _chunks(split)]
    return pa.Table.from_batches([chunk.records for chunk in chunks], schema=LOG_RECORD)


def problems(partition: LogPartition) -> list[tuple[str, int, int]]:
    end = reader.readable_end(partition, include_uncommitted=True)
    split = reader.Split(partition=partition, from_offset=0, to_offset=end)
    table = pa.Table.from_batches([chunk.problems for chunk in _chunks(split)], schema=PROBLEM)
    return [(row["reason"], row["first_offset"], row["last_offset"]) for row in table.to_pylist()]


def _chunks(split: reader.Split) -> list[reader.Chunk]:
    return list(reader.read_split(split, include_uncommitted=True, batch_bytes=400))


def break_batch(place: Path, offset: int) -> None:
    """Spoil the checksum of the batch that starts at an offset."""
    for path in place.glob("*/*.log"):
        raw = bytearray(path.read_bytes())
        at = raw.find(offset.to_bytes(8, "big"))
        while at >= 0 and raw[at + 16] != 2:
            at = raw.find(offset.to_bytes(8, "big"), at + 1)
        if at >= 0:
            raw[at + 30] ^= 0xFF
            path.write_bytes(raw)
            return
    raise AssertionError(f"no batch starts at {offset}")


@pytest.mark.slow
def test_replicas_with_short_tails_and_a_broken_batch_each_are_the_whole_log(tmp_path: Path) -> None:
    log = make_log([3] * 30)
    clean = read(united(write_copy(tmp_path / "clean", log)))
    assert clean.num_rows == 90
    places = [
        write_copy(tmp_path / "a", batches(log, 0, 22), segment_bytes=700),
        write_copy(tmp_path / "b", batches(log, 5, 30), segment_bytes=1100),
        write_copy(tmp_path / "c", batches(log, 0, 27), segment_bytes=500),
    ]
    for place, offset in zip(places, (18, 45, 63), strict=True):
        break_batch(place, offset)
    orders = list(itertools.permutations(places))
    for order in orders:
        partition = united(*order)
        assert read(partition).equals(clean)
        assert problems(partition) == []
    assert len(orders) == 6


@pytest.mark.slow
def test_what_no_copy_has_whole_is_missing_once_for_each_copy(tmp_path: Path) -> None:
    log = make_log([3] * 10)
    first, second = write_copy(tmp_path / "a", log), write_copy(tmp_path / "b", batches(log, 0, 8))
    break_batch(first, 6)
    break_batch(second, 6)
    break_batch(first, 27)
    damages = [("crc_mismatch", 6, 8), ("crc_mismatch", 6, 8), ("crc_mismatch", 27, 29)]
    assert problems(united(first, second)) == damages
    writer.write_checkpoints(first, high_watermarks={(TOPIC, 0): 30})
    assert problems(united(first, second)) == damages
    offsets = read(united(first, second))["offset"].to_pylist()
    assert offsets == [offset for offset in range(27) if offset not in (6, 7, 8)]


def test_a_first_segment_that_comes_later_fills_the_front(tmp_path: Path) -> None:
    log = make_log([3] * 20)
    late = write_copy(tmp_path / "late", log, segment_bytes=400)
    first = sorted(late.glob("*/*.log"))[0]
    all_rows = read(united(late))
    (tmp_path / "rest").mkdir()
    shutil.copytree(late, tmp_path / "rest", dirs_exist_ok=True)
    (tmp_path / "rest" / f"{TOPIC}-0" / first.name).unlink()
    rest = read(united(tmp_path / "rest"))
    assert 0 < rest.num_rows < all_rows.num_rows
    assert read(united(tmp_path / "rest", late)).equals(all_rows)


def test_the_higher_leader_epoch_wins_and_what_followed_the_loser_is_superseded(tmp_path: Path) -> None:
    shared = make_log([5, 5], epochs=[0, 0])
    loser = joined(shared, make_log([2, 2, 2], epochs=[1, 1, 1], base_offset=10, salt=b"old "))
    winner = joined(shared, make_log([3], epochs=[2], base_offset=10, salt=b"new "))
    old, new = write_copy(tmp_path / "old", loser), write_copy(tmp_path / "new", winner)
    for order in ((old, new), (new, old)):
        partition = united(*order)
        assert reader.readable_end(partition, include_uncommitted=True) == 13
        table = read(partition)
        assert table["offset"].to_pylist() == list(range(13))
        assert table["value"].to_pylist()[10:] == [b"new v10", b"new v11", b"new v12"]
        assert table["leader_epoch"].to_pylist()[10:] == [2, 2, 2]
        assert problems(partition) == [("superseded", 10, 11), ("superseded", 12, 13)]


def test_a_superseded_batch_is_kept_with_its_bytes(tmp_path: Path) -> None:
    shared = make_log([5], epochs=[0])
    lost = make_log([2, 2], epochs=[1, 1], base_offset=5, salt=b"old ")
    winner = joined(shared, make_log([4], epochs=[2], base_offset=5, salt=b"new "))
    partition = united(write_copy(tmp_path / "old", joined(shared, lost)), write_copy(tmp_path / "new", winner))
    (split,) = reader.splits(partition, 0, 9, 1 << 20)
    pieces = [row for chunk in _chunks(split) for row in chunk.problems["bytes"].to_pylist()]
    assert b"".join(pieces) == lost.data.tobytes()


def test_superseded_batches_are_told_without_the_offset_where_the_copies_parted(tmp_path: Path) -> None:
    shared = make_log([5, 5], epochs=[0, 0])
    loser = joined(shared, make_log([2, 2, 2], epochs=[1, 1, 1], base_offset=10, salt=b"old "))
    winner = joined(shared, make_log([3, 9], epochs=[2, 2], base_offset=10, salt=b"new "))
    partition = united(write_copy(tmp_path / "old", loser), write_copy(tmp_path / "new", winner))
    values = read(partition, 14, 22)["value"].to_pylist()
    assert values == [b"new v%d" % offset for offset in range(14, 22)]


def test_a_broken_epoch_field_does_not_replace_a_log(tmp_path: Path) -> None:
    log = make_log([3] * 10)
    clean, broken = write_copy(tmp_path / "a", log), write_copy(tmp_path / "b", log)
    path = next(broken.glob("*/*.log"))
    raw = bytearray(path.read_bytes())
    at = int(log.headers[4, rb.POSITION])
    raw[at + 12 : at + 16] = (9_999).to_bytes(4, "big")
    path.write_bytes(raw)
    partition = united(clean, broken)
    assert read(partition, split_bytes=1 << 20)["offset"].to_pylist() == list(range(30))
    assert problems(partition) == []


def test_equal_epochs_with_different_bytes_stop_the_read_and_name_both_files(tmp_path: Path) -> None:
    first = write_copy(tmp_path / "first", make_log([5, 5]))
    other = write_copy(tmp_path / "other", joined(make_log([5]), make_log([5], base_offset=5, salt=b"x")))
    with pytest.raises(CopyConflictError) as caught:
        read(united(first, other))
    message = str(caught.value)
    assert str(first) in message
    assert str(other) in message
    assert f"{TOPIC}-0 @ 5" in message
    assert "\n" not in message


def compacted(log: encoding.Encoded, keep: list[int]) -> encoding.Encoded:
    """What the log cleaner leaves: some records, in batches that keep their offsets."""
    pieces = []
    for row in log.headers:
        base, last = int(row[rb.BASE_OFFSET]), int(row[rb.LAST_OFFSET])
        kept_offsets = [offset for offset in keep if base <= offset <= last]
        if kept_offsets:
            columns = writer.record_columns(
                [b"k%d" % offset for offset in kept_offsets],
                [b"v%d" % offset for offset in kept_offsets],
                [1000 + o for o in kept_offsets],
            )
            columns = columns.append_column("offset", pa.array(kept_offsets, pa.int64()))
            table = encoding.plan(columns, [len(kept_offsets)])
            table[:, rb.BASE_OFFSET], table[:, rb.LAST_OFFSET] = base, last
            pieces.append(encoding.encode(columns, table))
    return joined(*pieces)


@pytest.mark.soak
@pytest.mark.slow
def test_a_compacted_copy_and_a_whole_one_are_no_conflict(tmp_path: Path) -> None:
    log = make_log([4] * 12)
    full_copy = write_copy(tmp_path / "whole", log)
    alone = read(united(full_copy))
    sparse = write_copy(tmp_path / "sparse", compacted(log, [1, 2, 9, 17, 30, 46, 47]))
    assert read(united(sparse))["offset"].to_pylist() == [1, 2, 9, 17, 30, 46, 47]
    assert problems(united(sparse)) == []
    for order in ((full_copy, sparse), (sparse, full_copy)):
        partition = united(*order)
        table = read(partition)
        for column in ("offset", "timestamp_ms", "key", "value", "base_offset"):
            assert table[column].to_pylist() == alone[column].to_pylist()
        assert problems(partition) == []


def without_records(log: encoding.Encoded) -> encoding.Encoded:
    """The first batch of a log as the log cleaner keeps it for its producer: a header alone."""
    data, table = log.data[: rb.HEADER_BYTES].copy(), log.headers[:1].copy()
    table[0, rb.SIZE], table[0, rb.RECORD_COUNT] = rb.HEADER_BYTES, 0
    data[8:12] = np.frombuffer((rb.HEADER_BYTES - 12).to_bytes(4, "big"), np.uint8)
    data[-4:] = 0
    encoding.seal(data, table)
    return encoding.Encoded(data=data, headers=table)


def test_copies_with_a_batch_without_records_are_the_log_behind_it(tmp_path: Path) -> None:
    log = make_log([4, 4])
    cleaned = joined(without_records(log), batches(log, 1, 2))
    copies = united(*(write_copy(tmp_path / name, cleaned, segment_bytes=1) for name in "ab"))
    assert read(copies)["offset"].to_pylist() == [4, 5, 6, 7]
    assert problems(copies) == []


def test_log_start_and_committed_end_are_the_maximum_over_the_copies(tmp_path: Path) -> None:
    log = make_log([5, 5])
    first, second = write_copy(tmp_path / "a", log, committed=3), write_copy(tmp_path / "b", log, committed=7)
    writer.write_checkpoints(second, log_starts={(TOPIC, 0): 4})
    partition = united(first, second)
    assert (partition.log_start_offset, partition.committed_end) == (4, 7)
    table = read(partition)
    assert table["below_log_start"].to_pylist() == [offset < 4 for offset in range(10)]
    assert table["uncommitted"].to_pylist() == [offset >= 7 for offset in range(10)]
    assert reader.readable_end(partition, include_uncommitted=False) == 7


def test_the_same_directory_twice_is_one_copy(tmp_path: Path) -> None:
    place = write_copy(tmp_path / "a", make_log([5]))
    assert len(united(place, place).copies) == 1


def test_a_copy_without_an_id_belongs_to_the_only_topic_of_its_name(tmp_path: Path) -> None:
    log = make_log([5, 5])
    copy_with_id = write_copy(tmp_path / "a", batches(log, 0, 1))
    writer.write_partition(tmp_path / "b", TOPIC, 0, log)
    partition = united(copy_with_id, tmp_path / "b")
    assert partition.topic_id == TOPIC_ID
    assert read(partition).num_rows == 10


def test_directories_of_different_clusters_are_refused(tmp_path: Path) -> None:
    log = make_log([5])
    for number, name in enumerate(("a", "b")):
        write_copy(tmp_path / name, log)
        writer.write_meta(tmp_path / name, cluster_id=f"cluster-{name}", node_id=number)
    with pytest.raises(MixedClustersError, match="cluster-a.*cluster-b"):
        united(tmp_path / "a", tmp_path / "b")


@pytest.mark.slow
@hypothesis.given(
    counts=st.lists(st.integers(1, 6), min_size=4, max_size=25),
    data=st.data(),
    split_bytes=st.sampled_from([100, 500, 1 << 20]),
)
def test_overlapping_copies_in_any_order_are_the_whole_log(
    tmp_path_factory: pytest.TempPathFactory, counts: list[int], data: st.DataObject, split_bytes: int
) -> None:
    place = tmp_path_factory.mktemp("copies")
    log = make_log(counts)
    clean = read(united(write_copy(place / "clean", log)))
    cut = data.draw(st.integers(1, len(counts) - 1))
    overlap = data.draw(st.integers(0, cut))
    copies = [
        write_copy(place / "front", batches(log, 0, cut), segment_bytes=data.draw(st.sampled_from([150, 1 << 20]))),
        write_copy(place / "back", batches(log, overlap, len(counts))),
    ]
    order = data.draw(st.permutations(copies))
    partition = united(*order)
    assert read(partition, split_bytes=split_bytes).equals(clean)
    headers = pa.Table.from_batches(list(reader.scan_batches(partition, 0, sum(counts))))
    assert headers["base_offset"].to_pylist() == log.headers[:, rb.BASE_OFFSET].tolist()
