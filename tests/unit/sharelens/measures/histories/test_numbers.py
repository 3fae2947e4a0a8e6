"""Histories in order, whatever the order of their rows."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.measures.histories.numbers import RANGE_COLUMNS, UNKNOWN, Histories
from sharelens.measures.life import life as life_events
from sharelens.measures.redelivered import redelivered
from sharelens.measures.stalls.incomplete import first_incomplete
from sharelens.measures.topics.headers import NO_RECORD
from state_model.columnar.keys import FULL_PLACE_KEY
from state_model.columnar.replay import open_ranges, replay_records
from tests.logs.replay_logs import LOGS, table

pytestmark = pytest.mark.slow


def shuffled(rows, random):
    order = list(range(rows.num_rows))
    random.shuffle(order)
    return rows.take(pa.array(order, pa.int64()))


def places_of(histories, numbers):
    return histories.places.take(pa.array(numbers)).to_pylist()


@given(LOGS, st.randoms(use_true_random=False))
def test_records_come_by_place_and_log_offset(log, random):
    done = replay_records(table(log))
    histories = Histories.of(shuffled(done.history, random), done.closed)
    rows = histories.history
    offsets = rows.column("log_offset").to_numpy()
    assert rows.select(FULL_PLACE_KEY).to_pylist() == places_of(histories, histories.place)
    assert np.lexsort((offsets, histories.place)).tolist() == list(range(len(offsets)))
    assert histories.rows_at(histories.place, offsets).to_pylist() == list(range(len(offsets)))
    assert histories.rows_at(histories.place, offsets + len(offsets)).null_count == len(offsets)


@given(LOGS, st.randoms(use_true_random=False))
def test_ranges_come_by_life_record_and_first_offset(log, random):
    done = replay_records(table(log))
    deliveries = shuffled(pa.concat_tables([done.closed, open_ranges(done.state)]), random)
    histories = Histories.of(done.history, deliveries)
    rows = deliveries.take(pa.array(histories.rows)).to_pylist()
    numbers = [[UNKNOWN if row[name] is None else row[name] for name in RANGE_COLUMNS] for row in rows]
    assert numbers == histories.ranges.tolist()
    life = histories.life_number
    assert [row["life_log_offset"] for row in rows] == histories.life_key[life].tolist()
    places = places_of(histories, histories.life_place[life])
    assert [{name: row[name] for name in FULL_PLACE_KEY} for row in rows] == places
    order = np.lexsort((*histories.ranges[:, [0, 4]].T, histories.life_key[life], histories.life_place[life]))
    assert order.tolist() == list(range(len(rows)))


@given(LOGS, st.sets(st.integers(0, 3)), st.randoms(use_true_random=False))
def test_a_place_without_rows_changes_no_row_of_a_measure(log, left_out, random):
    done = replay_records(table(log))
    deliveries = pa.concat_tables([done.closed, open_ranges(done.state)])
    whole_histories = Histories.of(done.history, deliveries)
    records, ranges = (
        ~np.isin(place, list(left_out)) for place in (whole_histories.place, whole_histories.place_of_range)
    )
    rows = [whole_histories.history.filter(pa.array(records)), deliveries.take(pa.array(whole_histories.rows[ranges]))]
    numbers = [whole_histories.place[records], whole_histories.place_of_range[ranges]]
    orders = [random.sample(range(len(part)), len(part)) for part in numbers]
    rows = [part.take(pa.array(order, pa.int64())) for part, order in zip(rows, orders, strict=True)]
    numbers = [part[order] for part, order in zip(numbers, orders, strict=True)]
    placed_histories, alone = Histories.in_places(*rows, numbers, whole_histories.places), Histories.of(*rows)
    assert life_events(placed_histories).equals(life_events(alone))
    assert redelivered(placed_histories).equals(redelivered(alone))
    no_records = NO_RECORD.empty_table()
    expected = first_incomplete(alone, no_records)
    assert first_incomplete(placed_histories, no_records).rows.tolist() == expected.rows.tolist()
    assert placed_histories.newest_rows.tolist() == alone.newest_rows.tolist()
