"""Another snapshot interval, over small histories."""

import numpy as np
import pyarrow as pa
import pytest

from sharelens.measures.what_if.appends import appends, of_state_partitions
from sharelens.measures.what_if.cold_rounds import READ, ColdRounds, cold_rounds
from sharelens.measures.what_if.schema import WHAT_IF
from sharelens.measures.what_if.snapshot_kernel import FIGURES
from sharelens.measures.what_if.snapshots import limit_in_force, snapshot_rows
from state_model.columnar.replay import open_ranges, replay_records
from state_model.share_records import ShareSnapshot, ShareUpdate, StateBatch, encode_record
from tests.logs.replay_logs import KEYS, record_of, table

INTERVAL_MS = 300_000
STATES = {"acknowledged": 2, "available": 0}


def snapshot(*batches, epoch=0, leader=0, start=0, stamps=(0, 0), count=0):
    return ShareSnapshot(
        snapshot_epoch=epoch,
        state_epoch=1,
        leader_epoch=leader,
        start_offset=start,
        create_timestamp_ms=stamps[0],
        write_timestamp_ms=stamps[1],
        state_batches=batches,
        delivery_complete_count=count,
    )


def update(*batches, leader=0, start=0, count=0):
    return ShareUpdate(
        snapshot_epoch=0, leader_epoch=leader, start_offset=start, state_batches=batches, delivery_complete_count=count
    )


def done(first, last):
    return StateBatch(first_offset=first, last_offset=last, delivery_state=2, delivery_count=1)


def records_of(log, step_ms=10):
    """SHARE_RECORD rows of (key, value) with their true sizes, a step of time apart."""
    rows = table([(KEYS[key], value, False) for key, value in log]).to_pylist()
    for row, (key, value) in zip(rows, log, strict=True):
        row["record_bytes"] = sum(len(part or b"") for part in encode_record(record_of(KEYS[key], value)))
        row["timestamp_ms"] = row["log_time_ms"] = row["log_offset"] * step_ms
    return pa.Table.from_pylist(rows, schema=table([]).schema)


def appended(records):
    """APPENDS rows of records, one table a state partition."""
    replayed = replay_records(records)
    deliveries = pa.concat_tables([replayed.closed, open_ranges(replayed.state)])
    return list(of_state_partitions([appends(records, replayed.history, deliveries)]))


def what_if_rows(log, limit, step_ms=10):
    """WHAT_IF rows of a log under another limit."""
    records = records_of(log, step_ms)
    rounds = cold_rounds([records.select(READ)], INTERVAL_MS)
    tables = [snapshot_rows(rows, rounds, limit, INTERVAL_MS) for rows in appended(records)]
    return pa.concat_tables([WHAT_IF.empty_table(), *tables])


def what_if(log, limit, step_ms=10):
    """By share partition and figure (in history, at least, at most, certainty)."""
    names = ("in_history", "at_least", "at_most", "certainty")
    rows = what_if_rows(log, limit, step_ms).to_pylist()
    return {(row["partition"], row["figure"]): tuple(row[name] for name in names) for row in rows}


WRITES = [(0, snapshot()), *((0, update(done(offset, offset))) for offset in range(5))]


def test_every_second_write_becomes_a_snapshot_of_the_whole_state():
    answer = what_if(WRITES, 1)
    assert answer[0, "records"] == (6, 6, 6, "exact")
    assert answer[0, "snapshots"] == (1, 3, 3, "exact")
    assert answer[0, "updates"] == (5, 3, 3, "exact")
    assert answer[0, "most_records_to_replay"] == (6, 2, 2, "exact")
    sizes = [records_of([(0, value)]).column("record_bytes")[0].as_py() for value in (snapshot(), update(done(0, 0)))]
    big = records_of([(0, snapshot(done(0, 1)))]).column("record_bytes")[0].as_py()
    assert answer[0, "bytes"] == (sizes[0] + 5 * sizes[1], *2 * (sizes[0] + 3 * sizes[1] + 2 * big,), "exact")


def test_a_snapshot_of_a_write_becomes_the_update_that_it_replaced():
    log = [*WRITES[:2], (0, snapshot(done(0, 1), epoch=1)), (0, update(done(2, 2)))]
    answer = what_if(log, 500)
    assert answer[0, "snapshots"] == (2, 1, 1, "exact")
    assert answer[0, "bytes"][1:3] == (what_if(WRITES[:4], 500)[0, "bytes"][0],) * 2


def test_a_reset_stays_a_snapshot_and_keeps_the_counter():
    log = [*WRITES, (0, snapshot(epoch=1, start=3, leader=0)), (0, update(done(9, 9)))]
    assert what_if(log, 6)[0, "snapshots"][1] == 2
    assert what_if(log, 5)[0, "snapshots"][1] == 2
    assert what_if(log, 4)[0, "snapshots"][1] == 3


def test_a_writer_that_repeats_itself_leaves_the_bytes_inferred():
    log = [*WRITES, (0, update(done(0, 0), done(4, 4)))]
    answer = what_if(log, 2)
    assert answer[0, "bytes"][3] == "inferred"
    assert answer[0, "snapshots"][3] == "exact"


def test_rounds_of_the_job_follow_from_the_cold_snapshots_that_show():
    step_ms = 100_000
    log = [(0, snapshot()), (1, snapshot(stamps=(step_ms, step_ms))), (1, update(done(0, 0)))]
    log += [(0, snapshot(epoch=1, stamps=(0, 3 * step_ms))), (1, update(done(1, 1))), (1, update(done(2, 2), start=1))]
    log += [(0, snapshot(epoch=2, stamps=(0, 6 * step_ms)))]
    log += [(1, snapshot(done(1, 2), epoch=1, start=1, stamps=(step_ms, 6 * step_ms)))]
    answer = what_if(log, 500, step_ms)
    assert answer[0, "cold_snapshots"] == (2, 2, 2, "exact")
    assert answer[1, "cold_snapshots"] == (1, 1, 1, "exact")
    assert what_if(log, 0, step_ms)[1, "cold_snapshots"] == (1, 0, 0, "exact")


def test_where_no_round_shows_the_job_may_or_may_not_have_written_snapshots():
    log = [(0, snapshot()), *((0, update(done(number, number))) for number in range(2))]
    log += [(0, snapshot(done(0, 2), epoch=1)), *((0, update(done(number, number))) for number in (3, 4))]
    answer = what_if(log, 500, step_ms=90_000)
    assert answer[0, "cold_snapshots"] == (0, 0, 1, "inferred")
    assert answer[0, "records"] == (6, 6, 7, "inferred")
    assert answer[0, "records_to_replay"] == (3, 2, 6, "inferred")
    assert what_if(log, 2, step_ms=90_000)[0, "cold_snapshots"] == (0, 0, 0, "exact")


@pytest.mark.parametrize("step_ms", [7_000, 20_000, 61_000])
@pytest.mark.parametrize("begin_ms", [1, 22_442, 134_647, 291_734])
def test_the_bounds_hold_the_truth_of_each_beginning_of_the_rounds(step_ms, begin_ms):
    def values(number):
        is_snapshot = number % 3 == 0
        return snapshot(done(0, number), epoch=number // 3) if is_snapshot else update(done(number, number))

    log = [(0, values(number)) for number in range(40)]
    (rows,) = appended(records_of(log, step_ms))
    last_ms = 39 * step_ms
    hidden = ColdRounds(times_ms=np.arange(begin_ms, last_ms + 1, INTERVAL_MS), last_ms=last_ms, is_known=True)
    true_rows = snapshot_rows(rows, hidden, 500, INTERVAL_MS).to_pylist()
    answer = what_if(log, 500, step_ms)
    for row in true_rows:
        _, at_least, at_most, _ = answer[0, row["figure"]]
        assert at_least <= row["at_least"] == row["at_most"] <= at_most


def test_a_history_without_its_beginning_has_bounds_and_one_with_a_gap_no_figures():
    answer = what_if([(0, snapshot(epoch=4)), *WRITES[1:]], 5)
    assert answer[0, "snapshots"] == (1, 1, 2, "bound")
    assert what_if(WRITES[1:], 3) == {}


def test_the_limit_in_force_shows_in_the_snapshots_of_writes():
    log = [*WRITES[:3], (0, snapshot(done(0, 2), epoch=1, count=3))]
    (rows,) = appended(records_of(log))
    assert limit_in_force(rows) == 2


@pytest.mark.parametrize("limit", [0, 1, 500])
def test_no_record_has_no_figure(limit):
    assert what_if([], limit) == {}


def test_every_figure_has_a_row():
    assert {figure for _, figure in what_if(WRITES, 3)} == set(FIGURES)
