"""As of a prefix of the log: the state is the replay of that prefix."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.evidence.as_of import (
    DELIVERY_ORDER,
    WHOLE_LOG,
    LogPrefix,
    delivery_history_as_of,
    mark_below_log_start,
    mark_losses,
    states_as_of,
)
from sharelens.evidence.conditions import filter_rows, with_value
from sharelens.evidence.losses import losses_up_to
from state_model.columnar import schemas
from state_model.columnar.keys import LOG_ORDER, SHARE_PARTITION_ORDER
from state_model.columnar.replay import Replayed, open_ranges, replay_records
from state_model.columnar.values import Loss
from tests.logs.replay_logs import HOSTILE_LOGS, LATER_LOGS, parsed, table

ROWS = pa.table(
    {
        "state_partition": pa.array([0, 0, 1, 1, 2], pa.int32()),
        "log_offset": pa.array([4, 5, 4, 5, 9], pa.int64()),
        "log_time_ms": pa.array([10, 20, 10, 20, 30], pa.int64()),
    }
)
PREFIXES = [
    LogPrefix(),
    LogPrefix(as_of_ms=15),
    LogPrefix(at_offsets={0: 4}),
    LogPrefix(at_offsets={0: 4, 1: -1, 7: 2}),
]
DRAWN_PREFIXES = st.one_of(
    st.just(WHOLE_LOG),
    st.integers(-1, 13).map(lambda number: LogPrefix(as_of_ms=10 * number + 3)),
    st.dictionaries(st.integers(0, 2), st.integers(-1, 12), max_size=2).map(lambda ends: LogPrefix(at_offsets=ends)),
)


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_prefix_keeps_of_each_state_partition_what_it_keeps_within_it(prefix: LogPrefix) -> None:
    parts = [with_value(ROWS, "state_partition", number) for number in range(3)]
    within = pa.concat_tables(
        filter_rows(part, prefix.of_state_partition(number).condition()) for number, part in enumerate(parts)
    )
    assert within.equals(filter_rows(ROWS, prefix.condition()))


def test_a_state_partition_that_a_prefix_does_not_name_is_whole() -> None:
    assert LogPrefix(at_offsets={0: 4}).of_state_partition(1).is_whole
    assert not LogPrefix(at_offsets={0: 4}).of_state_partition(0).is_whole


class Log:
    """A log of two state partitions, replayed; records whose numbers are in `missing` are lost."""

    def __init__(self, logs, missing=frozenset()):
        self.records, self.losses = [], []
        for number, log in enumerate(logs):
            rows = table(log)
            index = rows.schema.get_field_index("state_partition")
            field = rows.schema.field(index)
            rows = rows.set_column(index, field, pa.repeat(pa.scalar(number, pa.int32()), rows.num_rows))
            is_kept = [offset not in missing for offset in range(rows.num_rows)]
            self.records.append(rows.filter(pa.array(is_kept, pa.bool_())))
            self.losses.append(
                [Loss(first_offset=n, last_offset=n, reason="gap") for n in sorted(missing) if n < rows.num_rows]
            )

    def replay(self, prefix=WHOLE_LOG) -> list[Replayed]:
        """The replay of a prefix of each state partition."""
        done = []
        for number, rows in enumerate(self.records):
            losses = losses_up_to(self.losses[number], self.end(number, prefix))
            done.append(replay_records(filter_rows(rows, prefix.condition()), losses=losses))
        return done

    def end(self, number, prefix):
        """The last offset of the prefix in a state partition; None for all of it."""
        if prefix.as_of_ms is not None:
            offsets = filter_rows(self.records[number], prefix.condition()).column("log_offset").to_pylist()
            return max(offsets, default=-1)
        return prefix.at_offsets.get(number)


def deliveries(replays):
    return pa.concat_tables([table for replayed in replays for table in (replayed.closed, open_ranges(replayed.state))])


def by_key(states):
    return states.sort_by([*LOG_ORDER, *SHARE_PARTITION_ORDER]).combine_chunks()


def states_of(log, prefix):
    """The states as of a prefix from the histories of the whole log."""
    log_replays = log.replay()
    history = pa.concat_tables([replayed.history for replayed in log_replays])
    states = states_as_of(
        filter_rows(history, prefix.condition()), filter_rows(deliveries(log_replays), prefix.open_condition())
    )
    ends = [log.end(number, prefix) for number in range(len(log.records))]
    return mark_losses(states, {n: losses_up_to(log.losses[n], end) for n, end in enumerate(ends)})


@pytest.mark.slow
@given(st.tuples(LATER_LOGS, LATER_LOGS), DRAWN_PREFIXES, st.sets(st.integers(0, 11), max_size=3))
def test_the_state_as_of_a_prefix_is_the_replay_of_that_prefix(logs, prefix, missing):
    log = Log(logs, missing)
    expected = pa.concat_tables([replayed.state for replayed in log.replay(prefix)])
    assert by_key(states_of(log, prefix)).to_pylist() == by_key(expected).to_pylist()


@pytest.mark.slow
@given(st.tuples(HOSTILE_LOGS), DRAWN_PREFIXES)
def test_so_it_is_of_any_content_that_fits_the_bytes(logs, prefix):
    log = Log(logs)
    expected = pa.concat_tables([replayed.state for replayed in log.replay(prefix)])
    assert by_key(states_of(log, prefix)).to_pylist() == by_key(expected).to_pylist()


@pytest.mark.slow
@given(st.tuples(LATER_LOGS, LATER_LOGS), DRAWN_PREFIXES)
def test_the_delivery_history_as_of_a_prefix_is_that_of_its_replay(logs, prefix):
    log = Log(logs)
    expected = deliveries(log.replay(prefix)).sort_by(DELIVERY_ORDER)
    rows = delivery_history_as_of(deliveries(log.replay()), prefix).sort_by(DELIVERY_ORDER)
    assert rows.to_pylist() == expected.to_pylist()


def test_no_rows_give_no_states():
    states = states_as_of(schemas.SHARE_PARTITION_HISTORY.empty_table(), schemas.DELIVERY_HISTORY.empty_table())
    assert states.equals(schemas.SHARE_PARTITION_STATE.empty_table())
    assert mark_losses(states, {0: [Loss(first_offset=0, last_offset=1, reason="gap")]}).equals(states)


def test_a_loss_of_one_share_partition_marks_that_one_alone():
    log = Log([parsed("0 snapshot\n1 snapshot")])
    key = {"group_id": "g", "topic_id": log.records[0].column("topic_id")[0].as_py(), "partition": 1}
    loss = Loss(first_offset=7, last_offset=7, reason="quarantined", **key)
    marked = mark_losses(by_key(log.replay()[0].state), {0: [loss]})
    assert marked.select(["partition", "completeness", "completeness_reason"]).to_pylist() == [
        {"partition": 0, "completeness": "complete", "completeness_reason": None},
        {"partition": 1, "completeness": "incomplete", "completeness_reason": "quarantined"},
    ]
    assert mark_losses(marked, {0: [Loss(first_offset=9, last_offset=9, reason="gap")]}).column(
        "completeness_reason"
    ).to_pylist() == ["gap", "quarantined"]


def test_a_state_lies_below_the_log_start_when_its_snapshot_does():
    state = Log([parsed("0 snapshot\n1 snapshot")]).replay()[0].state
    assert mark_below_log_start(state, {0: 1}).column("below_log_start").to_pylist() == [True, False]
    assert mark_below_log_start(state, {}).column("below_log_start").to_pylist() == [False, False]
