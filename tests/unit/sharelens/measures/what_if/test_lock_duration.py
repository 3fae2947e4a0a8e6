"""Another lock duration, over small histories."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.measures.inputs import Inputs
from sharelens.measures.settings.over_time import GroupSettings
from sharelens.measures.what_if import lock_duration
from sharelens.measures.what_if.attempts import _with_previous
from state_model.columnar.replay import open_ranges, replay_records
from state_model.share_records import ShareSnapshot, ShareUpdate, StateBatch
from tests.logs.replay_logs import KEYS, table

BROKER = {"group.share.record.lock.duration.ms": "15000", "group.share.delivery.count.limit": "3"}
AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4


class Written(Inputs):
    """Histories of records that are written at given times."""

    def __init__(self, log, broker=BROKER):
        self.settings = GroupSettings(broker=broker)
        rows = table([(KEYS[0], value, False) for _, value in log]).to_pylist()
        for row, (time_ms, _) in zip(rows, log, strict=True):
            row["timestamp_ms"] = row["log_time_ms"] = time_ms
        self._replayed = replay_records(pa.Table.from_pylist(rows, schema=table([]).schema))

    def history(self):
        return self._replayed.history

    def deliveries(self):
        return pa.concat_tables([self._replayed.closed, open_ranges(self._replayed.state)])


def created(epoch=0, batches=()):
    return ShareSnapshot(
        snapshot_epoch=epoch,
        state_epoch=1,
        leader_epoch=0,
        start_offset=0,
        create_timestamp_ms=0,
        write_timestamp_ms=0,
        state_batches=batches,
        delivery_complete_count=0,
    )


def outcome(first, last, state, count):
    batch = StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)
    return ShareUpdate(
        snapshot_epoch=0, leader_epoch=0, start_offset=0, state_batches=(batch,), delivery_complete_count=0
    )


def figures(log, duration_ms, **options):
    rows = lock_duration.rows(Written(log, **options), duration_ms).to_pylist()
    return {row["figure"]: (row["in_history"], row["at_least"], row["at_most"], row["certainty"]) for row in rows}


SHORT_AND_LONG = [
    (0, created()),
    (9_000, outcome(0, 4, ACKNOWLEDGED, 1)),
    (20_000, outcome(5, 9, AVAILABLE, 1)),
    (32_000, outcome(5, 9, AVAILABLE, 2)),
    (60_000, outcome(5, 9, ACKNOWLEDGED, 3)),
]
"""Attempts of at most 9, 20, 12 and 28 seconds: of those that made records available, one may have lasted 15."""


def test_what_became_available_sooner_than_the_lock_lasts_did_not_time_out():
    answer = figures(SHORT_AND_LONG, 15_000)
    assert answer["timed_out"] == (None, 0, 5, "bound")
    assert answer["deliveries"] == (20, 20, 20, "exact")
    assert answer["acknowledged_offsets"] == (10, 10, 10, "exact")
    assert figures(SHORT_AND_LONG[:2], 15_000)["timed_out"] == (0, 0, 0, "exact")


def test_a_longer_lock_may_spare_the_deliveries_after_one_that_may_have_timed_out():
    answer = figures(SHORT_AND_LONG, 60_000)
    assert answer["deliveries"] == (20, 5 + 5 * 1, 20, "bound")
    assert answer["acknowledged_offsets"] == (10, 5, 10, "bound")


def test_a_shorter_lock_changes_what_may_have_been_acknowledged_later():
    answer = figures(SHORT_AND_LONG, 12_000)
    assert answer["acknowledged_offsets"] == (10, 5, 10, "bound")
    assert answer["archived_offsets"] == (0, 0, 5, "bound")
    assert figures(SHORT_AND_LONG, 30_000, broker=BROKER | {"group.share.record.lock.duration.ms": "40000"})[
        "acknowledged_offsets"
    ] == (10, 10, 10, "exact")


def test_without_the_duration_in_force_every_attempt_may_have_timed_out():
    answer = figures(SHORT_AND_LONG, 15_000, broker=None)
    assert answer["acknowledged_offsets"][1:3] == (5, 10)
    assert answer["timed_out"][2] == 15


def test_an_attempt_before_the_log_may_have_lasted_for_ever():
    cut = [(0, created(3, (StateBatch(first_offset=0, last_offset=4, delivery_state=0, delivery_count=1),)))]
    cut.append((1, outcome(0, 4, ACKNOWLEDGED, 2)))
    assert figures(cut, 60_000)["timed_out"][2] == 5
    assert figures(cut, 14_000)["timed_out"][2] == 10


@pytest.mark.parametrize("duration_ms", lock_duration.RANGE)
def test_no_record_has_no_figure_about_locks(duration_ms):
    assert figures([], duration_ms) == {}


RANGES = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 6)), max_size=40)


@given(RANGES)
def test_pieces_of_outcomes_have_the_newest_outcome_before_them(spans):
    import numpy as np

    outcomes = [(low, low + length, 1 + n // 2, 10 * n) for n, (low, length) in enumerate(spans)]
    newest, expected = {}, []
    for row, (first, last, count, ms) in enumerate(outcomes):
        for offset in range(first, last + 1):
            if count > newest.get(offset, (0,))[0]:  # a delivery came between
                expected.append((row, offset, *newest.get(offset, (0, None))))
            newest[offset] = (count, ms)
    columns = np.array(outcomes, np.int64).reshape(-1, 4).T.copy()
    pieces = _with_previous(np.zeros(len(spans), np.int64), *columns).tolist()
    actual_rows = [
        (row, offset, count, ms if count else None)
        for first, last, count, ms, row in pieces
        for offset in range(first, last + 1)
    ]
    assert actual_rows == expected
