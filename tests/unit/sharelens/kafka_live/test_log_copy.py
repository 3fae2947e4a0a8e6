"""The copy of a log has the log's bytes, however a broker cuts its answers; what is no log is refused."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.kafka_live.cluster import EARLIEST, Fetched, Place, Topic
from sharelens.kafka_live.errors import ClusterError
from sharelens.kafka_live.log_copy import LogCopy, Pruned
from sharelens.kafka_log.layout import scan_log_directory
from sharelens.kafka_log.leader_epochs import below, end_offset_for, latest
from sharelens.kafka_log.reader import log_end
from sharelens.kafka_log.union import unite
from tools.log_writer.writer import encode_batch, record_columns

A, B = Place("orders", 0), Place("orders", 1)
OLD_S = 1_600_000_000
TOPIC_ID, OTHER_ID = "q__w-dn0SLGQQlvFdxAtOQ", "WGqhXBYIScm4VrWizzoNkg"


def batch(first, count, epoch=0):
    records = record_columns([None] * count, [b"x" * (first % 7)] * count, range(count))
    return encode_batch(records, base_offset=first, leader_epoch=epoch)


class Log:
    """Batches of one partition by first offset, with the offset behind each; `truncate` begins a leader epoch."""

    def __init__(self, *counts):
        self.batches, self.start, self.end = [], 0, 0
        self.epochs = ((0, 0),)
        for count in counts:
            self.add(count)

    def add(self, count):
        self.batches.append((self.end, self.end + count, batch(self.end, count, latest(self.epochs))))
        self.end += count

    def truncate(self, count):
        """An unclean election: the last batches are lost, the next ones have a higher leader epoch."""
        self.batches = self.batches[: max(0, len(self.batches) - count)]
        self.end = self.batches[-1][1] if self.batches else self.start
        self.epochs = (*below(self.epochs, self.end), (latest(self.epochs) + 1, self.end))

    def bytes_from(self, offset):
        return b"".join(data for _, end, data in self.batches if end > offset)


class ScriptedCluster:
    """Answers Fetch with `max_answer_bytes` of all partitions together, but with the first batch always whole."""

    bootstrap_server, cluster_id = "scripted:9092", "cluster"

    def __init__(self, max_answer_bytes, **logs):
        self.max_answer_bytes = max_answer_bytes
        self.logs = {A: logs.get("a", Log()), B: logs.get("b", Log())}
        self.requests = []
        self.topic_id = TOPIC_ID

    def topic(self):
        epochs = {place.partition: latest(log.epochs) for place, log in self.logs.items()}
        return Topic(name="orders", topic_id=self.topic_id, leaders={0: 1, 1: 1}, leader_epochs=epochs)

    def epoch_ends(self, epochs):
        return {place: self.epoch_end(place, epoch) for place, epoch in epochs.items()}

    def epoch_end(self, place, epoch):
        return end_offset_for(self.logs[place].epochs, epoch, self.logs[place].end)

    def offsets(self, places, timestamp):
        return {place: getattr(self.logs[place], "start" if timestamp == EARLIEST else "end") for place in places}

    def fetch(self, positions):
        self.requests.append(dict(positions))
        remaining_bytes, is_first = self.max_answer_bytes, True
        for place in sorted(positions):
            log, (position, epoch) = self.logs[place], positions[place]
            shared = (epoch, log.end) if epoch == -1 else self.epoch_end(place, epoch)
            if shared[0] < epoch or (shared[1] < position and epoch >= 0):
                yield Fetched(place=place, records=b"", is_out_of_range=shared[0] < 0, diverging=shared)
                continue
            outside = not log.start <= position <= log.end
            data = b"" if outside else log.bytes_from(position)
            first_batch_bytes = (
                next((len(batch) for _, end, batch in log.batches if end > position), 0) if is_first else 0
            )
            answer = data[: max(remaining_bytes, first_batch_bytes)]
            remaining_bytes, is_first = remaining_bytes - len(answer), is_first and not answer
            yield Fetched(
                place=place,
                records=answer,
                is_out_of_range=outside,
            )


def copied(folder, cluster, most_bytes=1 << 20):
    copy = LogCopy(Path(folder) / "logs", cluster, most_bytes=most_bytes)
    copy.refresh([cluster.topic()])
    return copy


def stored(copy, place):
    files = sorted((copy.folder / f"{place.topic}-{place.partition}").glob("*.log"))
    return b"".join(file.read_bytes() for file in files)


def ends_of(copy):
    """End by the records, and committed end, of each partition as the readers of log directories see them."""
    partitions = unite([scan_log_directory(str(copy.folder))])
    return {part.partition: (log_end(part).end_offset, part.committed_end) for part in partitions}


@given(
    a=st.lists(st.integers(1, 9), max_size=6),
    b=st.lists(st.integers(1, 9), max_size=6),
    later=st.lists(st.integers(1, 9), max_size=3),
    max_answer_bytes=st.integers(0, 700),
)
def test_answers_cut_anywhere_give_the_bytes_of_the_log(a, b, later, max_answer_bytes):
    cluster = ScriptedCluster(max_answer_bytes, a=Log(*a), b=Log(*b))
    with TemporaryDirectory() as folder:
        copy = copied(folder, cluster)
        for count in later:
            cluster.logs[A].add(count)
        copy.refresh([cluster.topic()])
        for place, log in cluster.logs.items():
            assert stored(copy, place) == log.bytes_from(0)
            assert ends_of(copy)[place.partition] == (log.end, log.end)


def test_a_partition_left_out_of_a_full_answer_is_asked_for_again(tmp_path):
    copy = copied(tmp_path, ScriptedCluster(1, a=Log(3, 3), b=Log(2)))
    assert stored(copy, B) == Log(2).bytes_from(0)


@pytest.mark.parametrize("max_bytes", [0, 1, 150, 10_000])
def test_a_copy_that_stops_at_its_limit_has_the_beginning_and_says_so(tmp_path, max_bytes):
    cluster = ScriptedCluster(100, a=Log(3, 3, 3), b=Log(2, 2))
    copy = LogCopy(tmp_path / "logs", cluster, most_bytes=max_bytes, stops_at_limit=True)
    copy.refresh([cluster.topic()])
    assert copy.is_cut_short == (max_bytes < 1_000)
    for place, log in cluster.logs.items():
        log_bytes = log.bytes_from(0)
        assert log_bytes.startswith(stored(copy, place))
        assert ends_of(copy)[place.partition][1] == copy.positions[place]
        assert copy.is_cut_short or stored(copy, place) == log_bytes
    assert sum(len(stored(copy, place)) for place in cluster.logs) == copy.fetched_bytes


def emptied(folder):
    """Removes the segments of a copy; the small files of its partitions, which get an old time."""
    for segment in folder.glob("*/*.log"):
        segment.unlink()
    small = sorted(folder.glob("*/*"))
    for path in small:
        os.utime(path, (OLD_S, OLD_S))
    return small


@pytest.mark.parametrize("has_new_leader", [False, True])
def test_a_copy_where_another_one_left_its_folders_is_a_new_copy_and_writes_what_differs(tmp_path, has_new_leader):
    cluster = ScriptedCluster(10_000, a=Log(3, 2), b=Log(2))
    earlier_files = emptied(copied(tmp_path, cluster).folder)
    if has_new_leader:
        cluster.logs[A].truncate(0)
    cluster.logs[A].add(4)
    again = copied(tmp_path, cluster)
    assert ends_of(again) == ends_of(copied(tmp_path / "new", cluster))
    assert [stored(again, place) for place in (A, B)] == [cluster.logs[place].bytes_from(0) for place in (A, B)]
    assert scan_log_directory(str(again.folder)).partitions[0].leader_epochs == ((0, 0), (1, 5))[: 1 + has_new_leader]
    assert len(earlier_files) == 4
    written = [path.relative_to(again.folder).as_posix() for path in earlier_files if path.stat().st_mtime != OLD_S]
    assert written == ["orders-0/leader-epoch-checkpoint"] * has_new_leader


def test_folders_of_partitions_that_are_no_more_and_damaged_files_do_not_stay(tmp_path):
    cluster = ScriptedCluster(10_000, a=Log(3), b=Log(2))
    folder = copied(tmp_path, cluster).folder
    emptied(folder)
    (folder / "gone-0").mkdir()
    (folder / "gone-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}\n")
    (folder / "orders-0" / "partition.metadata").write_bytes(b"\xff\x00")
    (folder / "orders-1" / "leader-epoch-checkpoint").write_text("0\n9")
    cluster.topic_id = OTHER_ID
    partitions = scan_log_directory(str(copied(tmp_path, cluster).folder)).partitions
    assert [(part.topic_id, part.leader_epochs) for part in partitions] == [(OTHER_ID, ((0, 0),))] * 2


def test_records_that_the_broker_pruned_are_a_gap(tmp_path):
    cluster = ScriptedCluster(1 << 20, a=Log(5, 5))
    copy = copied(tmp_path, cluster)
    log = cluster.logs[A]
    log.add(5)
    log.add(5)
    log.start, log.batches = 15, log.batches[3:]
    copy.refresh([cluster.topic()])
    assert copy.positions[A] == 20
    assert stored(copy, A) == Log(5, 5).bytes_from(0) + log.bytes_from(15)
    (partition,) = [part for part in unite([scan_log_directory(str(copy.folder))]) if part.partition == 0]
    assert partition.log_start_offset == 15
    assert copy.pruned == [Pruned(place=A, first_offset=10, last_offset=14, after_ms=4, before_ms=0)]
    copy.refresh([cluster.topic()])
    assert copy.pruned == []


def test_a_reader_whose_records_end_below_the_log_has_a_gap(tmp_path):
    cluster = ScriptedCluster(1 << 20, a=Log(5, 5, 5))
    log = cluster.logs[A]
    log.start, log.batches = 10, log.batches[2:]
    begin = {A: (5, ((0, 0),), 4), B: (0, (), None)}
    copy = LogCopy(
        tmp_path, cluster, most_bytes=1 << 20, begin=lambda topic, _, number, start: begin[Place(topic, number)]
    )
    copy.refresh([cluster.topic()])
    assert copy.pruned == [Pruned(place=A, first_offset=5, last_offset=9, after_ms=4, before_ms=0)]
    assert stored(copy, A) == log.bytes_from(10)


def test_a_log_start_that_moves_between_two_requests_is_read_again(tmp_path):
    cluster = ScriptedCluster(1 << 20, a=Log(5, 5))
    first_answer = cluster.fetch

    def fetch(positions):
        if not cluster.requests:
            cluster.logs[A].start, cluster.logs[A].batches = 5, cluster.logs[A].batches[1:]
        return first_answer(positions)

    cluster.fetch = fetch
    copy = copied(tmp_path, cluster)
    assert stored(copy, A) == cluster.logs[A].bytes_from(5)


def test_offsets_at_the_end_without_a_record_end_the_reading(tmp_path):
    log = Log(5)
    log.end = 9  # compaction removed what came after the batch
    copy = copied(tmp_path, ScriptedCluster(1 << 20, a=log))
    assert (copy.positions[A], stored(copy, A)) == (9, log.bytes_from(0))


def test_a_log_that_lost_its_tail_without_leader_epochs_is_copied_again(tmp_path):
    cluster = ScriptedCluster(1 << 20, a=Log(5, 5))
    copy = copied(tmp_path, cluster)
    cluster.logs[A] = Log(5, 2)
    copy.refresh([cluster.topic()])
    assert stored(copy, A) == Log(5, 2).bytes_from(0)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(1, 4)),
        st.tuples(st.just("truncate"), st.integers(0, 4)),
        st.tuples(st.just("refresh"), st.just(0)),
    ),
    max_size=14,
)


@given(steps=STEPS, max_answer_bytes=st.sampled_from([0, 200, 1 << 20]))
def test_a_copy_follows_its_log_through_all_truncations(steps, max_answer_bytes):
    cluster = ScriptedCluster(max_answer_bytes, a=Log(3, 3))
    log = cluster.logs[A]
    with TemporaryDirectory() as folder:
        copy = copied(folder, cluster)
        for name, count in [*steps, ("refresh", 0)]:
            if name == "refresh":
                copy.refresh([cluster.topic()])
            else:
                getattr(log, name)(count)
        (partition,) = [part for part in scan_log_directory(str(copy.folder)).partitions if part.partition == 0]
        assert stored(copy, A) == log.bytes_from(0)
        assert copy.positions[A] == log.end
        assert partition.leader_epochs == below(log.epochs, log.end)


def test_only_what_a_truncation_replaced_is_fetched_again(tmp_path):
    cluster = ScriptedCluster(1 << 20, a=Log(5, 5, 5))
    copy = copied(tmp_path, cluster)
    cluster.logs[A].truncate(1)
    cluster.logs[A].add(7)
    cluster.requests.clear()
    copy.refresh([cluster.topic()])
    assert [request[A].offset for request in cluster.requests] == [10]
    assert stored(copy, A) == cluster.logs[A].bytes_from(0)


def test_a_truncation_between_two_requests_is_named_by_the_fetch(tmp_path):
    """Metadata and the end offsets are those of before, so that the answer to Fetch alone says it."""
    cluster = ScriptedCluster(1 << 20, a=Log(5, 5))
    copy = copied(tmp_path, cluster)
    before, fetch = cluster.topic(), cluster.fetch
    cluster.logs[A].add(5)

    def fetch_after_election(positions):
        if cluster.logs[A].epochs == ((0, 0),):
            cluster.logs[A].truncate(2)
            cluster.logs[A].add(6)
        return fetch(positions)

    cluster.fetch = fetch_after_election
    copy.refresh([before])
    assert stored(copy, A) == cluster.logs[A].bytes_from(0)
    assert ends_of(copy)[0] == (11, 11)


def test_a_reader_with_the_records_below_gets_those_from_where_its_log_parts(tmp_path):
    cluster = ScriptedCluster(1 << 20, a=Log(5, 5, 5))
    cluster.logs[A].truncate(1)
    cluster.logs[A].add(2)
    copy = LogCopy(tmp_path / "logs", cluster, most_bytes=1 << 20, begin=lambda *_: (15, ((0, 0),), None))
    copy.refresh([cluster.topic()])
    assert stored(copy, A) == cluster.logs[A].bytes_from(10)
    (partition,) = [part for part in scan_log_directory(str(copy.folder)).partitions if part.partition == 0]
    assert partition.leader_epochs == ((0, 0), (1, 10))


def test_a_diverging_epoch_behind_the_copy_is_one_line(tmp_path):
    cluster = ScriptedCluster(1 << 20, a=Log(5))
    cluster.fetch = lambda positions: [Fetched(place=A, records=b"", is_out_of_range=False, diverging=(0, 9))]
    with pytest.raises(ClusterError, match="orders-0 @ 0: the answer names a diverging epoch"):
        copied(tmp_path, cluster)


def test_a_topic_that_was_created_again_is_copied_again(tmp_path):
    cluster = ScriptedCluster(1 << 20, a=Log(5), b=Log(4))
    copy = copied(tmp_path, cluster)
    cluster.logs, cluster.topic_id = {A: Log(7), B: Log(6)}, OTHER_ID
    copy.refresh([cluster.topic()])
    assert stored(copy, A) == Log(7).bytes_from(0)
    assert {part.topic_id for part in scan_log_directory(str(copy.folder)).partitions} == {OTHER_ID}


def test_bytes_that_are_no_batch_are_one_line(tmp_path):
    log = Log(5)
    log.batches = [(0, 5, b"\xff" * 200)]
    with pytest.raises(ClusterError, match=r"orders-0 @ 0: the answer holds bytes that are no record batch"):
        copied(tmp_path, ScriptedCluster(1 << 20, a=log))


def test_a_copy_has_a_largest_size(tmp_path):
    with pytest.raises(ClusterError, match="raise --max-bytes"):
        copied(tmp_path, ScriptedCluster(1 << 20, a=Log(5, 5)), most_bytes=100)
