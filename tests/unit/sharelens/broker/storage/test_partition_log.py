"""A partition's log: appends count or are refused, reads give whole batches, old segments go, files are Kafka's."""

import errno
from pathlib import Path

import numpy as np
import pytest

from sharelens.broker.errors import (
    InvalidRecordError,
    InvalidTimestampError,
    OffsetOutOfRangeError,
    RecordListTooLargeError,
    RecordTooLargeError,
    StorageError,
)
from sharelens.broker.ports import Record, TopicPartition
from sharelens.broker.storage import record_batch as rb
from sharelens.kafka_log import record_batch as columns
from tests.logs.broker_logs import Clock, all_values, open_log, produced, values
from tools.log_writer.writer import build_indexes

NOW_MS = 1_700_000_000_000


class Disk:
    """Faults around a write: an error of the disk, or only a part of the bytes written."""

    def __init__(self) -> None:
        self.keeps: int | None = None
        self.error: OSError | None = None
        self.error_after: OSError | None = None

    def lost_offsets(self, topic_partition: TopicPartition) -> int:
        return 0

    def before_append(self, topic_partition: TopicPartition, data: bytes) -> bytes:
        if self.error is not None:
            raise self.error
        return data if self.keeps is None else data[: self.keeps]

    def after_append(self, topic_partition: TopicPartition) -> None:
        if self.error_after is not None:
            raise self.error_after


def header_table(path: Path) -> np.ndarray:
    """The batch headers of a segment as the log writer has them."""
    headers = rb.split(path.read_bytes())
    table = np.zeros((len(headers), columns.COLUMNS), dtype=np.int64)
    table[:, columns.POSITION] = [header.position for header in headers]
    table[:, columns.LAST_OFFSET] = [header.last_offset for header in headers]
    table[:, columns.SIZE] = [header.size_bytes for header in headers]
    table[:, columns.MAX_TIMESTAMP] = [header.max_timestamp_ms for header in headers]
    return table


def test_appends_get_ascending_offsets_and_come_back(tmp_path):
    log = open_log(tmp_path)
    assert log.append_records(values("a", "b")) == 0
    assert log.append_records([Record(key=b"k", value=None, headers=(("h", b"x"),), timestamp_ms=7)]) == 2
    assert (log.log_start_offset, log.high_watermark, log.last_stable_offset) == (0, 3, 3)
    assert log.records(1, 2) == [
        Record(key=None, value=b"b", timestamp_ms=NOW_MS, offset=1),
        Record(key=b"k", value=None, headers=(("h", b"x"),), timestamp_ms=7, offset=2),
    ]
    assert log.records(3, 99) == []


def test_a_clients_batch_is_answered_with_its_place(tmp_path):
    log = open_log(tmp_path)
    log.append_records(values("a"))
    appended = log.append_client(produced("b", "c"))
    assert (appended.base_offset, appended.last_offset) == (1, 2)
    assert (appended.log_append_time_ms, appended.log_start_offset, appended.is_duplicate) == (-1, 0, False)
    assert all_values(log) == ["a", "b", "c"]


def test_log_append_time_stands_for_the_producers(tmp_path):
    clock = Clock()
    log = open_log(tmp_path, clock=clock, log_append_time=True)
    clock.pass_ms(5)
    assert log.append_client(produced("a", timestamp_ms=1)).log_append_time_ms == NOW_MS + 5
    log.append_records([Record(key=None, value=b"b", timestamp_ms=3)])
    assert [record.timestamp_ms for record in log.records(0, 1)] == [NOW_MS + 5, NOW_MS + 5]


@pytest.mark.parametrize("codec", range(5))
def test_a_topics_own_compression_type_replaces_the_producers(tmp_path, codec):
    log = open_log(tmp_path, compression_codec=codec)
    log.append_client(produced("a", "b", producer_id=4, sequence=0, codec=3))
    (header,) = rb.split(log.read(0, max_bytes=1000).data)
    assert (header.codec, header.producer_id, header.base_sequence) == (codec, 4, 0)
    assert all_values(log) == ["a", "b"]


def test_batches_that_the_topic_does_not_take_are_refused(tmp_path):
    log = open_log(tmp_path, max_message_bytes=300, segment_bytes=200)
    with pytest.raises(RecordTooLargeError, match=r"max\.message\.bytes is 300"):
        log.append_client(produced("x" * 300))
    with pytest.raises(RecordTooLargeError):
        log.append_records(values("x" * 300))
    with pytest.raises(RecordListTooLargeError):
        log.append_client(produced("x" * 150))
    with pytest.raises(InvalidTimestampError, match="after"):
        log.append_client(produced("x", timestamp_ms=NOW_MS + 3_600_001))
    log.append_client(produced("x", timestamp_ms=NOW_MS + 3_600_000))
    assert log.high_watermark == 1


def test_a_compacted_topic_takes_no_record_without_a_key(tmp_path):
    log = open_log(tmp_path, compacts=True, deletes=False)
    with pytest.raises(InvalidRecordError, match="key"):
        log.append_client(rb.build([Record(key=None, value=b"v", timestamp_ms=NOW_MS)]))
    log.append_client(produced("v"))


def test_reads_give_whole_batches_from_the_one_that_holds_the_offset(tmp_path):
    log = open_log(tmp_path, index_interval_bytes=100)
    for number in range(50):
        log.append_client(produced(f"{number}a", f"{number}b", f"{number}c"))
    size = len(produced("1a", "1b", "1c"))
    fetched = log.read(4, max_bytes=2 * size + 10)
    assert [(span.first_offset, span.last_offset) for span in fetched.spans] == [(3, 5), (6, 8)]
    assert fetched.data == log.read(3, max_bytes=2 * size + 10).data
    assert len(log.read(40, max_bytes=0).spans) == 1
    assert [span.last_offset for span in log.read(0, max_bytes=1 << 20, end_offset=7).spans] == [2, 5, 8]
    assert log.read(7, max_bytes=100, end_offset=7).spans == ()
    assert log.read(150, max_bytes=100).data == b""
    for offset in (-1, 151):
        with pytest.raises(OffsetOutOfRangeError, match=f"offset {offset} is not in 0 to 150"):
            log.read(offset, max_bytes=100)


def test_reading_on_meets_every_batch_once(tmp_path):
    log = open_log(tmp_path, index_interval_bytes=100, segment_bytes=1000)
    for number in range(100):
        log.append_records(values(*[f"v{number}"] * (number % 4 + 1)))
    for max_bytes in (1, 150, 1000, 1 << 20):
        offset, spans = 0, []
        while fetched := log.read(offset, max_bytes=max_bytes).spans:
            spans += fetched
            offset = fetched[-1].last_offset + 1
        assert offset == log.high_watermark
        assert len(spans) == 100


def test_segments_roll_by_size_and_have_kafkas_indexes(tmp_path):
    log = open_log(tmp_path, segment_bytes=4000, index_interval_bytes=500)
    for number in range(200):
        log.append_client(produced(f"v{number}" * 5, timestamp_ms=NOW_MS + number % 7))
    log.close()
    segments = sorted(tmp_path.glob("*.log"))
    assert len(segments) > 3
    for path in segments:
        expected = build_indexes(header_table(path), int(path.stem), interval_bytes=500)
        assert path.with_suffix(".index").read_bytes() == expected.offset_index
        assert path.with_suffix(".timeindex").read_bytes() == expected.time_index


def test_segments_roll_by_age_and_by_a_full_index(tmp_path):
    clock = Clock()
    log = open_log(tmp_path / "age", clock=clock, segment_ms=1000)
    log.append_records(values("a"))
    clock.pass_ms(1001)
    log.append_records(values("b"))
    assert [int(path.stem) for path in sorted((tmp_path / "age").glob("*.log"))] == [0, 1]
    log = open_log(tmp_path / "full", index_interval_bytes=1, segment_index_bytes=80)
    for _ in range(30):
        log.append_records(values("c"))
    assert len(list((tmp_path / "full").glob("*.log"))) == 3


def test_a_log_that_was_closed_opens_as_it_was(tmp_path):
    log = open_log(tmp_path, segment_bytes=500)
    for number in range(30):
        log.append_client(produced(f"v{number}", producer_id=7, sequence=number))
    log.close()
    with pytest.raises(StorageError, match="closed"):
        log.append_records(values("late"))
    log = open_log(tmp_path, is_clean=True, segment_bytes=500)
    assert all_values(log) == [f"v{number}" for number in range(30)]
    assert log.append_client(produced("v29", producer_id=7, sequence=29)).is_duplicate
    assert log.append_client(produced("v30", producer_id=7, sequence=30)).base_offset == 30


def test_leader_epochs_rise_by_two_and_empty_ones_are_forgotten(tmp_path):
    log = open_log(tmp_path)
    log.append_records(values("a", "b", "c"))
    for _ in range(2):
        log.close()
        log = open_log(tmp_path, is_clean=True)
    log.append_records(values("d"))
    assert (tmp_path / "leader-epoch-checkpoint").read_text() == "0\n2\n0 0\n4 3\n"
    assert [header.leader_epoch for header in rb.split(log.read(0, max_bytes=1000).data)] == [0, 4]
    assert [log.epochs.end_offset_for(epoch, 4) for epoch in (-1, 0, 3, 4, 9)] == [
        (-1, -1), (0, 3), (0, 3), (4, 4), (-1, -1),
    ]  # fmt: skip


def test_a_leader_epoch_below_all_ends_at_the_start_of_the_first(tmp_path):
    log = open_log(tmp_path, segment_bytes=80)
    log.append_records(values("a", "b"))
    log.close()
    log = open_log(tmp_path, is_clean=True, segment_bytes=80)
    log.append_records(values("c"))
    log.append_records(values("d"))
    log.delete_records(3)
    assert log.epochs.entries() == ((2, 3),)
    assert log.epochs.end_offset_for(1, 4) == (1, 3)


class Truncation(Disk):
    """A log loses its last offsets before it is opened."""

    def __init__(self, lost_offsets: int) -> None:
        super().__init__()
        self.lost = lost_offsets

    def lost_offsets(self, topic_partition: TopicPartition) -> int:
        return self.lost


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize(("lost", "end"), [(1, 27), (3, 27), (4, 24), (29, 0), (99, 0)])
def test_a_log_loses_the_batches_of_its_last_offsets(tmp_path, lost, end, is_clean):
    log = open_log(tmp_path, segment_bytes=500, index_interval_bytes=50)
    for number in range(10):
        log.append_client(produced(*f"{number}{number}{number}", producer_id=7, sequence=3 * number))
    log.close()
    log = open_log(tmp_path, is_clean=is_clean, recovery_point=30, segment_bytes=500, faults=Truncation(lost))
    assert log.high_watermark == end
    assert all_values(log) == [str(number // 3) for number in range(end)]
    assert log.leader_epoch == 2
    assert log.epochs.end_offset_for(0, end) == (0, end)
    assert log.append_client(produced("new", producer_id=7, sequence=end)).base_offset == end
    log.close()
    log = open_log(tmp_path, is_clean=True, segment_bytes=500)
    assert all_values(log) == [*(str(number // 3) for number in range(end)), "new"]


def test_leader_epochs_are_rebuilt_from_the_batches(tmp_path):
    log = open_log(tmp_path)
    log.append_records(values("a"))
    log = open_log(tmp_path)
    log.append_records(values("b"))
    (tmp_path / "leader-epoch-checkpoint").write_text("0\n2\n0 0")
    log = open_log(tmp_path)
    assert log.epochs.entries() == ((0, 0), (2, 1), (4, 2))


@pytest.mark.parametrize("torn", [1, 20, 61, 70])
def test_a_torn_tail_is_cut_off(tmp_path, torn):
    log = open_log(tmp_path, index_interval_bytes=50)
    for number in range(20):
        log.append_records(values(f"v{number}"))
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(path.read_bytes() + rb.build(values("torn"), base_offset=20)[:torn])
    log = open_log(tmp_path, index_interval_bytes=50)
    assert all_values(log) == [f"v{number}" for number in range(20)]
    assert log.append_records(values("next")) == 20
    assert all_values(log)[-1] == "next"


def test_batches_of_any_size_are_recovered(tmp_path):
    log = open_log(tmp_path, max_message_bytes=8 << 20)
    sizes = [10, 900_000, 300_000, 3_000_000, 5, 1_048_576 - 70, 2_000_000]
    for size in sizes:
        log.append_records(values("x" * size))
    log = open_log(tmp_path)
    assert [len(text) for text in all_values(log)] == sizes


def test_what_follows_a_broken_batch_is_cut_off_with_later_segments(tmp_path):
    log = open_log(tmp_path, segment_bytes=300)
    for number in range(30):
        log.append_records(values(f"v{number:03d}"))
    segments = sorted(tmp_path.glob("*.log"))
    damaged = segments[2]
    raw = bytearray(damaged.read_bytes())
    raw[-1] ^= 1
    damaged.write_bytes(raw)
    log = open_log(tmp_path, segment_bytes=300)
    last = int(segments[3].stem) - 1
    assert log.high_watermark == last
    assert len(sorted(tmp_path.glob("*.log"))) == 3
    assert log.append_records(values("on")) == last


def test_batches_below_the_recovery_point_are_not_read_again(tmp_path):
    log = open_log(tmp_path, segment_bytes=300)
    for number in range(30):
        log.append_records(values(f"v{number:03d}"))
    log.flush_closed()
    recovery_point = log.recovery_point
    assert recovery_point == int(sorted(tmp_path.glob("*.log"))[-1].stem)
    first = tmp_path / f"{0:020d}.log"
    raw = bytearray(first.read_bytes())
    raw[-1] ^= 1
    first.write_bytes(raw)
    assert open_log(tmp_path, segment_bytes=300, recovery_point=recovery_point).high_watermark == 30


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("content", [None, b"x" * 7, b"\xff" * 24, b""])
def test_invalid_indexes_are_rebuilt(tmp_path, suffix, content):
    log = open_log(tmp_path, index_interval_bytes=50, segment_bytes=2000)
    for number in range(60):
        log.append_records([Record(key=None, value=b"v", timestamp_ms=NOW_MS + number)])
    log.close()
    for path in tmp_path.glob(f"*{suffix}"):
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)
    log = open_log(tmp_path, is_clean=True)
    assert log.high_watermark == 60
    assert [record.offset for record in log.records(0, 59)] == list(range(60))
    assert log.read(30, max_bytes=1).spans[0].first_offset == 30


@pytest.mark.parametrize("fault", ["before", "after", "torn", "nothing written"])
def test_a_write_that_fails_leaves_the_log_as_it_was(tmp_path, fault):
    disk = Disk()
    log = open_log(tmp_path, faults=disk)
    log.append_records(values("a"))
    full = OSError(errno.ENOSPC, "No space left on device")
    disk.error = full if fault == "before" else None
    disk.error_after = full if fault == "after" else None
    disk.keeps = {"torn": 30, "nothing written": 0}.get(fault)
    for _ in range(2):
        with pytest.raises(StorageError, match="No space left|torn"):
            log.append_client(produced("b", producer_id=1, sequence=0))
    assert (log.high_watermark, all_values(log)) == (1, ["a"])
    disk.error = disk.error_after = disk.keeps = None
    assert log.append_client(produced("b", producer_id=1, sequence=0)).base_offset == 1
    assert all_values(open_log(tmp_path)) == ["a", "b"]


def test_a_full_disk_refuses_each_append_and_answers_each_read(tmp_path, monkeypatch):
    log = open_log(tmp_path)
    log.append_records(values("a"))
    with monkeypatch.context() as patch:

        def full(*_: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        patch.setattr("os.pwritev", full)
        patch.setattr("os.ftruncate", full)
        with pytest.raises(StorageError, match="orders-0 takes no write: No space left on device"):
            log.append_records(values("b"))
        assert all_values(log) == ["a"]
    assert log.append_records(values("b")) == 1


def test_flush_messages_counts_records(tmp_path):
    log = open_log(tmp_path, flush_messages=3)
    log.append_records(values("a", "b"))
    assert log.recovery_point == 0
    log.append_records(values("c"))
    assert log.recovery_point == 3


def test_deleting_records_raises_the_start_and_drops_whole_segments(tmp_path):
    log = open_log(tmp_path, segment_bytes=300)
    for number in range(30):
        log.append_records(values(f"v{number:03d}"))
    assert log.delete_records(10) == 10
    assert log.delete_records(5) == 10
    assert 0 < log.first_segment_offset <= 10
    assert log.epochs.entries() == ((0, 10),)
    with pytest.raises(OffsetOutOfRangeError):
        log.read(9, max_bytes=1)
    assert [record.offset for record in log.records(0, 12)] == [10, 11, 12]
    assert log.delete_records(99) == 30
    assert (log.log_start_offset, log.high_watermark) == (30, 30)
    assert log.append_records(values("next")) == 30
    log.close()
    log = open_log(tmp_path, is_clean=True, log_start_offset=30)
    assert all_values(log) == ["next"]


def test_retention_drops_by_age_and_by_size(tmp_path):
    clock = Clock()
    log = open_log(tmp_path, clock=clock, segment_bytes=300, retention_ms=1000, retention_bytes=-1)
    for number in range(30):
        log.append_records(values(f"v{number:03d}"))
        clock.pass_ms(100)
    log.apply_retention()
    assert 0 < log.log_start_offset <= 20
    clock.pass_ms(2000)
    log.apply_retention()
    assert (log.log_start_offset, log.high_watermark) == (30, 30)
    log = open_log(tmp_path / "size", clock=clock, segment_bytes=300, retention_bytes=900)
    for number in range(30):
        log.append_records(values(f"v{number:03d}"))
    log.apply_retention()
    assert 900 <= log.size_bytes < 1300


def test_compacted_topics_lose_nothing_by_age(tmp_path):
    clock = Clock()
    log = open_log(tmp_path, clock=clock, segment_bytes=300, retention_ms=1, deletes=False, compacts=True)
    for _ in range(10):
        log.append_records(values("v" * 50))
    clock.pass_ms(1000)
    assert log.apply_retention() == 0
    assert log.log_start_offset == 0


def test_offsets_by_time(tmp_path):
    log = open_log(tmp_path, segment_bytes=600, index_interval_bytes=100)
    times = [10, 5, 20, 20, 15, 30, 30, 31, 8, 40, 2, 41]
    for time_ms in times:
        log.append_records([Record(key=None, value=b"x" * 40, timestamp_ms=time_ms)])
    for expected in range(45):
        actual = [(time_ms, offset) for offset, time_ms in enumerate(times) if time_ms >= expected]
        assert log.offset_for_timestamp(expected) == (actual[0] if actual else None), expected
    assert log.max_timestamp() == (41, 11)
    log.delete_records(3)
    assert log.offset_for_timestamp(0) == (20, 3)
    assert open_log(tmp_path / "empty").max_timestamp() is None


def test_listeners_hear_of_appends_until_they_end_it(tmp_path):
    log, heard = open_log(tmp_path), []
    end = log.subscribe(lambda: heard.append(log.high_watermark))
    log.append_records(values("a"))
    log.append_client(produced("b"))
    log.append_marker(1, 0, commit=True, coordinator_epoch=0)
    end()
    end()
    log.append_records(values("c"))
    assert heard == [1, 2, 3]


def test_few_files_are_open_however_many_segments_there_are(tmp_path: Path):
    log = open_log(tmp_path, segment_bytes=200)
    for number in range(40):
        log.append_records(values(f"v{number}" * 10))
    before = len(list(Path("/proc/self/fd").iterdir()))
    assert len(all_values(log)) == 40
    assert len(list(Path("/proc/self/fd").iterdir())) <= before
