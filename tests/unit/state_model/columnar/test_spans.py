"""Chunks of a state partition that fold on their own, stitched, are one replay."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_model.columnar import replay, spans
from state_model.columnar.values import Loss
from tests.replay_logs import HOSTILE_LOGS, LOGS, parsed, table

CUTS = st.lists(st.integers(0, 20), max_size=4).map(sorted)
LOSSES = st.lists(
    st.builds(
        lambda first, size, reason: Loss(first_offset=first, last_offset=first + size, reason=reason),
        st.integers(0, 25),
        st.integers(0, 3),
        st.sampled_from(["gap", "quarantined"]),
    ),
    max_size=2,
)


def chunked(rows, cuts):
    bounds = [0, *(min(cut, rows.num_rows) for cut in cuts), rows.num_rows]
    return [rows.slice(first, end - first) for first, end in pairwise(bounds)]


def assert_equal(ours, whole):
    assert ours.history.equals(whole.history)
    assert ours.closed.equals(whole.closed)
    assert ours.state.equals(whole.state)


@given(LOGS | HOSTILE_LOGS, CUTS, st.integers(0, 4))
def test_chunks_side_by_side_are_one_replay(log, cuts, limit):
    rows = table(log)
    ours = spans.replay_chunks(chunked(rows, cuts), update_limit=limit, log_start_offset=3)
    assert_equal(ours, replay.replay_records(rows, update_limit=limit, log_start_offset=3))


@given(LOGS, LOGS, CUTS)
def test_chunks_on_top_of_an_earlier_state_are_one_replay(before, log, cuts):
    seed = replay.replay_records(table(before)).state
    rows = table(log, first_offset=len(before))
    assert_equal(spans.replay_chunks(chunked(rows, cuts), seed=seed), replay.replay_records(rows, seed=seed))


@given(LOGS, CUTS, LOSSES)
def test_a_loss_marks_the_same_states_in_chunks(log, cuts, losses):
    rows = table(log)
    losses = sorted(losses, key=lambda loss: loss.first_offset)
    ours = spans.replay_chunks(chunked(rows, cuts), losses=losses)
    assert_equal(ours, replay.replay_records(rows, losses=losses))


SPANS = """
    0 snapshot start=0 0-4 available 1
    1 snapshot start=0 0-4 available 1
    0 snapshot start=0 0-4 available 1, 5 available 1
    1 update 0 acknowledged 1
    2 update 0 acknowledged 1
    """


@pytest.mark.parametrize(("records", "begin"), [(3, 1), (1, 0), (5, 0)])
def test_a_chunk_needs_the_log_from_the_earliest_of_the_latest_snapshots_on(records, begin):
    scalars = replay.replay_scalars(table(parsed(SPANS)[:records]))
    assert spans.span_begin(scalars, 0) == begin


def test_nothing_before_the_run_is_needed():
    scalars = replay.replay_scalars(table(parsed(SPANS)))
    assert spans.span_begin(scalars, 4) == 4
    assert spans.span_begin(scalars.slice(0, 0), 2) == 2


def test_a_chunk_without_the_snapshot_of_its_share_partition_is_refused():
    rows = table(parsed(SPANS))
    scalars = replay.replay_scalars(rows.slice(0, 3))
    with pytest.raises(ValueError, match="no record from its snapshot on"):
        spans.chunk_seed(rows.slice(2, 1), None, scalars)
