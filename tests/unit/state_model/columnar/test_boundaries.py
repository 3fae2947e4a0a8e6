"""Chunks that are replayed from their boundary states say what one replay says."""

from dataclasses import replace
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_model.columnar import replay, schemas
from state_model.columnar.boundaries import WEIGHT, BoundaryStates, summary_of, thinned
from state_model.columnar.values import Loss, losses_until
from tests.logs.replay_logs import HOSTILE_LOGS, LATER_LOGS, parsed, table

CUTS = st.lists(st.integers(0, 20), max_size=4).map(sorted)
LOSSES = st.lists(
    st.builds(
        lambda first, size, reason, partition: Loss(
            first_offset=first,
            last_offset=first + (size if partition is None else 0),
            reason=reason,
            group_id=None if partition is None else "g",
            topic_id=None if partition is None else "AAAAAAAAAAAAAAAAAAAAAA",
            partition=partition,
        ),
        st.integers(0, 25),
        st.integers(0, 3),
        st.sampled_from(["gap", "quarantined"]),
        st.sampled_from([None, None, 0, 1]),
    ),
    max_size=3,
).map(lambda losses: sorted(losses, key=lambda loss: loss.first_offset))
ORDER = [("group_id", "ascending"), ("topic_id", "ascending"), ("partition", "ascending"), ("log_offset", "ascending")]
RANGE_ORDER = [*ORDER[:3], ("first_offset", "ascending"), ("valid_from_log_offset", "ascending")]


def pieces(rows, cuts):
    """The rows between the cuts; none is empty."""
    bounds = sorted({0, *(min(cut, rows.num_rows) for cut in cuts), rows.num_rows})
    return [rows.slice(first, end - first) for first, end in pairwise(bounds)]


def replayed_by_chunks(rows, cuts, batches, seed, losses, limit):
    """History, closed ranges and states of chunks replayed apart; `batches` splits the input of a summary."""
    boundary = BoundaryStates(seed, losses, update_limit=limit)
    history, closed = [], []
    for chunk in pieces(rows, cuts):
        records = chunk.select(schemas.REPLAYED.names).cast(schemas.REPLAYED)
        before = boundary.advance(summary_of(pieces(records, batches)))
        chunk_replay = replay.replay_records(chunk, seed=before, losses=losses_until(losses, chunk), update_limit=limit)
        history.append(chunk_replay.history)
        closed.append(chunk_replay.closed)
    return pa.concat_tables(history), pa.concat_tables(closed), boundary.settled(3)


def assert_same(ours, whole_replay):
    history, closed, state = ours
    assert history.sort_by(ORDER).equals(whole_replay.history.sort_by(ORDER))
    assert closed.sort_by(RANGE_ORDER).equals(whole_replay.closed.sort_by(RANGE_ORDER))
    assert state.equals(whole_replay.state)


@pytest.mark.slow
@given(LATER_LOGS | HOSTILE_LOGS, CUTS, CUTS, LOSSES, st.integers(0, 4))
def test_chunks_from_their_boundary_states_are_one_replay(log, cuts, batches, losses, limit):
    rows = table(log)
    none = schemas.SHARE_PARTITION_STATE.empty_table()
    whole_replay = replay.replay_records(rows, losses=losses, update_limit=limit, log_start_offset=3)
    assert_same(replayed_by_chunks(rows, cuts, batches, none, losses, limit), whole_replay)


@pytest.mark.slow
@given(LATER_LOGS, LATER_LOGS, CUTS, st.integers(0, 4))
def test_chunks_on_top_of_an_earlier_state_are_one_replay(before, log, cuts, limit):
    seed = replay.replay_records(table(before), update_limit=limit).state
    rows = table(log, first_offset=len(before))
    whole_replay = replay.replay_records(rows, seed=seed, update_limit=limit, log_start_offset=3)
    assert_same(replayed_by_chunks(rows, cuts, [], seed, [], limit), whole_replay)


HOT = """
    0 snapshot start=0 0-4 available 1
    {updates}
    0 snapshot start=0 5-9 acknowledged 1
    {updates}
"""


@pytest.mark.parametrize("count", [1, 7, 300])
def test_a_hot_share_partition_is_thinned_to_a_few_records_a_snapshot(count):
    log = HOT.format(updates="\n    ".join(["0 update start=0 5-9 available 1"] * count))
    rows = table(parsed(log))
    thinned_rows = thinned(rows.select(schemas.REPLAYED.names))
    assert thinned_rows.num_rows <= 2 * 4
    assert sum(thinned_rows.column(WEIGHT).to_pylist()) == 2 * count


def test_a_thinned_log_has_the_first_update_with_an_unknown_delivery_state_of_each_snapshot():
    updates = [
        "0 update 0 available 1",
        "0 other",
        "0 update 1 available 1, 2 unknown(5) 1",
        "0 update 3 unknown(-3) 1",
    ]
    rows = table(parsed("\n".join(["0 snapshot start=0", *updates, "0 update 4 available 1", "0 tombstone"])))
    thinned_rows = thinned(rows.select(schemas.REPLAYED.names)).to_pylist()
    states = {
        row["log_offset"]: [batch["delivery_state"] for batch in row["state_batches"] or ()] for row in thinned_rows
    }
    assert states[2] == []
    assert states[3] == [5]
    assert all(len(of_row) <= 1 for of_row in states.values())


def summary(log):
    return summary_of([table(parsed(log)).select(schemas.REPLAYED.names)])


@pytest.mark.parametrize(
    ("log", "other", "problem"),
    [
        ("0 snapshot start=0 0-4 available 1", "0 snapshot start=0 5-9 available 1", "is not in the state"),
        ("0 tombstone\n0 snapshot start=0 0-4 available 1", "0 tombstone", "contradict each other"),
    ],
)
def test_a_summary_whose_ends_are_those_of_other_records_is_refused(log, other, problem):
    mixed = replace(summary(log), ends=summary(other).ends)
    with pytest.raises(ValueError, match=problem):
        BoundaryStates(schemas.SHARE_PARTITION_STATE.empty_table(), []).advance(mixed)
