"""The draft's worked examples, field by field: records as bytes and back, and the cumulative state after each."""

import pytest

from state_model.early_draft.records import Checkpoint, Delta, decode, encode
from state_model.early_draft.replay import apply, recover
from state_model.early_draft.writer import DraftLog
from state_model.share_records import DeliveryState, StateBatch

AVAILABLE, ACKNOWLEDGED = int(DeliveryState.AVAILABLE), int(DeliveryState.ACKNOWLEDGED)


def states(*batches):
    return tuple(StateBatch(*batch) for batch in batches)


CUMULATIVE = Checkpoint(
    group_id="G1",
    checkpoint_epoch=1,
    start_offset=110,
    end_offset=121,
    states=states(
        (110, 110, AVAILABLE, 1),
        (111, 112, AVAILABLE, 1),
        (113, 118, AVAILABLE, 0),
        (119, 119, ACKNOWLEDGED, 1),
        (120, 120, AVAILABLE, 0),
    ),
)
"""The first example's second row: SPSO 110, SPEO 121."""
FIRST = Checkpoint("G1", 1, 100, 100, ())
DELTAS = {
    131: (Delta("G1", 1, 130, states((100, 109, ACKNOWLEDGED, 1))), 110, 110),
    132: (Delta("G1", 1, 131, states((110, 110, AVAILABLE, 1))), 110, 111),
    133: (Delta("G1", 1, 132, states((111, 118, AVAILABLE, 0), (119, 119, ACKNOWLEDGED, 1))), 110, 120),
    134: (Delta("G1", 1, 133, states((111, 112, AVAILABLE, 1))), 110, 120),
    135: (Delta("G1", 1, 134, states((113, 118, ACKNOWLEDGED, 1))), 110, 120),
    136: (Delta("G1", 1, 135, states((110, 110, ACKNOWLEDGED, 2))), 111, 120),
    137: (Delta("G1", 1, 136, states((111, 112, ACKNOWLEDGED, 2))), 120, 120),
}
"""The second example: log offset -> record, SPSO after it, and the SPEO that the control records know.

The draft prints 110 as both offsets of its SHARE_CHECKPOINT at offset 130, but its row says SPSO and SPEO 100, and the
next row acknowledges 100 to 109: 100 is meant (FIRST).
"""
LAST = Checkpoint("G1", 2, 120, 120, ())
"""The checkpoint that the draft offers in place of the delta at offset 137."""


@pytest.mark.parametrize("record", [FIRST, CUMULATIVE, LAST, *(delta for delta, _, _ in DELTAS.values())])
def test_every_record_of_the_draft_is_read_as_it_was_written(record):
    assert decode(*encode(record)) == record


def test_a_checkpoint_has_the_fields_of_the_draft_in_their_order():
    key, value = encode(CUMULATIVE._replace(states=CUMULATIVE.states[:1]))
    assert key == bytes.fromhex("0000 0007")
    assert value == bytes.fromhex(
        "0000"  # version
        "03 4731"  # GroupId
        "00000001"  # CheckpointEpoch
        "000000000000006e 0000000000000079"  # StartOffset, EndOffset
        "02 000000000000006e 000000000000006e 00 0001 00"  # States
        "00"
    )


def test_a_delta_has_the_fields_of_the_draft_in_their_order():
    key, value = encode(DELTAS[132][0])
    assert key == bytes.fromhex("0000 0008")
    assert value == bytes.fromhex(
        "0000 03 4731 00000001 0000000000000083 02 000000000000006e 000000000000006e 00 0001 00 00"
    )


def test_each_control_record_gives_the_cumulative_state_of_its_row():
    state = apply(None, 130, FIRST)
    assert (state.start_offset, state.end_offset, state.states) == (100, 100, ())
    for offset, (delta, start, end) in DELTAS.items():
        state = apply(state, offset, delta)
        assert (offset, state.start_offset, state.end_offset) == (offset, start, end)


def test_the_state_before_the_last_acknowledgements_is_that_of_the_row():
    state = apply(None, 130, FIRST)
    for offset in range(131, 136):
        state = apply(state, offset, DELTAS[offset][0])
    assert state.states == states((110, 112, AVAILABLE, 1), (113, 119, ACKNOWLEDGED, 1))


def test_the_alternative_checkpoint_is_the_state_after_the_delta_in_its_place():
    state = apply(None, 130, FIRST)
    for offset, (delta, _, _) in DELTAS.items():
        state = apply(state, offset, delta)
    alternative = apply(None, 137, LAST)
    assert (state.start_offset, state.end_offset, state.states) == (
        alternative.start_offset,
        alternative.end_offset,
        alternative.states,
    )


def test_a_leader_recovers_from_the_newest_record_back_to_the_checkpoint():
    records = {130: FIRST} | {offset: delta for offset, (delta, _, _) in DELTAS.items()}
    state, read = recover(records.get, "G1", 135)
    assert read == 6
    assert (state.start_offset, state.end_offset) == (110, 120)


def test_the_writer_writes_the_records_of_the_draft():
    log = DraftLog("G1", 100, log_offset=130)
    assert log.first == FIRST
    changes = {offset: delta.states for offset, (delta, _, _) in DELTAS.items()}
    changes[133] = states((119, 119, ACKNOWLEDGED, 1))
    for offset, (delta, _, _) in DELTAS.items():
        assert log.write(changes[offset]) == delta
