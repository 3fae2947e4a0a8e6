"""The writes of a history under the early design: the same states, and what they cost."""

import pyarrow as pa
import pytest

from sharelens.measures.early_draft_cost import draft_cost, draft_writes
from sharelens.measures.histories.numbers import Histories
from state_model.batches import coalesce, prune
from state_model.columnar.replay import open_ranges, replay_records
from state_model.early_draft.records import Checkpoint, Delta, encode
from state_model.early_draft.replay import TERMINAL, apply
from state_model.share_records import StateBatch
from tests.logs.replay_logs import parsed, table

STORY = """
    0 snapshot start=0 snapshot=0
    0 update start=0 0-3 acknowledged 1
    0 update start=0 4-7 available 1
    0 update start=4 4-7 acknowledged 2
    0 snapshot start=20 snapshot=1 state=9
    0 update start=20 22-23 acknowledged 1
"""


def replayed(text):
    rows = table(parsed(text))
    done = replay_records(rows)
    return rows, done.history, pa.concat_tables([done.closed, open_ranges(done.state)]), done.state


def written(text, deltas=500):
    _, history, deliveries, _ = replayed(text)
    return {
        place: list(records)
        for place, _, records in draft_writes(Histories.of(history, deliveries), deltas_per_checkpoint=deltas)
    }


def test_writes_become_deltas_and_creations_and_resets_become_checkpoints():
    (records,) = written(STORY).values()
    assert records == [
        Checkpoint("g", 1, 0, 0, ()),
        Delta("g", 1, 0, (StateBatch(0, 3, 2, 1),)),
        Delta("g", 1, 1, (StateBatch(4, 7, 0, 1),)),
        Delta("g", 1, 2, (StateBatch(4, 7, 2, 2),)),
        Checkpoint("g", 2, 20, 20, ()),
        Delta("g", 2, 4, (StateBatch(20, 21, 0, 0), StateBatch(22, 23, 2, 1))),
    ]


@pytest.mark.parametrize("deltas", [0, 1, 500])
def test_both_designs_hold_the_same_state_at_the_end(deltas):
    (records,) = written(STORY, deltas).values()
    state = None
    for offset, record in enumerate(records):
        state = apply(state, offset, record)
    (shipped,) = replayed(STORY)[3].to_pylist()
    names = ("first_offset", "last_offset", "delivery_state", "delivery_count")
    batches = [StateBatch(*(batch[name] for name in names)) for batch in shipped["state_batches"]]
    assert state.delivered() == coalesce(prune(batches, state.start_offset))
    assert all(batch.delivery_state in TERMINAL for batch in batches if batch.last_offset < state.start_offset)


def test_the_cost_is_that_of_the_records():
    rows, history, deliveries, _ = replayed(STORY)
    (row,) = draft_cost(rows, history, deliveries, deltas_per_checkpoint=500).to_pylist()
    (records,) = written(STORY).values()
    assert row["draft_bytes"] == sum(len(part) for record in records for part in encode(record))
    names = ("draft_records", "draft_checkpoints", "draft_most_records_to_replay", "records", "acknowledged_offsets")
    assert [row[name] for name in names] == [6, 2, 4, 6, 10]
    assert row["most_records_to_replay"] == 4


def test_a_start_offset_that_passed_open_records_is_a_checkpoint_that_keeps_the_rest():
    text = "0 snapshot start=0 snapshot=0\n0 update start=0 0-9 available 1\n0 update start=5"
    (records,) = written(text).values()
    assert records[-1] == Checkpoint("g", 2, 5, 10, (StateBatch(5, 9, 0, 1),))


def test_an_incomplete_history_has_no_figures():
    rows, history, deliveries, _ = replayed("0 update start=3 3-4 acknowledged 1")
    assert draft_cost(rows, history, deliveries, deltas_per_checkpoint=500).num_rows == 0
