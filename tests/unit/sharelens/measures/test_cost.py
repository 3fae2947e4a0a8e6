"""What share state costs: records, bytes, spans, and what holds up pruning."""

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.cost import cost, pruning
from state_model.columnar.replay import open_ranges, replay_records
from tests.logs.replay_logs import parsed, table


def sized(text, stamps=()):
    """SHARE_RECORD rows of 10 bytes each; `stamps` gives the write timestamp of the snapshot at a log offset."""
    rows = table(parsed(text)).to_pylist()
    for offset, row in enumerate(rows):
        row["record_bytes"] = 10
        row["write_timestamp_ms"] = dict(stamps).get(offset, row["write_timestamp_ms"])
    return pa.Table.from_pylist(rows, schema=table([]).schema)


def costs(text, stamps=()):
    rows = sized(text, stamps)
    done = replay_records(rows)
    return cost(rows, done.history, pa.concat_tables([done.closed, open_ranges(done.state)])).to_pylist()


STORY = """
    0 snapshot start=0 snapshot=0
    0 update start=0 0-3 acknowledged 1
    1 snapshot start=0 snapshot=0
    0 update start=0 4-7 acknowledged 1
    0 snapshot start=0 0-7 acknowledged 1
    0 update start=8
"""


def test_records_bytes_and_updates_to_an_acknowledged_offset():
    first, second = costs(STORY, stamps={4: 7})
    names = ("records", "snapshots", "cold_snapshots", "updates", "bytes", "snapshot_bytes", "acknowledged_offsets")
    assert [first[name] for name in names] == [5, 2, 1, 3, 50, 20, 8]
    assert (first["updates_per_acknowledged"], first["bytes_per_acknowledged"]) == (3 / 8, 50 / 8)
    assert first["snapshots_per_acknowledged"] == 2 / 8
    assert (first["span_updates_mean"], first["span_updates_max"], first["last_snapshot_log_offset"]) == (1.5, 2, 4)
    names = ("acknowledged_offsets", "updates_per_acknowledged", "snapshots_per_acknowledged")
    assert [second[name] for name in names] == [0, None, None]


def test_of_a_window_its_records_and_what_they_acknowledged_count():
    rows = sized(STORY)
    done = replay_records(rows)
    deliveries = pa.concat_tables([done.closed, open_ranges(done.state)])
    (row,) = cost(rows.slice(3, 2), done.history, deliveries, of_window=True).to_pylist()
    names = ("records", "updates", "snapshots", "acknowledged_offsets", "updates_per_acknowledged")
    assert [row[name] for name in names] == [2, 1, 1, 4, 1 / 4]


def test_updates_before_the_first_snapshot_held_belong_to_no_span():
    (row,) = costs("0 update start=3\n0 update start=4\n0 snapshot start=4\n0 update start=5")
    assert (row["updates"], row["span_updates_mean"], row["span_updates_max"]) == (3, 1, 1)


def test_the_oldest_of_the_newest_snapshots_holds_up_pruning():
    (row,) = pruning(lambda: [sized(STORY)]).to_pylist()
    assert (row["prune_log_offset"], row["held_up_by_partition"]) == (2, 1)
    assert (row["freeable_records"], row["freeable_bytes"], row["held_up_ms"]) == (2, 20, 30)
    assert row["pruning_stalls"] is False


def test_a_deleted_share_partition_holds_nothing_up():
    (row,) = pruning(lambda: [sized(STORY + "    1 tombstone\n")]).to_pylist()
    assert (row["prune_log_offset"], row["held_up_by_partition"], row["freeable_records"]) == (4, 0, 4)


def test_what_pruning_could_free_is_the_same_however_the_records_are_cut_and_ordered():
    records = sized(STORY + "    1 tombstone\n")
    singly = [records.slice(row, 1) for row in reversed(range(records.num_rows))]
    assert pruning(lambda: singly) == pruning(lambda: [records])


def test_nothing_costs_nothing():
    empty = table([])
    done = replay_records(empty)
    assert cost(empty, done.history, done.closed).num_rows == 0
    assert pc.sum(pruning(lambda: [empty]).column("records")).as_py() is None
