"""Replay over Arrow says of every record's state what the reference machine says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_model.batches import coalesce
from state_model.columnar.replay import replay_records
from state_model.machine import PartitionState, apply
from state_model.share_records import SharePartitionKey, ShareSnapshot, ShareUpdate, StateBatch, Tombstone
from state_model.uuids import ZERO_UUID
from tests.logs.replay_logs import TYPE_NAMES, OtherType, record_of, table

KEYS = [SharePartitionKey(group_id="g", topic_id=ZERO_UUID, partition=partition) for partition in range(2)]
STATE_FIELDS = [
    "snapshot_epoch",
    "state_epoch",
    "leader_epoch",
    "start_offset",
    "delivery_complete_count",
    "create_timestamp_ms",
    "write_timestamp_ms",
]
FROM_LOG = {
    "leader_epoch_max_from_log": "leader_epoch_max",
    "state_epoch_max_from_log": "state_epoch_max",
    "update_count_from_log": "update_count",
    "snapshot_log_offset": "snapshot_log_offset",
    "life_log_offset": "life_log_offset",
    "log_offset": "log_offset",
}

EPOCHS = st.integers(-1, 3)
STARTS = st.integers(-1, 15)
BATCHES = st.lists(
    st.builds(
        lambda first, size, state, count: StateBatch(
            first_offset=first, last_offset=first + size, delivery_state=state, delivery_count=count
        ),
        st.integers(0, 20) | st.sampled_from([1 << 62, (1 << 63) - 30]),
        st.integers(0, 6),
        st.integers(0, 5) | st.just(-3),
        st.integers(0, 3) | st.just(32767),
    ),
    max_size=4,
).map(tuple)
SNAPSHOTS = st.builds(
    ShareSnapshot,
    snapshot_epoch=EPOCHS,
    state_epoch=EPOCHS,
    leader_epoch=EPOCHS,
    start_offset=STARTS,
    create_timestamp_ms=st.integers(0, 2),
    write_timestamp_ms=st.integers(0, 2),
    state_batches=BATCHES,
    delivery_complete_count=EPOCHS,
)
UPDATES = st.builds(
    ShareUpdate,
    snapshot_epoch=EPOCHS,
    leader_epoch=EPOCHS,
    start_offset=STARTS,
    state_batches=BATCHES,
    delivery_complete_count=EPOCHS,
)
VALUES = st.one_of(UPDATES, UPDATES, SNAPSHOTS, st.just(Tombstone()), st.just(OtherType()))
LOGS = st.lists(st.tuples(st.sampled_from(KEYS), VALUES), min_size=1, max_size=14)


def replayed(log, update_limit):
    """The Arrow replay, and the reference's state after each record."""
    states = [PartitionState(update_limit=update_limit)]
    for offset, (key, value) in enumerate(log):
        states.append(apply(states[-1], offset, 10 * offset, record_of(key, value)))
    records = table([(key, value, False) for key, value in log])
    return replay_records(records, update_limit=update_limit), states


def assert_scalars(actual, reference):
    assert {name: actual[name] for name in STATE_FIELDS} == {name: getattr(reference, name) for name in STATE_FIELDS}
    assert {name: actual[name] for name in FROM_LOG} == {
        name: getattr(reference, ours) for name, ours in FROM_LOG.items()
    }


def assert_mark(actual, reference):
    if reference.is_provisional:
        mark = ("provisional", "orphan")
    elif reference.unknown_state_log_offset is not None:
        mark = ("incomplete", "unknown_state")
    else:
        mark = ("complete", None)
    assert (actual["completeness"], actual["completeness_reason"]) == mark


@given(LOGS, st.integers(0, 4))
def test_the_state_at_the_end_is_the_references(log, update_limit):
    ours, states = replayed(log, update_limit)
    references = states[-1].share_partitions
    actual = {fields["partition"]: fields for fields in ours.state.to_pylist()}
    assert actual.keys() == {key.partition for key in references}
    for key, state in references.items():
        assert_scalars(actual[key.partition], state)
        ranges = tuple(
            StateBatch(
                first_offset=fields["first_offset"],
                last_offset=fields["last_offset"],
                delivery_state=fields["delivery_state"],
                delivery_count=fields["delivery_count"],
            )
            for fields in actual[key.partition]["state_batches"]
        )
        assert ranges == coalesce(state.state_batches)
        assert_mark(actual[key.partition], state)


@pytest.mark.slow
@given(LOGS, st.integers(0, 4))
def test_the_history_is_the_reference_after_each_record(log, update_limit):
    ours, states = replayed(log, update_limit)
    history = ours.history.to_pylist()
    references = [state.share_partitions.get(key) for (key, _), state in zip(log, states[1:], strict=True)]
    described = [
        (offset, key.partition, TYPE_NAMES[type(value)])
        for offset, ((key, value), reference) in enumerate(zip(log, references, strict=True))
        if reference is not None or not isinstance(value, OtherType)
    ]
    assert [(row["log_offset"], row["partition"], row["record_type"]) for row in history] == described
    for actual in history:
        reference = references[actual["log_offset"]]
        if reference is not None:
            assert_scalars(actual, reference)
            assert_mark(actual, reference)
            assert actual["state_batch_count"] == len(coalesce(reference.state_batches))
