"""Damaged segments: never a crash, never a hang; every offset is read or named as missing."""

import hashlib
import zlib
from dataclasses import dataclass
from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest

from sharelens.kafka_log import reader
from sharelens.kafka_log import record_batch as rb
from sharelens.kafka_log.layout import scan_log_directory
from sharelens.kafka_log.reasons import REASONS
from sharelens.kafka_log.union import LogPartition, unite
from tools.log_writer import encoding, writer

TOPIC = "__share_group_state"
SEGMENT = "00000000000000000000.log"


def make_log(counts: list[int], codecs: list[int] | None = None) -> encoding.Encoded:
    """Batches of so many records; record n has key `kn` and a value of its own."""
    total = sum(counts)
    records = writer.record_columns(
        [b"k%d" % row for row in range(total)],
        [None if row % 7 == 3 else hashlib.sha256(b"%d" % row).digest() for row in range(total)],
        [1_000 + row for row in range(total)],
    )
    return encoding.encode(records, encoding.plan(records, counts, attributes=codecs or [0] * len(counts)))


def write_log(
    place: Path, log: encoding.Encoded, *, segment_bytes: int = 1 << 30, committed: int | None = None
) -> Path:
    """A log directory with one partition; `committed` None: everything is."""
    end = int(log.headers[-1, rb.LAST_OFFSET]) + 1 if committed is None else committed
    writer.write_partition(place, TOPIC, 0, log, segment_bytes=segment_bytes)
    writer.write_checkpoints(place, high_watermarks={(TOPIC, 0): end})
    return place / f"{TOPIC}-0"


def partition_of(place: Path) -> LogPartition:
    """The one partition of a log directory."""
    (partition,) = unite([scan_log_directory(str(place))])
    return partition


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """What a read gave: key by offset, problem rows, offsets that problems name."""

    keys: dict[int, bytes]
    problems: list[dict[str, object]]
    missing: set[int]
    end: int


def read_all(place: Path, *, split_bytes: int = 1 << 20) -> Read:
    """Read everything up to the readable end, split by split; offsets ascend and come once."""
    partition = partition_of(place)
    end = reader.readable_end(partition, include_uncommitted=True)
    keys: dict[int, bytes] = {}
    problems: list[dict[str, object]] = []
    for split in reader.splits(partition, 0, end, split_bytes):
        before = split.from_offset - 1
        for chunk in reader.read_split(split, include_uncommitted=True):
            for offset, key in zip(chunk.records["offset"].to_pylist(), chunk.records["key"].to_pylist(), strict=True):
                assert before < offset < split.to_offset
                before = offset
                keys[offset] = key
            problems += chunk.problems.to_pylist()
    assert {row["reason"] for row in problems} <= REASONS.keys()
    missing = {offset for row in problems if row["first_offset"] is not None for offset in _range(row)}
    return Read(keys=keys, problems=problems, missing=missing, end=end)


def ranges(problems):
    """Reason, first and last offset of each problem."""
    return [(row["reason"], row["first_offset"], row["last_offset"]) for row in problems]


def _range(row: dict[str, object]) -> range:
    first, last = row["first_offset"], row["last_offset"]
    assert isinstance(first, int)
    assert isinstance(last, int)
    return range(first, min(last, first + 10_000) + 1)


def change(path: Path, log: encoding.Encoded, batch: int, at: int, raw: bytes) -> None:
    """Overwrite bytes of one batch."""
    data = bytearray(path.read_bytes())
    start = int(log.headers[batch, rb.POSITION]) + at
    data[start : start + len(raw)] = raw
    path.write_bytes(data)


ABSURD = [b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x00\x00\x00\x00", b"\x0f\xff\xff\xff"]


@pytest.mark.parametrize(
    ("damage", "at", "raw", "reason"),
    [
        *[("length", 8, raw, "bad_header") for raw in ABSURD],
        ("length too short", 8, b"\x00\x00\x00\x40", "crc_mismatch"),
        ("magic", 16, b"\x03", "bad_header"),
        ("old magic", 16, b"\x01", "crc_mismatch"),
        ("checksum", 17, b"\x00\x00\x00\x00", "crc_mismatch"),
        ("negative count", 57, b"\xff\xff\xff\xfe", "bad_header"),
        ("negative last offset", 23, b"\x80\x00\x00\x00", "bad_header"),
        ("absurd count", 57, b"\x00\x00\x00\x05", "crc_mismatch"),
        ("a record", 70, b"\xff\xff\xff", "crc_mismatch"),
    ],
)
def test_a_broken_batch_is_stepped_over_and_exactly_it_is_missing(
    tmp_path: Path, damage: str, at: int, raw: bytes, reason: str
) -> None:
    log = make_log([5, 6, 7])
    folder = write_log(tmp_path, log)
    change(folder / SEGMENT, log, 1, at, raw)
    read = read_all(tmp_path)
    assert sorted(read.keys) == [*range(5), *range(11, 18)], damage
    assert ranges(read.problems) == [(reason, 5, 10)], damage
    assert read.problems[0]["position"] == log.headers[1, rb.POSITION]
    assert str(read.problems[0]["file"]).endswith(SEGMENT)


def resealed(log: encoding.Encoded, batch: int, at: int, raw: bytes) -> encoding.Encoded:
    """The log with bytes of one batch changed and its checksum made to fit: what a broken writer leaves."""
    headers = log.headers.copy()
    data = log.data.copy()
    start = int(headers[batch, rb.POSITION])
    data[start + at : start + at + len(raw)] = np.frombuffer(raw, dtype=np.uint8)
    encoding.seal(data, headers)
    return encoding.Encoded(data=data, headers=headers)


@pytest.mark.parametrize(
    ("at", "raw", "reason"),
    [
        (57, b"\x00\x00\x00\x05", "malformed_records"),
        (61, b"\x02", "malformed_records"),
        (61, b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "malformed_records"),
        (64, b"\x63", "malformed_records"),
        (21, b"\x00\x01", "bad_compression"),
        (21, b"\x00\x02", "bad_compression"),
        (21, b"\x00\x03", "bad_compression"),
        (21, b"\x00\x04", "bad_compression"),
        (21, b"\x00\x07", "unsupported_codec"),
    ],
)
def test_records_that_do_not_parse_are_a_problem_of_their_batch(
    tmp_path: Path, at: int, raw: bytes, reason: str
) -> None:
    log = resealed(make_log([5, 6, 7]), 1, at, raw)
    write_log(tmp_path, log)
    read = read_all(tmp_path)
    assert sorted(read.keys) == [*range(5), *range(11, 18)]
    assert ranges(read.problems) == [(reason, 5, 10)]


def test_more_records_than_bytes_are_refused_before_memory_is_taken(tmp_path: Path) -> None:
    log = make_log([5, 6, 7])
    counts = (1_000_000).to_bytes(4, "big")
    log = resealed(log, 2, 57, counts)
    log = resealed(log, 2, 23, counts)
    write_log(tmp_path, log)
    read = read_all(tmp_path)
    assert sorted(read.keys) == list(range(11))
    assert [(row["reason"], row["first_offset"]) for row in read.problems] == [("bad_record_count", 11)]


@pytest.mark.slow
def test_a_torn_tail_of_the_active_segment_is_no_problem(tmp_path: Path) -> None:
    log = make_log([5, 6, 7])
    folder = write_log(tmp_path, log, committed=11)
    raw = (folder / SEGMENT).read_bytes()
    cuts = [*range(int(log.headers[2, rb.POSITION]) + 1, len(raw), 9), len(raw) - 1]
    for cut in cuts:
        (folder / SEGMENT).write_bytes(raw[:cut])
        read = read_all(tmp_path)
        assert (sorted(read.keys), read.problems, read.end) == (list(range(11)), [], 11)
    assert len(cuts) > 20


@pytest.mark.parametrize("committed", [11, None])
def test_a_complete_last_batch_with_a_wrong_checksum_is_a_problem(tmp_path: Path, committed: int | None) -> None:
    log = make_log([5, 6, 7])
    folder = write_log(tmp_path, log, committed=11)
    if committed is None:
        (tmp_path / "replication-offset-checkpoint").unlink()
    change(folder / SEGMENT, log, 2, 80, b"\x00\x00\x00")
    read = read_all(tmp_path)
    assert sorted(read.keys) == list(range(11))
    assert ranges(read.problems) == [("crc_mismatch", 11, 17)]
    assert reader.log_end(partition_of(tmp_path)) == reader.LogEnd(end_offset=18, unreadable_bytes=0, newest_ms=1010)


def test_several_complete_batches_with_wrong_checksums_end_the_log_and_the_torn_one_behind_is_counted(
    tmp_path: Path,
) -> None:
    log = make_log([5, 6, 7, 8])
    folder = write_log(tmp_path, log, committed=0)
    for batch in (1, 2):
        change(folder / SEGMENT, log, batch, 80, b"\x00\x00\x00")
    path = folder / SEGMENT
    path.write_bytes(path.read_bytes()[:-20])
    read = read_all(tmp_path)
    assert sorted(read.keys) == list(range(5))
    assert ranges(read.problems) == [("crc_mismatch", 5, 17)]
    torn = int(log.headers[3, rb.SIZE]) - 20
    assert reader.log_end(partition_of(tmp_path)) == reader.LogEnd(end_offset=18, unreadable_bytes=torn, newest_ms=1004)


@pytest.mark.parametrize(
    ("at", "raw", "last"),
    [
        (23, b"\x7f\xff\xff\xf0", 17),  # the last offset delta: the record count still says seven
        (57, b"\x00\x00\x00\x02", 12),  # the record count: two offsets at least
        (0, b"\x7f\xff\xff\xff", 17),  # the base offset: impossible in this segment
    ],
)
def test_a_header_with_a_wrong_checksum_claims_no_more_offsets_than_its_fields_agree_on(
    tmp_path: Path, at: int, raw: bytes, last: int
) -> None:
    log = make_log([5, 6, 7])
    folder = write_log(tmp_path, log, committed=11)
    change(folder / SEGMENT, log, 2, 80, b"\x00\x00\x00")
    change(folder / SEGMENT, log, 2, at, raw)
    read = read_all(tmp_path)
    assert [(row["first_offset"], row["last_offset"]) for row in read.problems] == [(11, last)]


def test_bytes_of_a_torn_tail_are_counted_and_those_of_empty_space_are_not(tmp_path: Path) -> None:
    log = make_log([5, 6, 7])
    folder = write_log(tmp_path, log, committed=11)
    path, torn = folder / SEGMENT, int(log.headers[2, rb.SIZE]) - 200
    path.write_bytes(path.read_bytes()[:-200])
    assert reader.log_end(partition_of(tmp_path)) == reader.LogEnd(end_offset=11, unreadable_bytes=torn, newest_ms=1010)
    path.write_bytes(path.read_bytes() + bytes(100))
    assert reader.log_end(partition_of(tmp_path)).unreadable_bytes == torn


def test_a_torn_tail_below_the_committed_end_is_a_problem_once(tmp_path: Path) -> None:
    log = make_log([5, 6, 7])
    folder = write_log(tmp_path, log)
    path = folder / SEGMENT
    path.write_bytes(path.read_bytes()[:-10])
    read = read_all(tmp_path)
    assert read.end == 18
    assert ranges(read.problems) == [("truncated", 11, 17)]


def test_a_cut_in_a_closed_segment_is_a_problem(tmp_path: Path) -> None:
    log = make_log([5, 6, 7])
    folder = write_log(tmp_path, log, segment_bytes=1, committed=11)
    path = folder / "00000000000000000005.log"
    path.write_bytes(path.read_bytes()[:-10])
    read = read_all(tmp_path)
    assert sorted(read.keys) == [*range(5), *range(11, 18)]
    assert ranges(read.problems) == [("truncated", 5, 10)]


def test_messages_of_before_kafka_0_11_are_named_not_read(tmp_path: Path) -> None:
    log = make_log([5, 6, 7])
    folder = write_log(tmp_path, log)
    start, end = int(log.headers[1, rb.POSITION]), int(log.headers[2, rb.POSITION])
    content = b"\x01\x00" + bytes(8) + b"\xff\xff\xff\xff" + b"\x00\x00\x00\x01x"
    sets = b"".join(
        offset.to_bytes(8, "big")
        + (len(content) + 4).to_bytes(4, "big")
        + zlib.crc32(content).to_bytes(4, "big")
        + content
        for offset in range(5, 11)
    )
    raw = log.data.tobytes()
    (folder / SEGMENT).write_bytes(raw[:start] + sets + raw[end:])
    read = read_all(tmp_path)
    assert sorted(read.keys) == [*range(5), *range(11, 18)]
    assert ranges(read.problems) == [("unsupported_magic", 5, 10)]


def test_a_batch_inside_a_value_is_never_taken_for_the_logs_own(tmp_path: Path) -> None:
    inner = writer.encode_batch(writer.record_columns([b"x"], [b"y"], [1]), base_offset=3)
    records = writer.record_columns([b"a", b"b", b"c"], [b"1", inner, b"3"], [1, 2, 3])
    log = encoding.encode(records, encoding.plan(records, [1, 1, 1]))
    folder = write_log(tmp_path, log)
    change(folder / SEGMENT, log, 1, 17, b"\x00\x00\x00\x00")
    read = read_all(tmp_path)
    assert read.keys == {0: b"a", 2: b"c"}
    assert read.missing == {1}


def test_a_batch_twice_gives_its_records_once_and_loses_none(tmp_path: Path) -> None:
    log = make_log([5, 6, 7])
    folder = write_log(tmp_path, log)
    raw = log.data.tobytes()
    start, end = int(log.headers[1, rb.POSITION]), int(log.headers[2, rb.POSITION])
    (folder / SEGMENT).write_bytes(raw[:end] + raw[start:end] + raw[end:])
    read = read_all(tmp_path)
    assert sorted(read.keys) == list(range(18))
    assert [(row["reason"], row["first_offset"]) for row in read.problems] == [("out_of_order", None)]


def test_swapped_batches_are_read_or_named(tmp_path: Path) -> None:
    log = make_log([5, 6, 7, 8])
    folder = write_log(tmp_path, log)
    raw = log.data.tobytes()
    cuts = [int(position) for position in log.headers[:, rb.POSITION]]
    swapped = raw[: cuts[1]] + raw[cuts[2] : cuts[3]] + raw[cuts[1] : cuts[2]] + raw[cuts[3] :]
    (folder / SEGMENT).write_bytes(swapped)
    read = read_all(tmp_path)
    assert set(read.keys) | read.missing == set(range(26))
    assert set(read.keys) >= {*range(11), *range(18, 26)}


def test_zeros_behind_the_last_batch_are_space_not_damage(tmp_path: Path) -> None:
    log = make_log([5, 6])
    folder = write_log(tmp_path, log)
    path = folder / SEGMENT
    path.write_bytes(path.read_bytes() + bytes(100_000))
    read = read_all(tmp_path)
    assert (sorted(read.keys), read.problems) == (list(range(11)), [])


@st.composite
def wounds(draw: st.DrawFn) -> list[tuple[str, float, float, bytes]]:
    """What happens to a file: kind, where (as a part of it), how much (likewise), bytes."""
    kinds = st.sampled_from(["flip", "cut", "zero", "repeat", "insert", "length"])
    part = st.floats(0, 1, exclude_max=True)
    return draw(st.lists(st.tuples(kinds, part, part, st.binary(min_size=1, max_size=60)), min_size=1, max_size=3))


def _wound(raw: bytearray, starts: list[int], wound: tuple[str, float, float, bytes]) -> None:
    kind, where, much, junk = wound
    at = int(where * len(raw))
    start = starts[int(where * len(starts))]
    if kind == "flip":
        raw[at] ^= 1 << int(much * 8)
    elif kind == "cut":
        del raw[at:]
    elif kind == "zero":
        end = min(len(raw), at + 1 + int(much * 200))
        raw[at:end] = bytes(end - at)
    elif kind == "repeat":
        other = starts[int(much * len(starts))]
        raw[start:start] = raw[other : other + 200]
    elif kind == "insert":
        raw[at:at] = junk
    elif start + 12 <= len(raw):
        raw[start + 8 : start + 12] = ABSURD[int(much * len(ABSURD))]


@pytest.mark.slow
@hypothesis.given(
    counts=st.lists(st.integers(1, 9), min_size=2, max_size=20),
    codecs=st.lists(st.sampled_from([0, 0, 1, 2, 3, 4]), min_size=20, max_size=20),
    segment_bytes=st.sampled_from([400, 1500, 1 << 30]),
    victim=st.floats(0, 1, exclude_max=True),
    wounds=wounds(),
    with_index=st.booleans(),
)
def test_any_damage_is_survived_and_every_protected_offset_accounted_for(
    tmp_path_factory: pytest.TempPathFactory,
    counts: list[int],
    codecs: list[int],
    segment_bytes: int,
    victim: float,
    wounds: list[tuple[str, float, float, bytes]],
    with_index: bool,
) -> None:
    place = tmp_path_factory.mktemp("log")
    log = make_log(counts, codecs[: len(counts)])
    folder = write_log(place, log, segment_bytes=segment_bytes)
    if not with_index:
        for index in folder.glob("*.index"):
            index.unlink()
    files = sorted(folder.glob("*.log"))
    path = files[int(victim * len(files))]
    raw = bytearray(path.read_bytes())
    starts = _batch_starts(log, path)
    for wound in wounds:
        if raw:
            _wound(raw, starts, wound)
    path.write_bytes(raw)
    read = read_all(place, split_bytes=700)
    assert sum(batch.num_rows for batch in reader.scan_batches(partition_of(place), 0, read.end)) <= len(raw) + 10_000
    untouched = {
        offset
        for row in log.headers
        for offset in range(int(row[rb.BASE_OFFSET]), int(row[rb.LAST_OFFSET]) + 1)
        if not _inside(path, files, int(row[rb.BASE_OFFSET]))
    }
    assert {offset for offset in untouched if read.keys.get(offset) == b"k%d" % offset} >= untouched - read.missing
    if [wound[0] for wound in wounds] in (["flip"], ["insert"], ["length"]) and not _hits_offset(raw, log, path):
        all_offsets = set(range(sum(counts)))
        assert set(read.keys) | read.missing == all_offsets
        assert all(read.keys[offset] == b"k%d" % offset for offset in read.keys)


def _batch_starts(log: encoding.Encoded, path: Path) -> list[int]:
    """Positions, in one segment, of its batches."""
    size, base = path.stat().st_size, int(path.stem)
    positions = log.headers[log.headers[:, rb.BASE_OFFSET] >= base, rb.POSITION]
    positions = positions - positions[0]
    return [int(position) for position in positions[positions < size]]


def _inside(path: Path, files: list[Path], offset: int) -> bool:
    """Whether the segment `path` is the one that holds an offset."""
    holder = [file for file in files if int(file.stem) <= offset][-1]
    return holder == path


def _hits_offset(raw: bytes, log: encoding.Encoded, path: Path) -> bool:
    """Whether a base offset was changed: it lies outside the checksum, so that nothing may tell."""
    starts = _batch_starts(log, path)
    base = int(path.stem)
    bases = log.headers[log.headers[:, rb.BASE_OFFSET] >= base, rb.BASE_OFFSET]
    sound = all(
        raw[start : start + 8] == int(offset).to_bytes(8, "big") or raw[start : start + 8] == b""
        for start, offset in zip(starts, bases.tolist(), strict=False)
    )
    return not sound


def test_arrow_rows_of_problems_have_the_problem_schema(tmp_path: Path) -> None:
    log = make_log([5, 6, 7])
    folder = write_log(tmp_path, log)
    change(folder / SEGMENT, log, 1, 17, b"\x00\x00\x00\x00")
    partition = partition_of(tmp_path)
    (split,) = reader.splits(partition, 0, 18, 1 << 20)
    problems = pa.Table.from_batches([chunk.problems for chunk in reader.read_split(split)])
    (row,) = problems.to_pylist()
    assert row["source_id"] == partition.copies[0].source_id
    assert (row["topic"], row["partition"]) == (TOPIC, 0)
    start, size = int(log.headers[1, rb.POSITION]), int(log.headers[1, rb.SIZE])
    damaged = bytearray(log.data[start : start + size].tobytes())
    damaged[17:21] = bytes(4)
    assert row["bytes"] == bytes(damaged)


def test_of_user_topics_no_payload_is_kept(tmp_path: Path) -> None:
    records = writer.record_columns([b"secret"] * 3, [b"secret"] * 3, [1, 2, 3])
    log = encoding.encode(records, encoding.plan(records, [1, 1, 1]))
    folder = writer.write_partition(tmp_path, "orders", 0, log)
    change(folder / SEGMENT, log, 1, 17, b"\x00\x00\x00\x00")
    (split,) = reader.splits(partition_of(tmp_path), 0, 3, 1 << 20)
    rows = [row for chunk in reader.read_split(split) for row in chunk.problems.to_pylist()]
    assert [len(row["bytes"]) for row in rows] == [rb.HEADER_BYTES]
    assert b"secret" not in rows[0]["bytes"]
