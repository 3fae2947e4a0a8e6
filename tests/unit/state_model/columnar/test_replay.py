"""Replay in pieces, at any moment, over gaps and as a history tells what one pass over the whole log tells."""

from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_model.batches import coalesce
from state_model.columnar import replay, schemas
from state_model.columnar.replay import open_ranges, replay_records, replay_states
from state_model.columnar.values import Loss
from state_model.machine import PartitionState, apply
from tests.logs.replay_logs import (
    BATCH,
    HOSTILE_LOGS,
    LATER_LOGS,
    SCALARS,
    delivery_lines,
    parsed,
    record_of,
    table,
)

CUTS = st.lists(st.integers(0, 20), max_size=3).map(sorted)
LIMITS = st.integers(0, 4)


def pieces(rows, cuts):
    bounds = [0, *(min(cut, rows.num_rows) for cut in cuts), rows.num_rows]
    return [rows.slice(first, end - first) for first, end in pairwise(bounds)]


def delivery(done):
    """All rows of the delivery history after a replay: closed and open ones."""
    return pa.concat_tables([done.closed, open_ranges(done.state)])


@pytest.mark.slow
@given(HOSTILE_LOGS, LIMITS)
def test_any_content_that_fits_the_bytes_gives_the_references_state(log, limit):
    state = PartitionState(update_limit=limit)
    for offset, (key, value, _) in enumerate(log):
        state = apply(state, offset, 10 * offset, record_of(key, value))
    ours = {row["partition"]: row for row in replay_records(table(log), update_limit=limit).state.to_pylist()}
    assert ours.keys() == {key.partition for key in state.share_partitions}
    for key, reference in state.share_partitions.items():
        row = ours[key.partition]
        assert {name: row[name] for name in SCALARS} == {name: getattr(reference, name) for name in SCALARS}
        assert row["leader_epoch_max_from_log"] == reference.leader_epoch_max
        assert row["state_epoch_max_from_log"] == reference.state_epoch_max
        ranges = [tuple(batch[name] for name in BATCH) for batch in row["state_batches"]]
        assert ranges == [tuple(getattr(b, name) for name in BATCH) for b in coalesce(reference.state_batches)]


@pytest.mark.slow
@given(LATER_LOGS | HOSTILE_LOGS, CUTS, LIMITS)
def test_a_replay_that_goes_on_from_its_own_state_is_one_replay(log, cuts, limit):
    whole_replay = replay_records(table(log), update_limit=limit)
    history, closed, state = [], [], None
    for piece in pieces(table(log), cuts):
        done = replay_records(piece, seed=state, update_limit=limit)
        history.append(done.history)
        closed.append(done.closed)
        state = done.state
    assert pa.concat_tables(history).equals(whole_replay.history)
    assert pa.concat_tables(closed).equals(whole_replay.closed)
    assert state.equals(whole_replay.state)


def in_state_partition(rows, number):
    at = rows.schema.get_field_index("state_partition")
    return rows.set_column(at, rows.schema.field(at), pa.array([number] * rows.num_rows, pa.int32()))


@pytest.mark.slow
@given(LATER_LOGS | HOSTILE_LOGS, HOSTILE_LOGS, st.integers(0, 20), LIMITS)
def test_state_partitions_that_are_replayed_together_are_each_replayed_alone(log, other, cut, limit):
    rows = [in_state_partition(table(log), 7), in_state_partition(table(other), 3)]
    seeds = [replay_records(part.slice(0, cut), update_limit=limit).state for part in rows]
    news, starts = [part.slice(cut) for part in rows], {7: 2, 3: 5}
    joint_replay = replay_records(
        pa.concat_tables(news), seed=pa.concat_tables(seeds), update_limit=limit, log_start_offset=starts
    )
    for number, seed, records in zip(starts, seeds, news, strict=True):
        alone = replay_records(records, seed=seed, update_limit=limit, log_start_offset=starts[number])
        in_partition = pc.field("state_partition") == number
        assert joint_replay.history.filter(in_partition).equals(alone.history)
        assert joint_replay.closed.filter(in_partition).equals(alone.closed)
        assert joint_replay.state.filter(in_partition).equals(alone.state)


@pytest.mark.slow
@given(LATER_LOGS)
def test_the_histories_tell_the_state_after_every_prefix(log):
    whole_replay = replay_records(table(log))
    rows = delivery(whole_replay).to_pylist()
    history = whole_replay.history.to_pylist()
    for offset in range(len(log)):
        prefix = replay_records(table(log[: offset + 1])).state.to_pylist()
        newest = {row["partition"]: row for row in history if row["log_offset"] <= offset}
        alive = {partition: row for partition, row in newest.items() if row["record_type"] != "tombstone"}
        assert alive.keys() == {row["partition"] for row in prefix}
        for state in prefix:
            scalars = {name: value for name, value in alive[state["partition"]].items() if name in state}
            assert scalars == {name: state[name] for name in scalars}
            there = [
                {name: row[name] for name in state["state_batches"][0]} if state["state_batches"] else row
                for row in rows
                if row["partition"] == state["partition"]
                and row["valid_from_log_offset"] <= offset
                and (row["valid_to_log_offset"] is None or row["valid_to_log_offset"] > offset)
            ]
            assert sorted(there, key=lambda row: row["first_offset"]) == state["state_batches"]


@pytest.mark.slow
@given(LATER_LOGS)
def test_a_range_stands_in_the_history_once_and_never_for_no_time(log):
    rows = delivery(replay_records(table(log))).to_pylist()
    keys = [(row["partition"], row["first_offset"], row["valid_from_log_offset"]) for row in rows]
    assert len(set(keys)) == len(keys)
    assert all(row["is_open"] or row["valid_from_log_offset"] < row["valid_to_log_offset"] for row in rows)
    assert all(row["life_log_offset"] <= row["valid_from_log_offset"] for row in rows)


@pytest.mark.slow
@given(LATER_LOGS)
def test_by_key_changes_the_order_and_the_encoding_of_text_alone(log):
    plain = replay_records(table(log))
    sorted_ = replay_records(
        table(log).select(schemas.REPLAYED.names).cast(schemas.REPLAYED), by_key=True, encoded=True
    )
    by_record = [("partition", "ascending"), ("log_offset", "ascending")]
    by_range = [("partition", "ascending"), ("first_offset", "ascending"), ("valid_from_log_offset", "ascending")]
    assert sorted_.history.cast(plain.history.schema).equals(plain.history.sort_by(by_record))
    assert sorted_.closed.cast(plain.closed.schema).equals(plain.closed.sort_by(by_range))
    assert pa.types.is_dictionary(sorted_.closed.schema.field("group_id").type)
    assert sorted_.state.equals(plain.state)


@pytest.mark.slow
@given(LATER_LOGS, LIMITS)
def test_scalars_alone_are_those_of_the_whole_replay(log, limit):
    whole_state = replay_records(table(log), update_limit=limit).state
    none = schemas.SHARE_PARTITION_STATE.empty_table()
    scalars = replay_states(table(log), seed=none, update_limit=limit, with_ranges=False)
    assert scalars.equals(replay.without_ranges(whole_state))
    assert replay_states(table(log), seed=none, update_limit=limit).equals(whole_state)


def test_no_records_and_no_seed_give_empty_tables():
    done = replay_records(schemas.SHARE_RECORD.empty_table())
    assert (done.history.schema, done.closed.schema, done.state.schema) == (
        schemas.SHARE_PARTITION_HISTORY,
        schemas.DELIVERY_HISTORY,
        schemas.SHARE_PARTITION_STATE,
    )
    assert done.history.num_rows + done.closed.num_rows + done.state.num_rows == 0


DELIVERY_CASES = {
    "an acknowledged part splits the range around it": (
        """
        0 snapshot start=0 0-9 available 1
        0 update 3-5 acknowledged 1
        """,
        """
        0 0-2 available 1 | 1 > open | life 0
        0 0-9 available 1 | 0 > 1 changed | life 0
        0 3-5 acknowledged 1 | 1 > open | life 0
        0 6-9 available 1 | 1 > open | life 0
        """,
    ),
    "an update that says nothing new ends nothing": (
        """
        0 snapshot start=0 0-9 available 1
        0 update 2-3 available 1
        0 update 0-9 available 0      # a smaller delivery count never prevails
        """,
        """
        0 0-9 available 1 | 0 > open | life 0
        """,
    ),
    "neighbours that become equal are joined": (
        """
        0 snapshot start=0 0-4 acknowledged 1, 5-9 available 1
        0 update 5-9 acknowledged 1
        """,
        """
        0 0-4 acknowledged 1 | 0 > 1 split_or_joined | life 0
        0 0-9 acknowledged 1 | 1 > open | life 0
        0 5-9 available 1 | 0 > 1 changed | life 0
        """,
    ),
    "the start offset passes one range and cuts the next": (
        """
        0 snapshot start=0 0-4 acknowledged 1, 5-9 available 1
        0 update start=7
        """,
        """
        0 0-4 acknowledged 1 | 0 > 1 start_offset_passed | life 0
        0 5-9 available 1 | 0 > 1 split_or_joined | life 0
        0 7-9 available 1 | 1 > open | life 0
        """,
    ),
    "a snapshot that repeats the state ends nothing": (
        """
        0 snapshot start=0 snapshot=1 0-4 acknowledged 1
        0 update 5-6 archived 2
        0 snapshot start=0 snapshot=2 0-4 acknowledged 1, 5-6 archived 2
        """,
        """
        0 0-4 acknowledged 1 | 0 > open | life 0
        0 5-6 archived 2 | 1 > open | life 0
        """,
    ),
    "a snapshot holds the write that triggered it": (
        """
        0 snapshot start=0 snapshot=1 0-4 available 1
        0 snapshot start=3 snapshot=2 3-4 acknowledged 1
        """,
        """
        0 0-4 available 1 | 0 > 1 changed | life 0
        0 3-4 acknowledged 1 | 1 > open | life 0
        """,
    ),
    "a tombstone deletes, and what comes after is another life": (
        """
        0 snapshot start=0 0-4 available 1
        0 tombstone
        0 snapshot start=0 snapshot=0 0-4 available 1
        """,
        """
        0 0-4 available 1 | 0 > 1 deleted | life 0
        0 0-4 available 1 | 2 > open | life 2
        """,
    ),
    "a re-initialization resets, equal ranges included": (
        """
        0 snapshot start=0 epoch=1 0-4 available 1
        0 update 5-6 archived 1
        0 snapshot start=0 epoch=2 0-4 available 1
        """,
        """
        0 0-4 available 1 | 0 > 2 reset | life 0
        0 0-4 available 1 | 2 > open | life 2
        0 5-6 archived 1 | 1 > 2 reset | life 0
        """,
    ),
    "share partitions do not touch each other": (
        """
        0 snapshot start=0 0-4 available 1
        1 snapshot start=0 0-4 available 1
        1 tombstone
        """,
        """
        0 0-4 available 1 | 0 > open | life 0
        1 0-4 available 1 | 1 > 2 deleted | life 1
        """,
    ),
    "updates without a snapshot begin a life of their own": (
        """
        0 update 3-4 acknowledged 1
        0 update 5 acknowledged 1
        """,
        """
        0 3-4 acknowledged 1 | 0 > 1 split_or_joined | life 0
        0 3-5 acknowledged 1 | 1 > open | life 0
        """,
    ),
}


@pytest.mark.parametrize("case", DELIVERY_CASES)
def test_delivery_history(case):
    log, expected = DELIVERY_CASES[case]
    done = replay_records(table(parsed(log)))
    assert sorted(delivery_lines(delivery(done))) == sorted(line.strip() for line in expected.strip().splitlines())


LOSS_LOG = """
    0 snapshot start=0 0-4 available 1
    1 snapshot start=0 0-4 available 1
    0 update 0-4 acknowledged 1
    1 snapshot start=0 snapshot=2 0-4 available 1
    2 update 7 archived 1
    """
ALL_COMPLETE = {0: ("complete", None), 1: ("complete", None), 2: ("provisional", "orphan")}


def loss(first, last=None, reason="gap", **key):
    return Loss(first_offset=first, last_offset=first if last is None else last, reason=reason, **key)


@pytest.mark.parametrize(
    ("losses", "changed"),
    [
        pytest.param([], {}, id="nothing lost"),
        pytest.param([loss(9)], {}, id="before the log: all snapshots come later"),
        pytest.param([loss(11, 12)], {0: "gap"}, id="1 is made whole by its next snapshot"),
        pytest.param([loss(16, reason="truncated")], {0: "truncated", 1: "truncated"}, id="after the last snapshot"),
        pytest.param([loss(99, reason="quarantined")], {0: "quarantined", 1: "quarantined"}, id="at the end"),
        pytest.param(
            [loss(12, reason="gap"), loss(99, reason="vanished")],
            {0: "gap", 1: "vanished"},
            id="the first loss since the snapshot is named",
        ),
        pytest.param(
            [loss(99, reason="quarantined", group_id="g", topic_id="A" * 22, partition=1)],
            {1: "quarantined"},
            id="a record of 1 that could not be decoded touches 1 alone",
        ),
        pytest.param(
            [loss(99, group_id="elsewhere", topic_id="A" * 22, partition=1)], {}, id="a share partition never seen"
        ),
    ],
)
def test_a_state_is_incomplete_when_something_is_lost_since_its_snapshot(losses, changed):
    offsets = [10, 11, 13, 15, 17]
    rows = table(parsed(LOSS_LOG)).set_column(2, schemas.SHARE_RECORD.field("log_offset"), pa.array(offsets))
    state = replay_records(rows, losses=losses).state.to_pylist()
    expected = ALL_COMPLETE | {partition: ("incomplete", reason) for partition, reason in changed.items()}
    assert {row["partition"]: (row["completeness"], row["completeness_reason"]) for row in state} == expected


def test_an_uncommitted_record_marks_the_state_until_the_next_snapshot():
    log = parsed("0 snapshot start=0 0-4 available 1\n0 update 0 acknowledged 1 uncommitted=1\n0 snapshot start=0")
    history = replay_records(table(log)).history.to_pylist()
    assert [row["completeness"] for row in history] == ["complete", "uncommitted", "complete"]


UNKNOWN_STATE_CASES = {
    "an unknown state marks every state up to a snapshot without one": (
        """
        0 snapshot start=0 0-4 available 1
        0 update 0-1 unknown(5) 1
        0 update 0-1 acknowledged 2, 2 acknowledged 1
        0 snapshot start=0 snapshot=2 0-1 acknowledged 2, 2-4 unknown(5) 1
        0 update 2-4 acknowledged 2
        0 snapshot start=0 snapshot=3 0-4 acknowledged 2
        """,
        ["complete", "unknown_state", "unknown_state", "unknown_state", "unknown_state", "complete"],
    ),
    "it is one of any batch, and of a negative number": (
        """
        0 snapshot start=0
        0 update 0-1 available 1, 2 unknown(-3) 1
        """,
        ["complete", "unknown_state"],
    ),
    "the mark goes on when the start offset passes it": (
        """
        0 snapshot start=0 0-4 unknown(5) 1
        0 update start=5
        """,
        ["unknown_state", "unknown_state"],
    ),
    "other share partitions are complete": (
        """
        0 snapshot start=0 0-4 unknown(5) 1
        1 snapshot start=0 0-4 available 1
        """,
        ["unknown_state", "complete"],
    ),
    "it says more than that a record is uncommitted": (
        """
        0 snapshot start=0
        0 update 0 unknown(5) 1 uncommitted=1
        0 update 1 acknowledged 1 uncommitted=1
        """,
        ["complete", "unknown_state", "unknown_state"],
    ),
    "a record of unknown type may have changed its share partition": (
        """
        0 snapshot start=0
        1 snapshot start=0
        0 other
        0 update 0 acknowledged 1
        1 update 0 acknowledged 1
        0 snapshot start=0 snapshot=2
        """,
        ["complete", "complete", "unknown_state", "unknown_state", "complete", "complete"],
    ),
    "a record of unknown type begins no share partition": (
        """
        0 other
        0 snapshot start=0
        0 tombstone
        0 other
        """,
        ["complete", "complete"],
    ),
    "a provisional state stays one": (
        """
        0 update 0 unknown(5) 1
        0 snapshot start=0
        """,
        ["orphan", "complete"],
    ),
}


@pytest.mark.parametrize("case", UNKNOWN_STATE_CASES)
def test_states_that_rest_on_an_unknown_delivery_state_say_so(case):
    log, expected = UNKNOWN_STATE_CASES[case]
    history = replay_records(table(parsed(log))).history.to_pylist()
    assert [row["completeness_reason"] or row["completeness"] for row in history] == expected
    assert {row["completeness"] for row in history if row["completeness_reason"] == "unknown_state"} <= {"incomplete"}


def test_an_unknown_delivery_state_is_kept_and_follows_the_maximum_rule():
    log = "0 snapshot start=0 0-9 available 1\n0 update 0-4 unknown(5) 1\n0 update 0-1 acknowledged 1, 2 available 2"
    (row,) = replay_records(table(parsed(log))).state.to_pylist()
    ranges = [tuple(batch[name] for name in BATCH) for batch in row["state_batches"]]
    assert ranges == [(0, 1, 5, 1), (2, 2, 0, 2), (3, 4, 5, 1), (5, 9, 0, 1)]


def test_a_state_whose_snapshot_lies_below_the_log_start_says_so():
    log = parsed("0 snapshot start=0\n1 snapshot start=0")
    state = replay_records(table(log), log_start_offset=1).state.to_pylist()
    assert [row["below_log_start"] for row in state] == [True, False]


def test_a_tombstone_of_what_is_not_there_says_nothing_of_an_earlier_life():
    log = parsed("0 update 0 acknowledged 1\n0 tombstone\n0 tombstone")
    first, ends, repeats = replay_records(table(log)).history.to_pylist()
    assert (first["life_log_offset"], ends["life_log_offset"], repeats["life_log_offset"]) == (0, 0, None)
    assert (repeats["completeness"], repeats["completeness_reason"]) == ("complete", None)


def test_the_state_epoch_of_a_snapshot_over_a_provisional_state_is_the_maximum_whatever_its_sign():
    log = parsed("0 update 0 acknowledged 1\n0 snapshot epoch=-5")
    (state,) = replay_records(table(log)).state.to_pylist()
    assert state["state_epoch_max_from_log"] == -5


def test_the_reason_is_the_first_loss_however_the_log_is_taken_in_pieces():
    rows = table(parsed("0 snapshot start=0\n1 snapshot start=0\n1 update 0 acknowledged 1"))
    losses = [loss(5, reason="gap"), loss(7, reason="vanished")]
    first = replay_records(rows, losses=losses[:1]).state
    in_pieces = replay_records(rows.slice(0, 0), seed=first, losses=losses[1:]).state
    assert in_pieces.equals(replay_records(rows, losses=losses).state)
    assert in_pieces.column("completeness_reason").to_pylist() == ["gap", "gap"]


@pytest.mark.parametrize("lost", [1, 5])
def test_an_unknown_delivery_state_is_the_reason_whether_records_are_lost_before_or_after_it(lost):
    offsets = [0, 3]
    log = parsed("0 snapshot start=0\n0 update 0 unknown(5) 1")
    rows = table(log).set_column(2, schemas.SHARE_RECORD.field("log_offset"), pa.array(offsets))
    state = replay_records(rows, losses=[loss(lost)]).state
    assert state.column("completeness_reason").to_pylist() == ["unknown_state"]
