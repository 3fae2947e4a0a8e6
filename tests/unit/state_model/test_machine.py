import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_model import machine
from state_model.batches import coalesce
from state_model.codec.primitives import UnknownTag
from state_model.machine import PartitionState, apply, begins_new_life
from state_model.rule_sets import KAFKA_4_3
from state_model.share_records import (
    RecordType,
    SharePartitionKey,
    ShareRecord,
    ShareSnapshot,
    ShareUpdate,
    StateBatch,
    Tombstone,
    UnknownTypeRecord,
    UnknownVersionValue,
    encode_key,
)

A, B = (SharePartitionKey(group_id=group, topic_id="A" * 22, partition=0) for group in "ab")


def batch(first, last, delivery_state=2, delivery_count=1, **fields):
    return StateBatch(
        first_offset=first, last_offset=last, delivery_state=delivery_state, delivery_count=delivery_count, **fields
    )


def snapshot(**fields):
    defaults = {
        "snapshot_epoch": 0,
        "state_epoch": 1,
        "leader_epoch": 0,
        "start_offset": 0,
        "create_timestamp_ms": 10,
        "write_timestamp_ms": 10,
        "state_batches": (),
        "delivery_complete_count": 0,
    }
    return ShareSnapshot(**defaults | fields)


def update(**fields):
    defaults = {
        "snapshot_epoch": 0,
        "leader_epoch": 0,
        "start_offset": -1,
        "state_batches": (),
        "delivery_complete_count": 0,
    }
    return ShareUpdate(**defaults | fields)


def replayed(*values, key=A, **settings):
    records = [
        (offset, 1000 + offset, value if isinstance(value, UnknownTypeRecord) else ShareRecord(key=key, value=value))
        for offset, value in enumerate(values)
    ]
    return machine.replay(PartitionState(**settings), records)


def of(state, key=A):
    return state.share_partitions[key]


def test_a_snapshot_is_the_state():
    value = snapshot(snapshot_epoch=3, state_epoch=2, leader_epoch=1, start_offset=5, state_batches=(batch(5, 9),))
    state = of(replayed(value))
    assert state.snapshot_epoch == 3
    assert (state.state_epoch, state.state_epoch_max) == (2, 2)
    assert (state.leader_epoch, state.leader_epoch_max) == (1, 1)
    assert (state.start_offset, state.delivery_complete_count) == (5, 0)
    assert (state.create_timestamp_ms, state.write_timestamp_ms, state.timestamp_ms) == (10, 10, 1000)
    assert state.state_batches == (batch(5, 9),)
    assert (state.snapshot_log_offset, state.life_log_offset, state.log_offset) == (0, 0, 0)
    assert not state.is_provisional


def test_batches_of_a_snapshot_are_taken_as_they_are_even_if_they_overlap():
    given_batches = (batch(7, 9), batch(3, 8, 0, 1))
    assert of(replayed(snapshot(state_batches=given_batches))).state_batches == given_batches


def test_tagged_fields_of_a_batch_are_not_part_of_the_state():
    tagged = batch(1, 2, unknown_tags=(UnknownTag(tag=9, data=b"x"),))
    assert of(replayed(snapshot(state_batches=(tagged,)))).state_batches == (batch(1, 2),)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (update(start_offset=7), {"start_offset": 7}),
        (update(start_offset=3), {"start_offset": 3}),  # 4.3 writers may move back
        (update(start_offset=-1), {"start_offset": 5}),
        (update(leader_epoch=4), {"leader_epoch": 4, "leader_epoch_max": 4}),
        (update(leader_epoch=-1), {"leader_epoch": 2, "leader_epoch_max": 2}),
        (update(leader_epoch=1), {"leader_epoch": 1, "leader_epoch_max": 2}),
        (update(delivery_complete_count=-1), {"delivery_complete_count": -1}),
        (update(snapshot_epoch=99), {"snapshot_epoch": 3, "state_epoch": 6}),
    ],
)
def test_an_update_changes_what_it_carries(change, expected):
    start = snapshot(snapshot_epoch=3, state_epoch=6, leader_epoch=2, start_offset=5, delivery_complete_count=8)
    state = of(replayed(start, change))
    assert {name: getattr(state, name) for name in expected} == expected
    assert state.update_count == 1
    assert (state.snapshot_log_offset, state.log_offset) == (0, 1)


def test_batches_of_an_update_are_combined_above_the_new_start_offset():
    start = snapshot(state_batches=(batch(0, 9, 0, 1),))
    state = of(replayed(start, update(start_offset=4, state_batches=(batch(6, 7, 2, 1),))))
    assert state.state_batches == (batch(4, 5, 0, 1), batch(6, 7, 2, 1), batch(8, 9, 0, 1))


def test_what_was_dropped_below_the_start_offset_does_not_come_back():
    start = snapshot(state_batches=(batch(0, 9),))
    state = of(replayed(start, update(start_offset=5), update(start_offset=0)))
    assert (state.start_offset, state.state_batches) == (0, (batch(5, 9),))


def test_an_update_without_a_snapshot_makes_a_provisional_state():
    value = update(snapshot_epoch=7, leader_epoch=3, start_offset=20, state_batches=(batch(1, 9), batch(5, 30)))
    state = of(replayed(value))
    assert state.is_provisional
    assert (state.snapshot_epoch, state.state_epoch, state.leader_epoch) == (7, 0, 3)
    assert (state.create_timestamp_ms, state.write_timestamp_ms) == (0, 0)
    assert state.state_batches == value.state_batches
    assert (state.leader_epoch_max, state.state_epoch_max, state.update_count) == (3, None, 1)
    assert not of(replayed(value, snapshot(snapshot_epoch=8))).is_provisional


def test_a_tombstone_ends_everything_the_maxima_too():
    state = replayed(snapshot(leader_epoch=9, state_epoch=9), update(), Tombstone(), snapshot())
    assert of(replayed(snapshot(), Tombstone(), snapshot())).life_log_offset == 2
    assert (of(state).leader_epoch_max, of(state).state_epoch_max, of(state).update_count) == (0, 1, 0)
    assert len(replayed(snapshot(), Tombstone()).share_partitions) == 0
    assert len(replayed(Tombstone()).share_partitions) == 0


def test_initialize_over_a_live_key_keeps_the_maxima():
    state = of(replayed(snapshot(leader_epoch=5, state_epoch=4), snapshot(snapshot_epoch=1, state_epoch=6)))
    assert (state.leader_epoch, state.leader_epoch_max) == (0, 5)
    assert (state.state_epoch, state.state_epoch_max) == (6, 6)


@pytest.mark.parametrize(
    ("limit", "updates", "count_after_snapshot"), [(3, 2, 2), (3, 3, 0), (3, 4, 0), (0, 1, 0), (500, 3, 3)]
)
def test_a_snapshot_resets_the_counter_only_from_the_limit_on(limit, updates, count_after_snapshot):
    values = [snapshot(), *[update()] * updates]
    assert of(replayed(*values, update_limit=limit)).update_count == updates
    assert of(replayed(*values, snapshot(snapshot_epoch=1), update_limit=limit)).update_count == count_after_snapshot


@pytest.mark.parametrize(
    ("later", "new_life"),
    [
        (snapshot(snapshot_epoch=0), True),
        (snapshot(snapshot_epoch=4, state_epoch=2), True),
        (snapshot(snapshot_epoch=4, leader_epoch=1), True),
        (snapshot(snapshot_epoch=4, leader_epoch=2, start_offset=-1), True),
        (snapshot(snapshot_epoch=4, leader_epoch=2, start_offset=9), False),
        (snapshot(snapshot_epoch=4, leader_epoch=2, start_offset=20, write_timestamp_ms=11), False),
    ],
)
def test_a_reset_is_told_from_a_write(later, new_life):
    before = snapshot(snapshot_epoch=3, leader_epoch=2, start_offset=10)
    assert begins_new_life(of(replayed(before)), later) is new_life
    assert of(replayed(before, later)).life_log_offset == int(new_life)


def test_the_shape_of_an_initialize_with_a_smaller_start_offset_is_a_reset():
    before = snapshot(snapshot_epoch=3, start_offset=10)
    assert begins_new_life(of(replayed(before)), snapshot(snapshot_epoch=4, start_offset=9))
    assert not begins_new_life(of(replayed(before)), snapshot(snapshot_epoch=4, start_offset=11))
    assert not begins_new_life(of(replayed(update(start_offset=10))), snapshot(snapshot_epoch=4, start_offset=9))


@pytest.mark.parametrize("key", [b"\0\7" + encode_key(A, RecordType.SHARE_UPDATE)[2:], b"\0\7"])
def test_a_record_of_unknown_type_changes_no_state_and_is_noted_until_the_next_snapshot(key):
    unknown = UnknownTypeRecord(record_type=7, key=key, value=None)
    before, after = replayed(snapshot()), replayed(snapshot(), unknown)
    assert (after.log_offset, after.skipped_types) == (1, 1)
    marked = of(after)
    assert marked.unknown_state_log_offset == 1
    position = {"log_offset": 0, "timestamp_ms": 1000, "unknown_state_log_offset": None}
    assert marked._replace(**position) == of(before)
    assert of(replayed(snapshot(), unknown, update())).unknown_state_log_offset == 1
    assert of(replayed(snapshot(), unknown, snapshot(snapshot_epoch=1))).unknown_state_log_offset is None
    assert len(replayed(unknown).share_partitions) == 0


def test_an_unknown_value_version_is_noted_until_the_next_snapshot():
    unknown = UnknownVersionValue(record_type=RecordType.SHARE_UPDATE, version=1, data=b"")
    assert of(replayed(snapshot(), unknown)).skipped_log_offset == 1
    assert of(replayed(snapshot(), unknown, update())).skipped_log_offset == 1
    assert of(replayed(snapshot(), unknown, snapshot(snapshot_epoch=1))).skipped_log_offset is None
    assert len(replayed(unknown).share_partitions) == 0


# Records of share partitions a and b (s snapshot, u update, t tombstone), the prune point after all of them.
PRUNE_POINTS = {
    "": None,
    "as": None,
    "as as": 1,
    "as bs as": 1,
    "as bs as bs": 2,
    "as bs au bu": None,
    "au bs": 1,
    "as bs at": 1,
    "as bs bs at": 2,
    "as at": 1,
    "as at au": 1,
    "as at bu bs": 3,
    "at": None,
}


@pytest.mark.parametrize("log", PRUNE_POINTS)
def test_the_prune_point_is_the_oldest_snapshot_that_is_still_needed(log):
    kinds = {"s": snapshot(), "u": update(), "t": Tombstone()}
    state = PartitionState()
    for offset, (group, kind) in enumerate(log.split()):
        state = apply(state, offset, 0, ShareRecord(key=A if group == "a" else B, value=kinds[kind]))
    assert state.redundant_offset == PRUNE_POINTS[log]


BATCHES = st.lists(
    st.builds(
        lambda first, size, state, count: batch(first, first + size, state, count),
        st.integers(0, 20),
        st.integers(0, 6),
        st.sampled_from([0, 2, 4]),
        st.integers(1, 3),
    ),
    max_size=3,
).map(tuple)
EPOCHS = st.integers(-1, 3)
VALUES = st.one_of(
    st.builds(
        snapshot,
        snapshot_epoch=EPOCHS,
        state_epoch=EPOCHS,
        leader_epoch=EPOCHS,
        start_offset=st.integers(-1, 15),
        state_batches=BATCHES,
    ),
    st.builds(
        update,
        leader_epoch=EPOCHS,
        start_offset=st.integers(-1, 15),
        delivery_complete_count=EPOCHS,
        state_batches=BATCHES,
    ),
    st.just(Tombstone()),
)
LOGS = st.lists(st.tuples(st.sampled_from([A, B]), VALUES), max_size=12)


def states(log, **settings):
    reached_states = [PartitionState(**settings)]
    for offset, (key, value) in enumerate(log):
        reached_states.append(apply(reached_states[-1], offset, offset, ShareRecord(key=key, value=value)))
    return reached_states


@given(LOGS)
def test_a_state_is_never_changed_by_what_comes_after_it(log):
    reached_states = states(log)
    for length in range(len(log) + 1):
        assert reached_states[length] == states(log[:length])[-1]


@given(LOGS)
def test_share_partitions_do_not_touch_each_other(log):
    share_partitions = states(log)[-1].share_partitions
    for key in (A, B):
        alone = states([(k, value) for k, value in log if k == key])[-1].share_partitions.get(key)
        together = share_partitions.get(key)
        assert (alone is None) == (together is None)
        if alone is not None:
            places = {"log_offset": 0, "timestamp_ms": 0, "snapshot_log_offset": 0, "life_log_offset": 0}
            assert alone._replace(**places) == together._replace(**places)


@given(LOGS)
def test_the_rules_of_combining_change_lists_and_nothing_else(log):
    newer, older = states(log)[-1].share_partitions, states(log, rules=KAFKA_4_3)[-1].share_partitions
    assert newer.keys() == older.keys()
    for key, state in newer.items():
        assert coalesce(state.state_batches) == coalesce(older[key].state_batches)
        assert state._replace(state_batches=()) == older[key]._replace(state_batches=())
