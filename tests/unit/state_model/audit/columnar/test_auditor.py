"""The audit over Arrow finds what the reference form finds, with the same values and proving records."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_model.share_records import ShareSnapshot, ShareUpdate, StateBatch
from tests.audit.logs import columnar_rows, reference_rows
from tests.logs.replay_logs import HOSTILE_LOGS, KEYS, LOGS

LOSSES = st.lists(st.tuples(st.integers(0, 12), st.sampled_from([None, *KEYS])), max_size=3)
CHUNKS = st.integers(1, 5) | st.none()


def without_bytes(rows):
    """Rows of trailing bytes and tagged fields need bytes, which these logs don't have."""
    return [row for row in rows if row[0] not in (12, 13)]


@pytest.mark.slow
@given(LOGS, st.booleans(), CHUNKS, st.none() | st.integers(1, 2))
def test_any_log(log, is_from_zero, chunk, limit):
    limits = None if limit is None else {"g": limit}
    expected = reference_rows(log, is_from_zero=is_from_zero, limits=limits)
    assert columnar_rows(log, is_from_zero=is_from_zero, chunk=chunk, limits=limits) == without_bytes(expected)


@given(HOSTILE_LOGS, CHUNKS)
def test_any_number_that_fits_the_bytes(log, chunk):
    assert columnar_rows(log, chunk=chunk) == without_bytes(reference_rows(log))


def test_a_cold_snapshot_with_a_delivery_state_of_a_later_kafka_is_compared():
    cold = snapshot()._replace(write_timestamp_ms=1)
    log = [(KEYS[0], cold, False), (KEYS[0], cold._replace(state_batches=(StateBatch(0, 0, -1, 1),)), False)]
    assert 510 in {row[0] for row in columnar_rows(log)}
    assert columnar_rows(log) == reference_rows(log)


@pytest.mark.slow
@given(LOGS, LOSSES, CHUNKS)
def test_losses(log, losses, chunk):
    losses = sorted(losses, key=lambda loss: loss[0])
    assert columnar_rows(log, losses=losses, chunk=chunk) == without_bytes(reference_rows(log, losses=losses))


@pytest.mark.slow
def test_a_state_outlives_the_growth_and_the_move_of_its_place():
    log = [(key, snapshot(), False) for key in KEYS]
    for turn in range(200):
        start = 0 if turn % 50 else 7 * turn
        log += [(key, update(start, 7 * turn, 1 + turn % 2), False) for key in KEYS]
        log += [(KEYS[0], update(start, 7 * (turn * 13 % 200), 2), False)]
    expected = reference_rows(log)
    assert {row[0] for row in expected} >= {270, 620}
    assert columnar_rows(log) == columnar_rows(log, chunk=17) == without_bytes(expected)


def snapshot():
    return ShareSnapshot(
        snapshot_epoch=0,
        state_epoch=1,
        leader_epoch=0,
        start_offset=-1,
        create_timestamp_ms=0,
        write_timestamp_ms=0,
        state_batches=(),
    )


def update(start, first, state):
    return ShareUpdate(
        snapshot_epoch=0,
        leader_epoch=0,
        start_offset=start,
        state_batches=(StateBatch(first, first + 3, 2 * state, 1),),
        delivery_complete_count=0,
    )


@pytest.mark.parametrize("form", [reference_rows, columnar_rows])
def test_an_empty_log_has_no_violation(form):
    assert form([]) == []
