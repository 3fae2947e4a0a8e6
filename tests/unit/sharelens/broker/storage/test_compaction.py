"""Compaction: the last record of each key stays at its offset, whatever the moment at which the process dies."""

import shutil
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.broker.errors import StorageError
from sharelens.broker.ports import Record
from sharelens.broker.storage import compaction
from sharelens.broker.storage import record_batch as rb
from sharelens.broker.storage.segment import Segment
from sharelens.kafka_log.layout import scan_log_directory
from tests.logs.broker_logs import Clock, open_log

DAY_MS = 86_400_000
SMALL = {"segment_bytes": 400, "compacts": True, "min_cleanable_dirty_ratio": 0.0, "index_interval_bytes": 100}


class KilledError(Exception):
    """The process ends here."""


def put(log, *pairs, **how):
    return log.append_records(
        [Record(key=key.encode(), value=None if value is None else value.encode()) for key, value in pairs], **how
    )


def records_by_offset(log):
    return {record.offset: (record.key, record.value) for record in log.records(0, log.high_watermark)}


def latest(log):
    """What a reader that keeps the last value of each key holds at the end."""
    stored = {}
    for record in log.records(0, log.high_watermark):
        stored[record.key] = record.value
    return {key: value for key, value in stored.items() if value is not None}


def compact(log):
    """From its first step to its last; the bytes that this freed."""
    before = log.size_bytes
    for _ in log.compact() or ():
        pass
    return before - log.size_bytes


def some_steps(steps, log, count):
    """Go on with a compaction, or begin one; the steps that are left."""
    return steps if list(islice(steps, count)) else log.compact() or iter(())


def leftovers(folder):
    return [path.name for path in folder.iterdir() if path.suffix in (".cleaned", ".swap")]


def fill(log, rounds=40):
    for number in range(rounds):
        put(log, ("a", f"{number}"), (f"k{number % 3}", f"{number}"))


def test_the_last_record_of_each_key_stays_at_its_offset(tmp_path):
    log = open_log(tmp_path, **SMALL)
    fill(log)
    before, stored, size, end = records_by_offset(log), latest(log), log.size_bytes, log.high_watermark
    assert compact(log) == size - log.size_bytes > 0
    after = records_by_offset(log)
    assert latest(log) == stored
    assert after.items() <= before.items()
    assert len(after) < 20
    assert log.high_watermark == end
    assert put(log, ("z", "1")) == end


def test_what_was_compacted_is_there_after_a_stop_and_after_a_crash(tmp_path):
    log = open_log(tmp_path, **SMALL)
    fill(log)
    compact(log)
    after = records_by_offset(log)
    log.close()
    log = open_log(tmp_path, is_clean=True, **SMALL)
    assert records_by_offset(log) == after
    log.abandon()
    log = open_log(tmp_path, is_clean=False, recovery_point=0, **SMALL)
    assert records_by_offset(log) == after


def test_only_compacted_topics_and_closed_segments_are_touched(tmp_path):
    plain = open_log(tmp_path / "plain", segment_bytes=400)
    fill(plain)
    assert compact(plain) == 0
    log = open_log(tmp_path / "one", compacts=True, min_cleanable_dirty_ratio=0.0)
    fill(log)
    assert compact(log) == 0
    assert len(records_by_offset(log)) == 80


def test_it_waits_until_enough_is_new_and_old_enough(tmp_path):
    clock = Clock()
    log = open_log(tmp_path, clock=clock, **SMALL | {"min_cleanable_dirty_ratio": 0.5, "min_compaction_lag_ms": 1000})
    fill(log)
    assert compact(log) == 0
    clock.pass_ms(2000)
    assert compact(log) > 0
    assert compact(log) == 0


def test_a_tombstone_stays_its_time_from_the_first_compaction_on(tmp_path):
    clock = Clock()
    log = open_log(tmp_path, clock=clock, **SMALL)
    put(log, ("gone", "1"))
    put(log, ("gone", None), ("other", "1"))
    fill(log, 20)
    clock.pass_ms(10 * DAY_MS)
    compact(log)
    assert (b"gone", None) in records_by_offset(log).values()
    assert (b"gone", b"1") not in records_by_offset(log).values()
    clock.pass_ms(DAY_MS - 1)
    fill(log, 20)
    compact(log)
    assert (b"gone", None) in records_by_offset(log).values()
    clock.pass_ms(2)
    fill(log, 20)
    compact(log)
    assert b"gone" not in {key for key, _ in records_by_offset(log).values()}
    assert (b"other", b"1") in records_by_offset(log).values()


def transaction(log, producer, *pairs, commit):
    put(log, *pairs, producer=(producer, 0))
    return log.append_marker(producer, 0, commit=commit, coordinator_epoch=0)


def control_offsets(log):
    fetched, at, marker_offsets = b"", 0, []
    while at < log.high_watermark:
        fetched = log.read(at, max_bytes=1 << 20)
        marker_offsets += [span.first_offset for span in fetched.spans if span.is_control]
        at = fetched.spans[-1].last_offset + 1
    return marker_offsets


def test_records_of_aborted_transactions_go_and_markers_last_as_long_as_their_records(tmp_path):
    clock = Clock()
    log = open_log(tmp_path, clock=clock, **SMALL)
    put(log, ("a", "0"))
    commit_marker = transaction(log, 1, ("kept", "1"), commit=True)
    dropped = transaction(log, 1, ("a", "aborted"), commit=False)
    fill(log, 20)
    stored = latest(log)
    compact(log)
    assert (b"a", b"aborted") not in records_by_offset(log).values()
    assert latest(log) == stored | {b"kept": b"1"}
    assert {commit_marker, dropped} <= set(control_offsets(log))
    clock.pass_ms(DAY_MS + 1)
    fill(log, 20)
    compact(log)
    assert commit_marker in control_offsets(log)
    assert dropped not in control_offsets(log)
    log.abandon()
    log = open_log(tmp_path, clock=clock, is_clean=False, **SMALL)
    assert log.last_stable_offset == log.high_watermark
    assert log.aborted_transactions(0, log.high_watermark) == []


def test_nothing_at_or_above_the_first_open_transaction_is_touched(tmp_path):
    log = open_log(tmp_path, **SMALL)
    fill(log, 20)
    put(log, ("a", "open"), producer=(1, 0))
    first_open = log.last_stable_offset
    fill(log, 20)
    compact(log)
    assert [offset for offset in records_by_offset(log) if offset >= first_open] == list(
        range(first_open, log.high_watermark)
    )


def moments(monkeypatch, death):
    """Let the process die at the death-th change of a name or a file of the compaction."""
    remaining_steps = [death]
    for owner, name in ((compaction.Path, "rename"), (compaction.Path, "unlink"), (compaction, "sync_directory")):
        real = getattr(owner, name)

        def step(*values, real=real, **named):
            remaining_steps[0] -= 1
            if remaining_steps[0] < 0:
                raise KilledError
            return real(*values, **named)

        monkeypatch.setattr(owner, name, step)


@pytest.mark.slow
@pytest.mark.parametrize("is_clean", [True, False])
def test_a_process_that_dies_at_any_moment_loses_nothing(tmp_path, monkeypatch, is_clean):
    log = open_log(tmp_path / "log", **SMALL | {"segment_bytes": 1000})
    fill(log, 60)
    stored, before = latest(log), records_by_offset(log)
    log.flush()
    log.abandon()
    deaths = 0
    while True:
        folder = tmp_path / f"death-{deaths}"
        shutil.copytree(tmp_path / "log", folder)
        log = open_log(folder, is_clean=True, **SMALL | {"segment_bytes": 1000})
        with monkeypatch.context() as patched:
            moments(patched, deaths)
            try:
                compact(log)
                break
            except KilledError:
                log.abandon()
        log = open_log(folder, is_clean=is_clean, **SMALL | {"segment_bytes": 1000})
        assert latest(log) == stored
        assert records_by_offset(log).items() <= before.items()
        assert log.high_watermark == len(before)
        assert not leftovers(folder)
        compact(log)
        assert latest(log) == stored
        log.abandon()
        deaths += 1
    assert deaths > 8


def test_a_disk_that_is_full_loses_nothing_and_the_next_time_goes_on(tmp_path, monkeypatch):
    log = open_log(tmp_path, **SMALL)
    fill(log)
    stored, before = latest(log), records_by_offset(log)

    def full(*values):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(compaction, "write_at", full)
        with pytest.raises(StorageError, match="No space left"):
            compact(log)
    assert latest(log) == stored
    assert records_by_offset(log).items() <= before.items()
    assert compact(log) > 0
    assert latest(log) == stored


@pytest.mark.slow
def test_all_else_may_happen_to_the_log_between_two_steps(tmp_path):
    log = open_log(tmp_path, **SMALL)
    fill(log)
    size, end = log.size_bytes, log.high_watermark
    steps = log.compact()
    appended_records = []
    for number, _ in enumerate(steps):
        assert put(log, ("b", f"{number}")) == end + number
        appended_records.append(records_by_offset(log)[end + number])
    assert len(appended_records) > 40
    assert appended_records == [(b"b", f"{number}".encode()) for number in range(len(appended_records))]
    assert log.records(0, end - 1)[-1].value == b"39"
    assert len(log.records(0, end - 1)) < 20
    log.close()
    log = open_log(tmp_path, is_clean=True, **SMALL)
    assert log.high_watermark == end + len(appended_records)
    assert compact(log) > 0
    assert log.size_bytes < size


@pytest.mark.parametrize("steps_before", [1, 45, 60])
def test_it_ends_where_its_segments_are_dropped_or_its_log_is_closed(tmp_path, steps_before):
    log = open_log(tmp_path, **SMALL)
    fill(log)
    steps = log.compact()
    assert len(list(islice(steps, steps_before))) == steps_before
    log.delete_records(20)
    stored = records_by_offset(log)
    assert list(steps) == []
    assert not leftovers(tmp_path)
    assert records_by_offset(log) == stored
    steps = log.compact()
    assert next(steps) > 0
    log.close()
    assert list(steps) == []
    assert not leftovers(tmp_path)
    log = open_log(tmp_path, is_clean=True, **SMALL)
    assert records_by_offset(log) == stored
    assert compact(log) > 0


def test_an_index_that_finds_no_room_waits_in_memory(tmp_path, monkeypatch):
    log = open_log(tmp_path, **SMALL | {"segment_bytes": 2000})
    fill(log, 200)
    stored = latest(log)

    def full(segment):
        raise StorageError("No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(Segment, "save_index", full)
        with pytest.raises(StorageError, match="No space left"):
            compact(log)
    assert latest(log) == stored
    assert compact(log) > 0
    assert latest(log) == stored


def test_with_more_keys_than_there_is_room_for_nothing_is_lost(tmp_path, monkeypatch):
    monkeypatch.setattr(compaction, "KEYS_MAX", 2)
    log = open_log(tmp_path, **SMALL)
    fill(log)
    stored = latest(log)
    compact(log)
    assert latest(log) == stored


def test_our_reader_takes_a_compacted_folder_as_one_without_gaps_in_its_segments(tmp_path):
    folder = tmp_path / "__consumer_offsets-0"
    log = open_log(folder, **SMALL)
    fill(log)
    compact(log)
    log.close()
    (partition,) = scan_log_directory(str(tmp_path), topics={"__consumer_offsets"}).partitions
    assert [each.base_offset for each in partition.segments] == sorted(int(path.stem) for path in folder.glob("*.log"))


WORKS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from("abc"), st.one_of(st.none(), st.text("xy", max_size=30))),
        st.tuples(st.just("commit"), st.sampled_from("abc"), st.text("xy", max_size=30)),
        st.tuples(st.just("abort"), st.sampled_from("abc"), st.text("xy", max_size=30)),
        st.tuples(st.just("compact"), st.just(""), st.integers(0, 2 * DAY_MS)),
        st.tuples(st.just("some steps"), st.just(""), st.integers(1, 8)),
        st.tuples(st.just("crash"), st.just(""), st.just(0)),
    ),
    max_size=40,
)


@given(works=WORKS, codec=st.integers(0, 4))
def test_a_reader_of_keys_sees_no_difference(works, codec, tmp_path_factory):
    folder, clock, options = tmp_path_factory.mktemp("log"), Clock(), SMALL | {"segment_bytes": 300}
    log, model, steps = open_log(folder, clock=clock, **options), {}, iter(())
    for work, key, value in works:
        match work:
            case "put":
                put(log, (key, value), codec=codec)
                model[key.encode()] = None if value is None else value.encode()
            case "commit" | "abort":
                transaction(log, 7, (key, value), commit=work == "commit")
                if work == "commit":
                    model[key.encode()] = value.encode()
            case "compact":
                clock.pass_ms(value)
                compact(log)
            case "some steps":
                steps = some_steps(steps, log, value)
            case "crash":
                log.abandon()
                log = open_log(folder, clock=clock, is_clean=False, **options)
    aborted = [(each.first_offset, each.last_offset) for each in log.aborted_transactions(0, log.high_watermark)]
    stored = {}
    for record in log.records(0, log.high_watermark):
        if not any(first <= record.offset <= last for first, last in aborted):
            stored[record.key] = record.value
    log.abandon()
    assert {key: value for key, value in stored.items() if value is not None} == {
        key: value for key, value in model.items() if value is not None
    }


def test_a_batch_keeps_its_range_and_its_records_their_offsets_and_times():
    records = [Record(key=b"k", value=str(index).encode(), timestamp_ms=1000 + index) for index in range(4)]
    full_batch = rb.build(records, base_offset=50, codec=3, leader_epoch=7)
    header = rb.split(full_batch)[0]
    middle_records = rb.parse(full_batch, header)[1:3]
    rebuilt_batch = rb.rebuild(header, middle_records, delete_horizon_ms=5_000_000)
    again = rb.split(rebuilt_batch)[0]
    assert (again.base_offset, again.last_offset, again.record_count, again.leader_epoch) == (50, 53, 2, 7)
    assert (again.max_timestamp_ms, rb.delete_horizon(again)) == (1002, 5_000_000)
    assert rb.parse(rebuilt_batch, again) == middle_records
