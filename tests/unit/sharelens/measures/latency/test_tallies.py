"""Tallies of parts add up to what is told of everything at once."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.measures.histories.numbers import Histories
from sharelens.measures.histories.settled import Settled, settled
from sharelens.measures.latency import tallies
from sharelens.measures.latency.ages import Ages
from sharelens.measures.latency.measure import attempts, attempts_rows, latency, latency_rows
from sharelens.measures.latency.tallies import By, added, of_attempts, of_latency
from state_model.columnar.replay import open_ranges, replay_records
from state_model.columnar.schemas import DELIVERY_HISTORY, SHARE_PARTITION_HISTORY
from state_model.uuids import ZERO_UUID
from tests.depths import in_soak
from tests.logs.replay_logs import HOSTILE_LOGS, LATER_LOGS, table
from tests.logs.topic_headers import headers

BYS = (By(partition=False, hour=False), By(partition=False, hour=True))
TOPIC = "0-3 at 3\n4-4 at 9 producer 1 COMMIT\n5-9 at 45\n10-99 at 70"


def settled_and_aged(history: pa.Table, deliveries: pa.Table) -> tuple[Settled, Ages]:
    """What these rows tell was settled, and its ages."""
    offsets = settled(Histories.of(history, deliveries))
    ages = Ages(offsets)
    for partition in range(3):
        ages.take(headers(TOPIC, topic_id=ZERO_UUID, partition=partition))
    return offsets, ages


@pytest.fixture(params=[1 << 22, 0])
def pieces_kept_limit(request: pytest.FixtureRequest):
    """Sums that are made at the end, and after every tally."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tallies, "PIECES_KEPT", request.param)
        yield


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.usefixtures("pieces_kept_limit")
@pytest.mark.parametrize("by", [BYS[1], *in_soak(BYS[0])])
@given(log=LATER_LOGS | HOSTILE_LOGS, part_of=st.lists(st.integers(0, 2), min_size=3, max_size=3))
def test_the_rows_of_a_sum_are_those_of_everything_at_once(by, log, part_of):
    done = replay_records(table(log))
    history, deliveries = done.history, pa.concat_tables([done.closed, open_ranges(done.state)])
    all_settled, ages = settled_and_aged(history, deliveries)
    waited, tried = [], []
    for part in range(3):
        partitions = pa.array([partition for partition in range(3) if part_of[partition] == part], pa.int32())
        part_history, its_deliveries = (
            rows.filter(pc.field("partition").isin(partitions)) for rows in (history, deliveries)
        )
        its_settled, its_ages = settled_and_aged(part_history, its_deliveries)
        waited.append(of_latency(its_settled, its_ages, by))
        tried.append(of_attempts(its_settled, its_ages.gaps(), by))
    assert latency_rows(added(waited), by) == latency(all_settled, ages, by)
    assert attempts_rows(added(tried), by) == attempts(all_settled, ages.gaps(), by)


@pytest.mark.parametrize("by", [By(), *BYS])
def test_nothing_adds_up_to_nothing(by):
    history = SHARE_PARTITION_HISTORY.empty_table()
    offsets, ages = settled_and_aged(history, DELIVERY_HISTORY.empty_table())
    no_latency = of_latency(offsets, ages, by)
    assert latency_rows(added([no_latency, no_latency]), by).num_rows == 0
