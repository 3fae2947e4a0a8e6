import pytest
from hypothesis import given
from hypothesis import strategies as st

from state_model import answers, coordinator
from state_model.answers import ErrorCode
from state_model.batches import coalesce
from state_model.coordinator import Outcome, WriteRequest
from state_model.machine import PartitionState, apply
from state_model.rule_sets import KAFKA_4_3, KAFKA_4_4, RULE_SETS
from state_model.share_records import (
    SharePartitionKey,
    ShareRecord,
    ShareSnapshot,
    ShareUpdate,
    StateBatch,
    Tombstone,
    decode_record,
    encode_record,
)

TOPIC = "A" * 22
KEY, OTHER = (SharePartitionKey(group_id="g", topic_id=TOPIC, partition=partition) for partition in (0, 1))
NEGATIVE = KEY._replace(partition=-1)
BOTH_RULE_SETS = pytest.mark.parametrize("rules", RULE_SETS.values(), ids=RULE_SETS)
NOW_MS = 1_000_000


def batches(text):
    """`110 0/1, 113-119 2/1`: offset 110 in state 0 with count 1, offsets 113 to 119 in state 2 with count 1."""
    parsed_batches = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        span, pair = part.split()
        first, _, last = span.partition("-")
        state, count = map(int, pair.split("/"))
        parsed_batches.append(
            StateBatch(
                first_offset=int(first), last_offset=int(last or first), delivery_state=state, delivery_count=count
            )
        )
    return tuple(parsed_batches)


class Log:
    """A state partition that appends what the write side says."""

    def __init__(self, rules, update_limit=500):
        self.state = PartitionState(rules=rules, update_limit=update_limit)
        self.values = []

    def append(self, records):
        for record in records:
            encoded = decode_record(*encode_record(record))
            assert encoded == record
            self.state = apply(self.state, len(self.values), NOW_MS, encoded)
            self.values.append(record.value)
        return records[-1].value if records else None

    def initialize(self, key=KEY, state_epoch=1, start_offset=-1, now_ms=NOW_MS):
        outcome = coordinator.initialize(
            self.state, key, state_epoch=state_epoch, start_offset=start_offset, now_ms=now_ms
        )
        assert outcome.error_code is ErrorCode.NONE
        return self.append(outcome.records)

    def read(self, leader_epoch, key=KEY):
        outcome = coordinator.read(self.state, key, leader_epoch=leader_epoch, now_ms=NOW_MS)
        return outcome.answer, self.append(outcome.records)

    def write(self, start_offset, text="", count=0, key=KEY, leader_epoch=9, state_epoch=9, now_ms=NOW_MS):
        request = WriteRequest(
            state_epoch=state_epoch,
            leader_epoch=leader_epoch,
            start_offset=start_offset,
            delivery_complete_count=count,
            state_batches=batches(text),
        )
        outcome = coordinator.write(self.state, key, request, now_ms=now_ms)
        assert outcome.error_code is ErrorCode.NONE
        return self.append(outcome.records)

    @property
    def current(self):
        return self.state.share_partitions[KEY]


# The example of KIP-932 ("Examples with share-group state"): each request to write, and the state it leaves.
KIP_932 = """
starting state               | 100 |             | 100 |
acknowledge 100-109          | 110 |             | 110 |
release 110                  |  -1 | 110 0/1     | 110 | 110 0/1
acknowledge 119              |  -1 | 119 2/1     | 110 | 110 0/1, 119 2/1
lock timeout of 111, 112     |  -1 | 111-112 0/1 | 110 | 110-112 0/1, 119 2/1
acknowledge 113-118          |  -1 | 113-118 2/1 | 110 | 110-112 0/1, 113-119 2/1
acknowledge 110              |  -1 | 110 2/2     | 110 | 110 2/2, 111-112 0/1, 113-119 2/1
acknowledge 111, 112         | 120 |             | 120 |
""".strip().splitlines()


@BOTH_RULE_SETS
@pytest.mark.parametrize("update_limit", [0, 1, 3, 500])
def test_the_worked_example_of_kip_932(rules, update_limit):
    log = Log(rules, update_limit)
    log.initialize(start_offset=100)
    for line in KIP_932:
        _, start_offset, written, start_after, after = (part.strip() for part in line.split("|"))
        log.write(int(start_offset), written)
        assert log.current.start_offset == int(start_after), line
        assert log.current.state_batches == batches(after), line
    assert len(log.values) == 1 + len(KIP_932)


@BOTH_RULE_SETS
@pytest.mark.parametrize(("start_offset", "count"), [(-1, -1), (0, 0), (70, 0)])
def test_initialize_writes_a_bare_snapshot(rules, start_offset, count):
    assert Log(rules).initialize(state_epoch=4, start_offset=start_offset) == ShareSnapshot(
        snapshot_epoch=0,
        state_epoch=4,
        leader_epoch=0,
        start_offset=start_offset,
        create_timestamp_ms=NOW_MS,
        write_timestamp_ms=NOW_MS,
        state_batches=(),
        delivery_complete_count=count,
    )


@BOTH_RULE_SETS
def test_initialize_over_a_live_share_partition_counts_on_and_forgets_its_batches(rules):
    log = Log(rules)
    log.initialize(state_epoch=4, start_offset=5)
    log.read(7)
    log.write(5, "5-9 2/1", 5)
    again = log.initialize(state_epoch=4, start_offset=0)
    assert (again.snapshot_epoch, again.leader_epoch, again.state_batches) == (1, 0, ())
    assert (log.current.leader_epoch_max, log.current.update_count) == (7, 2)


@BOTH_RULE_SETS
def test_after_a_delete_the_snapshot_epoch_begins_again(rules):
    log = Log(rules)
    log.initialize(state_epoch=9)
    log.initialize(state_epoch=9)
    assert log.append(coordinator.delete(log.state, KEY).records) == Tombstone()
    assert log.initialize(state_epoch=1).snapshot_epoch == 0
    assert coordinator.delete(log.state, OTHER) == Outcome()


@BOTH_RULE_SETS
def test_only_a_read_beyond_the_maximum_is_recorded(rules):
    log = Log(rules)
    log.initialize(start_offset=5)
    assert log.read(0)[1] is None  # the first leader of a new topic leaves no trace
    answer, record = log.read(3)
    assert answer.error_code is ErrorCode.NONE
    assert record == ShareUpdate(
        snapshot_epoch=0, leader_epoch=3, start_offset=5, state_batches=(), delivery_complete_count=0
    )
    assert log.read(3)[1] is None
    assert log.read(2)[0].error_code is ErrorCode.FENCED_LEADER_EPOCH
    log.initialize(start_offset=5)
    assert log.read(3)[1] is None  # equal to the maximum, although the state says 0 again
    assert answers.read_summary(log.state, KEY).leader_epoch == 0


@BOTH_RULE_SETS
def test_a_read_that_is_due_a_snapshot_writes_one_with_the_state(rules):
    log = Log(rules, update_limit=1)
    log.initialize(start_offset=5)
    log.write(5, "5-9 2/1", 5)
    _, record = log.read(3)
    assert isinstance(record, ShareSnapshot)
    assert (record.snapshot_epoch, record.leader_epoch, record.start_offset) == (1, 3, 5)
    assert (record.delivery_complete_count, record.state_batches) == (5, batches("5-9 2/1"))


@BOTH_RULE_SETS
def test_a_write_never_records_its_own_epochs(rules):
    log = Log(rules)
    log.initialize(state_epoch=2, start_offset=5)
    assert log.write(5, leader_epoch=8, state_epoch=8).leader_epoch == 0
    assert (log.current.leader_epoch_max, log.current.state_epoch_max) == (0, 2)


@BOTH_RULE_SETS
@pytest.mark.parametrize("limit", [0, 1, 2, 500])
def test_the_write_after_as_many_updates_as_the_limit_is_a_snapshot(rules, limit):
    log = Log(rules, update_limit=limit)
    log.initialize(start_offset=0)
    written = [log.write(0, f"{offset} 2/1", offset) for offset in range(2 * limit + 2)]
    kinds = "".join("s" if isinstance(value, ShareSnapshot) else "u" for value in written)
    assert kinds == ("u" * limit + "s") * 2
    assert written[limit].state_batches == batches(f"0-{limit} 2/1")


@BOTH_RULE_SETS
def test_batches_of_one_request_are_combined_with_each_other(rules):
    log = Log(rules)
    log.initialize(start_offset=5)
    assert log.write(5, "8-9 2/1, 3-6 0/1, 6-7 2/1").state_batches == batches("5 0/1, 6-9 2/1")


# Request (start offset, delivery complete count) at a state with start offset 5 and count 5; what each version records.
RESOLVED = [
    ((7, 3), (7, 3), (7, 3)),
    ((5, 9), (5, 9), (5, 9)),
    ((5, 3), (5, 3), (5, 5)),
    ((4, 9), (4, 9), (5, 5)),
    ((-1, 9), (-1, 9), (5, 5)),
]


@pytest.mark.parametrize(("request_values", "by_4_3", "by_4_4"), RESOLVED)
def test_what_a_late_write_records_depends_on_the_version(request_values, by_4_3, by_4_4):
    for rules, expected in ((KAFKA_4_3, by_4_3), (KAFKA_4_4, by_4_4)):
        log = Log(rules)
        log.initialize(start_offset=5)
        log.write(5, "", 5)
        update = log.write(request_values[0], "", request_values[1])
        assert (update.start_offset, update.delivery_complete_count) == expected


def test_a_late_write_that_is_due_a_snapshot_moves_back_in_4_3_only():
    for rules, start_offset in ((KAFKA_4_3, 4), (KAFKA_4_4, 5)):
        log = Log(rules, update_limit=0)
        log.initialize(start_offset=5)
        assert log.write(4).start_offset == start_offset
        assert log.write(-1).start_offset == start_offset


# Rules, share partition, leader epoch, state epoch, exists, answer; the maxima are 3 and 2. The earlier check wins.
WRITE_ERRORS = [
    (KAFKA_4_3, NEGATIVE, 0, 0, False, ErrorCode.INVALID_REQUEST),
    (KAFKA_4_3, OTHER, 0, 0, False, ErrorCode.INVALID_REQUEST),
    (KAFKA_4_3, KEY, 2, 1, False, ErrorCode.FENCED_LEADER_EPOCH),
    (KAFKA_4_3, KEY, 3, 1, False, ErrorCode.FENCED_STATE_EPOCH),
    (KAFKA_4_3, KEY, 3, 2, False, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    (KAFKA_4_3, KEY, -1, -1, True, ErrorCode.NONE),
    (KAFKA_4_4, KEY, -1, 2, True, ErrorCode.INVALID_REQUEST),
    (KAFKA_4_4, KEY, 3, -1, True, ErrorCode.INVALID_REQUEST),
    (KAFKA_4_4, KEY, 2, 1, True, ErrorCode.FENCED_LEADER_EPOCH),
    (KAFKA_4_4, KEY, 4, 3, True, ErrorCode.NONE),
]


@pytest.mark.parametrize(("rules", "key", "leader_epoch", "state_epoch", "exists", "error"), WRITE_ERRORS)
def test_writes_are_refused_in_the_order_of_the_checks(rules, key, leader_epoch, state_epoch, exists, error):
    log = Log(rules)
    log.initialize(state_epoch=2)
    log.read(3)
    request = WriteRequest(state_epoch=state_epoch, leader_epoch=leader_epoch, start_offset=0, state_batches=())
    outcome = coordinator.write(log.state, key, request, now_ms=NOW_MS, topic_partition_exists=exists)
    assert outcome.error_code is error
    assert len(outcome.records) == (1 if error is ErrorCode.NONE else 0)


@pytest.mark.parametrize(
    ("rules", "key", "state_epoch", "exists", "error"),
    [
        (KAFKA_4_3, NEGATIVE, 5, False, ErrorCode.INVALID_REQUEST),
        (KAFKA_4_3, KEY, 1, False, ErrorCode.FENCED_STATE_EPOCH),
        (KAFKA_4_3, KEY, 2, False, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (KAFKA_4_3, KEY, 2, True, ErrorCode.NONE),
        (KAFKA_4_3, KEY, -1, True, ErrorCode.NONE),
        (KAFKA_4_4, KEY, -1, True, ErrorCode.INVALID_REQUEST),
    ],
)
def test_initialize_is_refused_in_the_order_of_the_checks(rules, key, state_epoch, exists, error):
    log = Log(rules)
    log.initialize(state_epoch=2)
    outcome = coordinator.initialize(
        log.state, key, state_epoch=state_epoch, start_offset=0, now_ms=NOW_MS, topic_partition_exists=exists
    )
    assert outcome.error_code is error
    assert len(outcome.records) == (1 if error is ErrorCode.NONE else 0)


def test_delete_is_refused_for_no_partition_and_for_an_unknown_topic():
    log = Log(KAFKA_4_4)
    log.initialize()
    assert coordinator.delete(log.state, NEGATIVE).error_code is ErrorCode.INVALID_REQUEST
    unknown = coordinator.delete(log.state, KEY, topic_partition_exists=False)
    assert unknown == Outcome(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@BOTH_RULE_SETS
def test_a_cold_snapshot_repeats_the_state_and_keeps_its_creation(rules):
    log = Log(rules)
    log.initialize(start_offset=5)
    log.read(3)
    log.write(6, "6 0/1, 8 2/1", 1)
    before = log.current
    (record,) = coordinator.snapshot_cold(log.state, now_ms=NOW_MS + 300_000)
    assert record.value == ShareSnapshot(
        snapshot_epoch=1,
        state_epoch=1,
        leader_epoch=3,
        start_offset=6,
        create_timestamp_ms=NOW_MS,
        write_timestamp_ms=NOW_MS + 300_000,
        state_batches=before.state_batches,
        delivery_complete_count=1,
    )
    log.append((record,))
    assert (log.current.update_count, log.current.life_log_offset) == (2, 0)


@BOTH_RULE_SETS
def test_the_cold_job_takes_old_share_partitions_unless_all_were_taken_before(rules):
    log = Log(rules)
    assert coordinator.snapshot_cold(log.state, now_ms=NOW_MS) == ()
    log.initialize(KEY, now_ms=NOW_MS)
    log.initialize(OTHER, now_ms=NOW_MS + 1)
    later = NOW_MS + 300_000
    first = coordinator.snapshot_cold(log.state, now_ms=later)
    assert [record.key for record in first] == [KEY]  # the other is a millisecond too young
    log.append(first)
    assert [record.key for record in coordinator.snapshot_cold(log.state, now_ms=later + 300_000)] == [KEY, OTHER]
    log.append(coordinator.snapshot_cold(log.state, now_ms=later + 300_000))
    assert coordinator.snapshot_cold(log.state, now_ms=later * 9) == ()


@BOTH_RULE_SETS
def test_deleted_topics_leave_a_tombstone_for_each_share_partition(rules):
    log = Log(rules)
    kept_key = SharePartitionKey(group_id="g", topic_id="B" + TOPIC[1:], partition=0)
    for key in (OTHER, kept_key, KEY):
        log.initialize(key)
    assert coordinator.delete_topics(log.state, {TOPIC}) == tuple(
        ShareRecord(key=key, value=Tombstone()) for key in (KEY, OTHER)
    )
    assert coordinator.delete_topics(log.state, set()) == ()


def test_the_prune_job_deletes_only_what_it_has_not_deleted():
    log = Log(KAFKA_4_4, update_limit=0)
    log.initialize()
    assert coordinator.prune_point(log.state, None) is None
    log.write(0)
    log.write(0)
    assert coordinator.prune_point(log.state, None) == 2
    assert coordinator.prune_point(log.state, 1) == 2
    assert coordinator.prune_point(log.state, 2) is None


def test_the_snapshot_epoch_wraps_around_as_javas_int_does():
    log = Log(KAFKA_4_4, update_limit=0)
    last = log.initialize()._replace(snapshot_epoch=(1 << 31) - 1)
    log.append((ShareRecord(key=KEY, value=last),))
    assert log.write(0).snapshot_epoch == -(1 << 31)


REQUESTS = st.lists(
    st.tuples(
        st.integers(-1, 12),
        st.integers(-1, 5),
        st.lists(
            st.builds(
                lambda first, size, state, count: StateBatch(
                    first_offset=first, last_offset=first + size, delivery_state=state, delivery_count=count
                ),
                st.integers(0, 15),
                st.integers(0, 5),
                st.sampled_from([0, 2, 4]),
                st.integers(1, 3),
            ),
            max_size=3,
        ).map(tuple),
    ),
    max_size=12,
)


@BOTH_RULE_SETS
@given(REQUESTS, st.integers(0, 4))
def test_when_snapshots_are_written_does_not_change_what_a_reader_gets(rules, requests, limit):
    results = []
    for update_limit in (limit, 500):
        log = Log(rules, update_limit)
        log.initialize(start_offset=3)
        for start_offset, count, given_batches in requests:
            request = WriteRequest(
                state_epoch=1,
                leader_epoch=0,
                start_offset=start_offset,
                delivery_complete_count=count,
                state_batches=given_batches,
            )
            log.append(coordinator.write(log.state, KEY, request, now_ms=NOW_MS).records)
        results.append((answers.read_summary(log.state, KEY), answers.read(log.state, KEY, leader_epoch=0)))
    (summary, read), (other_summary, other_read) = results
    assert summary == other_summary
    assert coalesce(read.state_batches) == coalesce(other_read.state_batches)
