"""Moments: whoever replays the rows has the state that the histories have, at each record."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.parameters.filters import parse_key_filter
from sharelens.questions.traces.moments import moments
from sharelens.source.request import Source
from sharelens.tables.opening import open_evidence
from sharelens.tables.port import DELIVERIES, Tables
from sharelens.tables.reading import read
from sharelens.tables.where import WHOLE_SPAN, Keys, Span, Where
from state_model.errors import UsageError
from tests.datasets import dataset
from tests.depths import examples
from tests.logs.state_logs import START_MS, snapshot, tombstone, update, write_log_directory
from tests.once import made_once

State = dict[int, tuple[int, int]]
"""By record offset its delivery state and count."""
Rows = list[dict]
ALL = 100_000


def replayed(rows: list[dict]) -> list[tuple[int, State]]:
    """The log offset of each record, with the state after it."""
    state: State = {}
    states = []
    for row in rows:
        if row["first_offset"] is not None:
            for offset in range(row["first_offset"], row["last_offset"] + 1):
                state.pop(offset, None)
                if row["delivery_state"] is not None:
                    state[offset] = row["delivery_state"], row["delivery_count"]
        if row["change"] == "record":
            states.append((row["log_offset"], {}))
        if states and states[-1][0] == row["log_offset"]:
            states[-1] = row["log_offset"], dict(state)
    return states


def state_after(deliveries: list[dict], log_offset: int) -> State:
    """The state after a record, by the delivery history."""
    return {
        offset: (row["delivery_state"], row["delivery_count"])
        for row in deliveries
        if row["valid_from_log_offset"] <= log_offset
        and (row["valid_to_log_offset"] is None or row["valid_to_log_offset"] > log_offset)
        for offset in range(row["first_offset"], row["last_offset"] + 1)
    }


def ask(evidence: Tables, group: str, topic: str, partition: int, span: Span = WHOLE_SPAN, **options: int) -> Rows:
    key_filter = parse_key_filter([group], [topic], [partition])
    return moments(evidence, key_filter, span, **{"record_limit": ALL, **options}).table.to_pylist()


def deliveries_of(evidence: Tables, group: str, topic: str, partition: int) -> list[dict]:
    keys = Keys(groups=frozenset([group]), topics={evidence.topic_ids(topic)[-1]: frozenset([partition])})
    return read(evidence, DELIVERIES, where=Where(keys=keys)).to_pylist()


batches = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 3), st.sampled_from([0, 2, 3, 4]), st.integers(1, 3)), max_size=3
).map(lambda drawn: [(low, low + length, state, count) for low, length, state, count in drawn])
changes = st.one_of(
    st.tuples(st.just("update"), st.integers(-1, 9), batches),
    st.tuples(st.just("snapshot"), st.integers(0, 9), batches),
    st.tuples(st.just("tombstone"), st.just(0), st.just([])),
)


def write_random_log(folder: Path, drawn: list) -> None:
    records = [snapshot(at_ms=START_MS)]
    epoch = 0
    for number, (kind, start, batch_list) in enumerate(drawn, 1):
        at_ms = START_MS + 1000 * number
        if kind == "tombstone":
            records.append(tombstone(at_ms=at_ms))
        elif kind == "snapshot":
            epoch += 1
            records.append(snapshot(start=start, epoch=epoch, batches=batch_list, at_ms=at_ms))
        else:
            records.append(update(start=start, epoch=epoch, batches=batch_list, at_ms=at_ms))
    write_log_directory(folder, records)


@examples("table")
@given(drawn=st.lists(changes, min_size=1, max_size=8), begin=st.integers(0, 8), limit=st.integers(1, 9))
def test_replayed_rows_are_the_states_of_the_histories(tmp_path_factory, drawn, begin, limit) -> None:
    folder = tmp_path_factory.mktemp("log")
    write_random_log(folder, drawn)
    with open_evidence(Source(log_dirs=(str(folder),))) as evidence:
        deliveries = deliveries_of(evidence, "g", "orders", 0)
        for span in (Span(), Span(from_ms=START_MS + 1000 * begin)):
            states = replayed(ask(evidence, "g", "orders", 0, span, record_limit=limit))
            assert [state for _, state in states] == [state_after(deliveries, log_offset) for log_offset, _ in states]
            assert len(states) <= limit


@pytest.mark.parametrize(("name", "group", "topic"), [("dlq", "gd-broken", "tasks"), ("timeouts", "g-poison", "jobs")])
def test_recorded_logs_replay_to_their_states(name: str, group: str, topic: str) -> None:
    with open_evidence(Source(log_dirs=(str(dataset(name) / "logs"),))) as evidence:
        deliveries = deliveries_of(evidence, group, topic, 0)
        states = replayed(ask(evidence, group, topic, 0))
        assert len(states) > 20
        assert all(state == state_after(deliveries, log_offset) for log_offset, state in states)


@pytest.fixture(scope="module")
def small_log() -> Path:
    def write(folder: Path) -> None:
        records = [snapshot(at_ms=START_MS)]
        records += [update(batches=[(at, at, 2, 1)], at_ms=START_MS + 1000 * at) for at in range(1, 10)]
        write_log_directory(folder, records)

    return made_once("moments-log", write)


def test_without_a_beginning_the_newest_records_come_and_the_state_before_them(small_log: Path) -> None:
    with open_evidence(Source(log_dirs=(str(small_log),))) as evidence:
        rows = ask(evidence, "g", "orders", 0, record_limit=2)
    assert [row["log_offset"] for row in rows if row["change"] == "record"] == [8, 9]
    assert {row["log_offset"] for row in rows if row["change"] == "first_state"} == {7}
    assert replayed(rows)[-1][1].keys() == set(range(1, 10))


def test_record_offsets_bound_the_ranges_not_the_records(small_log: Path) -> None:
    with open_evidence(Source(log_dirs=(str(small_log),))) as evidence:
        rows = ask(evidence, "g", "orders", 0, from_offset=4, to_offset=6)
    assert sum(row["change"] == "record" for row in rows) == 10
    assert replayed(rows)[-1][1].keys() == {4, 5}


def test_a_time_without_records_has_no_row(small_log: Path) -> None:
    with open_evidence(Source(log_dirs=(str(small_log),))) as evidence:
        answer = moments(evidence, parse_key_filter(["g"], ["orders"], [0]), Span(to_ms=1), record_limit=5)
    assert answer.table.num_rows == 0
    assert (answer.summary or "").startswith("records of the state log: 0, 0 before and 10 after them")


def test_unknown_names_are_named(small_log: Path) -> None:
    with (
        open_evidence(Source(log_dirs=(str(small_log),))) as evidence,
        pytest.raises(UsageError, match="no share group x"),
    ):
        ask(evidence, "x", "orders", 0)
