"""The audit over Arrow finds what the reference form finds, with the same values and proving records."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_model.share_records import ShareSnapshot, ShareUpdate, StateBatch
from tests.audit.logs import columnar_passed, columnar_rows, reference_passed, reference_rows
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
@given(LOGS, st.booleans(), LOSSES, CHUNKS)
def test_start_offsets_pass_what_they_pass_in_the_reference_form(log, is_from_zero, losses, chunk):
    losses = sorted(losses, key=lambda loss: loss[0])
    expected = reference_passed(log, is_from_zero=is_from_zero, losses=losses)
    assert columnar_passed(log, is_from_zero=is_from_zero, losses=losses, chunk=chunk) == expected


AVAILABLE, ACKNOWLEDGED = 0, 2
OLDER_WRITE = [(0, 0, 5, ACKNOWLEDGED), (6, 6, 7, ACKNOWLEDGED), (2, 6, 7, ACKNOWLEDGED)]
"""Start offset, and first, last offset and state of a batch, by write; the last moves the start offset back."""


@pytest.mark.parametrize(
    ("writes", "passed"),
    [
        ([(0, 0, 5, ACKNOWLEDGED), (6, 6, 7, ACKNOWLEDGED)], []),
        ([(0, 0, 5, ACKNOWLEDGED), (8, 8, 9, ACKNOWLEDGED)], [(6, 7)]),
        ([(0, 0, 3, AVAILABLE), (6, 6, 7, ACKNOWLEDGED)], [(0, 5)]),
        ([(0, 2, 3, ACKNOWLEDGED), (6, 6, 7, ACKNOWLEDGED)], [(0, 1), (4, 5)]),
        ([*OLDER_WRITE, (8, 8, 8, ACKNOWLEDGED)], []),
        ([*OLDER_WRITE, (9, 9, 9, ACKNOWLEDGED)], [(8, 8)]),
    ],
    ids=["nothing", "a hole", "available ones", "two ranges", "behind an older write", "a hole behind an older write"],
)
def test_what_the_start_offset_of_writes_passes(writes, passed):
    values = [snapshot()._replace(start_offset=0, delivery_complete_count=0)]
    for start, first, last, state in writes:
        batches = (StateBatch(first, last, state, 1),)
        values.append(ShareUpdate(snapshot_epoch=0, leader_epoch=0, start_offset=start, state_batches=batches))
    log = [(KEYS[0], value, False) for value in values]
    offsets = [offset for first, last in passed for offset in range(first, last + 1)]
    assert [offset for row in columnar_passed(log) for offset in row.offsets] == offsets


def test_the_first_write_behind_a_snapshot_whose_past_is_unknown_passes_nothing():
    """A retried older write may have moved the start offset of the snapshot back."""
    values = [snapshot()._replace(start_offset=0, delivery_complete_count=0)]
    for start in (6, 9):
        batches = (StateBatch(start, start, ACKNOWLEDGED, 1),)
        values.append(ShareUpdate(snapshot_epoch=0, leader_epoch=0, start_offset=start, state_batches=batches))
    log = [(KEYS[0], value, False) for value in values]
    assert [row.offsets for row in columnar_passed(log)] == [(0, 1, 2, 3, 4, 5), (7, 8)]
    assert [row.offsets for row in columnar_passed(log, is_from_zero=False)] == [(7, 8)]


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
