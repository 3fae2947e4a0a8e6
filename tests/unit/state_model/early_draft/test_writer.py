"""Both designs, fed the same operations, hold the same state; recovery from any prefix gives the state before it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_model.batches import coalesce, combine, prune
from state_model.early_draft.records import Checkpoint, Delta, control_type_of, decode, encode
from state_model.early_draft.replay import TERMINAL, BrokenChainError, apply, overlaid, recover
from state_model.early_draft.writer import DraftLog
from state_model.errors import DecodeError
from state_model.rule_sets import KAFKA_4_4
from state_model.share_records import StateBatch
from tests.logs import share_values

OFFSETS = 24
STEPS = st.lists(
    st.tuples(st.integers(0, OFFSETS - 1), st.integers(0, 6), st.sampled_from([0, 2, 4])), min_size=1, max_size=30
)
"""Deliveries with their outcome: first offset, further offsets, delivery state."""
VALUES = st.lists(
    st.builds(
        StateBatch, share_values.INT64, share_values.INT64, st.integers(-128, 127), share_values.INT16, st.just(())
    ),
    max_size=4,
).map(tuple)
RECORDS = st.one_of(
    st.builds(Checkpoint, st.text(max_size=5), share_values.INT32, share_values.INT64, share_values.INT64, VALUES),
    st.builds(Delta, st.text(max_size=5), share_values.INT32, share_values.INT64, VALUES),
)


def writes(steps):
    """State batches of writes as a leader sends them: a delivery raises the count of what is not terminal."""
    state_by_offset = {}
    for first, extra_count, state in steps:
        changed = []
        for offset in range(first, min(first + extra_count + 1, OFFSETS)):
            before, count = state_by_offset.get(offset, (0, 0))
            if before not in TERMINAL:
                state_by_offset[offset] = (state, count + 1)
                changed.append(StateBatch(offset, offset, state, count + 1))
        if changed:
            yield changed


@given(STEPS, st.integers(0, 5))
def test_both_designs_hold_the_same_state_of_every_offset(steps, deltas):
    log, shipped = DraftLog("g", 0, deltas_per_checkpoint=deltas), ()
    for changes in writes(steps):
        log.write(changes)
        shipped = combine(shipped, changes, 0, rules=KAFKA_4_4)
        start = log.state.start_offset
        assert log.state.delivered() == coalesce(prune(shipped, start))
        assert all(batch.delivery_state in TERMINAL for batch in shipped if batch.last_offset < start)


@given(STEPS, st.integers(0, 5))
def test_recovery_from_any_prefix_is_the_state_before(steps, deltas):
    log = DraftLog("g", 0, deltas_per_checkpoint=deltas)
    records = {0: log.first}
    for changes in writes(steps):
        records[len(records)] = log.write(changes)
        state, read = recover(records.get, "g", len(records) - 1)
        assert state == log.state
        assert read <= deltas + 1


@given(RECORDS)
def test_bytes_are_read_as_they_were_written(record):
    assert decode(*encode(record)) == record


@given(RECORDS, st.data())
def test_bytes_that_are_cut_short_are_refused(record, data):
    key, value = encode(record)
    with pytest.raises(DecodeError):
        decode(key, value[: data.draw(st.integers(0, len(value) - 1))])


def test_a_transaction_marker_is_no_record_of_the_design():
    marker = bytes.fromhex("0000 0001")
    assert control_type_of(marker) is None
    assert decode(marker, b"\0\0\0\0\0\0") is None


@pytest.mark.parametrize(
    ("key", "value"),
    [(None, b""), (b"\0\0\0", b""), (bytes.fromhex("00000008"), None), (bytes.fromhex("00000008"), b"\0\1")],
)
def test_what_is_no_record_is_refused(key, value):
    with pytest.raises(DecodeError):
        decode(key, value)


@pytest.mark.parametrize(
    ("record", "reason"),
    [(Delta("g", 1, 4, ()), "goes back to offset 4"), (Delta("g", 2, 5, ()), "checkpoint epoch 2")],
)
def test_a_delta_that_does_not_follow_is_refused(record, reason):
    state = apply(None, 5, Checkpoint("g", 1, 0, 0, ()))
    with pytest.raises(BrokenChainError, match=reason):
        apply(state, 6, record)
    with pytest.raises(BrokenChainError, match="no SHARE_CHECKPOINT"):
        apply(None, 6, record)


@pytest.mark.parametrize("record", [None, Checkpoint("other", 1, 0, 0, ()), Delta("g", 1, 9, ())])
def test_a_chain_that_leads_nowhere_is_refused(record):
    with pytest.raises(BrokenChainError):
        recover({7: record}.get, "g", 7)


def test_later_states_take_the_place_of_earlier_ones():
    old = (StateBatch(0, 9, 0, 1), StateBatch(20, 29, 2, 1))
    assert overlaid(old, [StateBatch(5, 24, 4, 3)]) == (
        StateBatch(0, 4, 0, 1),
        StateBatch(5, 24, 4, 3),
        StateBatch(25, 29, 2, 1),
    )
