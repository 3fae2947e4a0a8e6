import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.broker.coordinators.share_coordinator import ShareCoordinator, ShareCoordinatorSettings
from sharelens.broker.errors import RecordTooLargeError
from state_model.answers import ErrorCode
from state_model.coordinator import WriteRequest
from state_model.java import partition_for
from state_model.rule_sets import KAFKA_4_3, KAFKA_4_4
from state_model.share_records import (
    SharePartitionKey,
    ShareSnapshot,
    ShareUpdate,
    StateBatch,
    Tombstone,
    decode_record,
)
from state_model.topics import STATE_TOPIC
from tests.broker_parts.broker_memory import DISK_FULL, ManualTimers, MemoryCluster


class Harness:
    """A coordinator on logs in memory, with one user topic of four partitions."""

    def __init__(self, partitions=2, **settings):
        self.timers = ManualTimers()
        self.cluster = MemoryCluster(self.timers, internal_partitions=partitions)
        self.topic = self.cluster.create("orders", 4)
        self.settings = ShareCoordinatorSettings(**settings)
        self.restart()

    def restart(self):
        self.is_on = True
        self.coordinator = ShareCoordinator(
            self.cluster, self.cluster, self.timers, self.settings, is_on=lambda: self.is_on
        )

    def key(self, partition=0, group_id="g", topic_id=None):
        return SharePartitionKey(group_id=group_id, topic_id=topic_id or self.topic.topic_id, partition=partition)

    def initialized(self, partition=0, start_offset=0):
        key = self.key(partition)
        assert self.coordinator.initialize(key, state_epoch=2, start_offset=start_offset) is ErrorCode.NONE
        return key

    def write(self, key, first, last, start_offset=0, state=2, count=0, epoch=2):
        batch = StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=1)
        request = WriteRequest(
            state_epoch=epoch,
            leader_epoch=0,
            start_offset=start_offset,
            delivery_complete_count=count,
            state_batches=(batch,),
        )
        return self.coordinator.write(key, request)

    def values(self, key):
        decoded = [
            decode_record(record.key, record.value) for batch in self.cluster.batches(STATE_TOPIC) for record in batch
        ]
        return [record.value for record in decoded if record.key == key]

    def states(self):
        """What a fresh coordinator would load, by state partition."""
        topic = self.cluster.by_name(STATE_TOPIC)
        return [self.coordinator.state_of(index) for index in range(topic.partitions)]

    def batches(self):
        return self.cluster.batches(STATE_TOPIC)


def test_a_share_partition_lives_in_the_log_that_its_key_hashes_to():
    harness = Harness(partitions=50)
    key = harness.initialized(3)
    expected = partition_for(key.group_id, key.topic_id, key.partition, 50)
    assert harness.coordinator.partition_for(key) == expected
    assert harness.cluster.get(STATE_TOPIC, expected).high_watermark == 1


def test_each_operation_is_one_batch_and_is_answered_from_what_the_log_says():
    harness = Harness()
    key = harness.initialized(start_offset=-1)
    assert harness.write(key, 0, 4, start_offset=0, count=5) is ErrorCode.NONE
    answer = harness.coordinator.read(key, leader_epoch=0)
    assert (answer.error_code, answer.start_offset, answer.state_epoch) == (ErrorCode.NONE, 0, 2)
    assert [(batch.first_offset, batch.last_offset) for batch in answer.state_batches] == [(0, 4)]
    summary = harness.coordinator.read_summary(key)
    assert (summary.start_offset, summary.delivery_complete_count) == (0, 5)
    assert [type(value) for value in harness.values(key)] == [ShareSnapshot, ShareUpdate]
    assert [len(batch) for batch in harness.batches()] == [1, 1]


def test_a_read_with_a_new_leader_epoch_is_recorded_before_it_is_answered():
    harness = Harness()
    key = harness.initialized()
    assert harness.coordinator.read(key, leader_epoch=4).error_code is ErrorCode.NONE
    assert harness.values(key)[-1].leader_epoch == 4
    assert harness.coordinator.read(key, leader_epoch=3).error_code is ErrorCode.FENCED_LEADER_EPOCH
    harness.cluster.refuse_appends(STATE_TOPIC, DISK_FULL)
    assert harness.coordinator.read(key, leader_epoch=6).error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    harness.cluster.refuse_appends(STATE_TOPIC, None)
    assert harness.coordinator.read(key, leader_epoch=4).error_code is ErrorCode.NONE


@pytest.mark.parametrize(
    ("refusal", "expected"),
    [
        (DISK_FULL, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (RecordTooLargeError("too large"), ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_a_refused_append_leaves_the_state_as_it_was(refusal, expected):
    harness = Harness()
    key = harness.initialized()
    before = harness.states()
    harness.cluster.refuse_appends(STATE_TOPIC, refusal)
    assert harness.write(key, 0, 4) is expected
    assert harness.coordinator.initialize(key, state_epoch=3, start_offset=9) is expected
    assert harness.coordinator.delete(key) is expected
    assert harness.states() == before


def test_an_unknown_topic_or_partition_is_refused():
    harness = Harness()
    for key in (harness.key(4), harness.key(topic_id="B" * 21 + "A")):
        assert (
            harness.coordinator.initialize(key, state_epoch=1, start_offset=0) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )
        assert harness.coordinator.read_summary(key).error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert harness.coordinator.initialize(harness.key(-1), state_epoch=1, start_offset=0) is ErrorCode.INVALID_REQUEST
    assert harness.coordinator.read(harness.key(), leader_epoch=0).error_code is ErrorCode.INVALID_REQUEST
    assert harness.write(harness.key(), 0, 1) is ErrorCode.INVALID_REQUEST
    assert harness.batches() == []


def test_older_state_epochs_are_fenced():
    harness = Harness()
    key = harness.initialized()
    assert harness.write(key, 0, 4, epoch=1) is ErrorCode.FENCED_STATE_EPOCH
    assert harness.coordinator.initialize(key, state_epoch=1, start_offset=0) is ErrorCode.FENCED_STATE_EPOCH


def test_the_write_after_the_limit_is_a_snapshot():
    harness = Harness(snapshot_update_limit=3)
    key = harness.initialized()
    for offset in range(8):
        harness.write(key, offset, offset)
    kinds = "".join("s" if isinstance(value, ShareSnapshot) else "u" for value in harness.values(key))
    assert kinds == "suuusuuus"


def test_a_restart_finds_what_was_acknowledged():
    harness = Harness(snapshot_update_limit=2)
    for partition in range(4):
        key = harness.initialized(partition)
        for offset in range(partition + 1):
            harness.write(key, offset, offset)
    before = harness.states()
    harness.restart()
    assert harness.states() == before


@pytest.mark.parametrize("rules", [KAFKA_4_3, KAFKA_4_4], ids=["4.3", "4.4"])
def test_the_job_for_cold_snapshots_rests_while_share_groups_are_off(rules):
    harness = Harness(partitions=1, cold_snapshot_interval_ms=1_000, rules=rules)
    harness.coordinator.start()
    key = harness.initialized(0)
    harness.is_on = False
    harness.timers.advance(2_500)
    assert [value.snapshot_epoch for value in harness.values(key)] == [0]
    harness.is_on = True
    harness.timers.advance(1_000)
    assert [value.snapshot_epoch for value in harness.values(key)] == [0, 1]


def test_a_restart_replays_the_whole_batch_that_holds_the_log_start_offset():
    harness = Harness(partitions=1, cold_snapshot_interval_ms=1_000)
    first, second = harness.initialized(0), harness.initialized(1)
    harness.timers.advance(1_000)
    harness.coordinator.snapshot_cold()
    log = harness.cluster.get(STATE_TOPIC, 0)
    log.delete_records(3)
    harness.restart()
    state = harness.coordinator.state_of(0).share_partitions
    assert sorted(state) == [first, second]
    assert [state[key].snapshot_log_offset for key in (first, second)] == [2, 3]


def test_deleting_a_topic_leaves_tombstones_for_its_share_partitions_alone():
    harness = Harness()
    kept_topic = harness.cluster.create("kept", 1)
    keys = [harness.initialized(partition) for partition in range(4)]
    other = harness.key(0, topic_id=kept_topic.topic_id)
    harness.coordinator.initialize(other, state_epoch=1, start_offset=0)
    harness.cluster.delete("orders")
    harness.coordinator.delete_topics([harness.topic.topic_id])
    assert all(isinstance(harness.values(key)[-1], Tombstone) for key in keys)
    assert [type(value) for value in harness.values(other)] == [ShareSnapshot]


def test_share_partitions_of_a_topic_that_went_while_the_broker_was_down_get_their_tombstones_at_the_next_load():
    harness = Harness()
    key = harness.initialized()
    harness.cluster.delete("orders")
    harness.restart()
    assert all(not state.share_partitions for state in harness.states())
    assert isinstance(harness.values(key)[-1], Tombstone)


def test_deleting_a_state_twice_writes_one_tombstone():
    harness = Harness()
    key = harness.initialized()
    assert [harness.coordinator.delete(key) for _ in range(2)] == [ErrorCode.NONE, ErrorCode.NONE]
    assert [type(value) for value in harness.values(key)] == [ShareSnapshot, Tombstone]
    assert harness.coordinator.read_summary(key).start_offset == -1


def test_the_jobs_repeat_old_snapshots_and_drop_what_lies_before_them():
    harness = Harness(partitions=1, snapshot_update_limit=500)
    harness.coordinator.start()
    busy, idle = harness.initialized(0), harness.initialized(1)
    for offset in range(10):
        harness.write(busy, offset, offset)
    before = harness.coordinator.state_of(0).share_partitions
    harness.timers.advance(299_999)
    log = harness.cluster.get(STATE_TOPIC, 0)
    assert (len(harness.batches()), log.log_start_offset) == (12, 0)
    harness.timers.advance(1)
    after = harness.coordinator.state_of(0).share_partitions
    assert [len(batch) for batch in harness.batches()[12:]] == [2]
    assert [after[key].snapshot_epoch for key in (busy, idle)] == [1, 1]
    assert after[busy].state_batches == before[busy].state_batches
    assert after[busy].create_timestamp_ms == before[busy].create_timestamp_ms
    assert after[busy].write_timestamp_ms == harness.timers.now_ms()
    assert log.log_start_offset == 12
    harness.timers.advance(300_000)
    assert log.log_start_offset == 12  # all rest on a repeated snapshot: nothing is written, nothing more can go


def test_records_are_compressed_with_the_configured_codec():
    harness = Harness(codec=4)
    harness.initialized()
    assert {codec for log in harness.cluster.logs(STATE_TOPIC) for codec in log.codecs} == {4}


@pytest.mark.parametrize(("rules", "start_offset"), [(KAFKA_4_3, 5), (KAFKA_4_4, 10)])
def test_the_rule_set_decides_whether_a_late_write_moves_the_start_offset_back(rules, start_offset):
    harness = Harness(rules=rules)
    key = harness.initialized(start_offset=10)
    harness.write(key, 11, 12, start_offset=5)
    assert harness.values(key)[-1].start_offset == start_offset


def test_a_log_that_cannot_be_read_has_no_coordinator():
    harness = Harness(partitions=1)
    key = harness.initialized()
    log = harness.cluster.get(STATE_TOPIC, 0)
    log.batches[0][0] = log.batches[0][0].__class__(key=log.batches[0][0].key, value=b"\0\7", offset=0)
    harness.restart()
    assert harness.coordinator.read(key, leader_epoch=0).error_code is ErrorCode.NOT_COORDINATOR
    assert harness.write(key, 0, 1) is ErrorCode.NOT_COORDINATOR
    assert harness.coordinator.delete(key) is ErrorCode.NOT_COORDINATOR
    assert harness.coordinator.read_summary(key).error_code is ErrorCode.NOT_COORDINATOR
    assert harness.coordinator.initialize(key, state_epoch=9, start_offset=0) is ErrorCode.NOT_COORDINATOR


OPERATIONS = {
    "initialize": lambda harness, key, number: harness.coordinator.initialize(
        key, state_epoch=number, start_offset=number - 1
    ),
    "write": lambda harness, key, number: harness.write(
        key, number, number + 3, start_offset=max(0, number - 4), epoch=20
    ),
    "read": lambda harness, key, number: harness.coordinator.read(key, leader_epoch=number),
    "delete": lambda harness, key, number: harness.coordinator.delete(key),
    "cold": lambda harness, key, number: harness.coordinator.snapshot_cold(),
    "prune": lambda harness, key, number: harness.coordinator.prune(),
    "restart": lambda harness, key, number: harness.restart(),
    "full": lambda harness, key, number: harness.cluster.refuse_appends(STATE_TOPIC, DISK_FULL),
    "room": lambda harness, key, number: harness.cluster.refuse_appends(STATE_TOPIC, None),
}
STEPS = st.lists(st.tuples(st.sampled_from(sorted(OPERATIONS)), st.integers(0, 3), st.integers(0, 20)), max_size=40)


@given(STEPS, st.sampled_from([KAFKA_4_3, KAFKA_4_4]))
def test_a_restart_at_any_moment_changes_no_answer(steps, rules):
    harness = Harness(rules=rules, snapshot_update_limit=3, cold_snapshot_interval_ms=5)
    for operation, partition, number in steps:
        harness.timers.advance(number % 3)
        OPERATIONS[operation](harness, harness.key(partition), number)
    keys = [harness.key(partition) for partition in range(4)]
    before = [harness.coordinator.read_summary(key) for key in keys]
    harness.restart()
    assert [harness.coordinator.read_summary(key) for key in keys] == before
