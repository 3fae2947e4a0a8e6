"""Rules between the state log and user topics: ends, windows, leader epochs; nothing without 60 s of evidence."""

import numpy as np
import pytest

from state_model.audit.columnar.auditor import Auditor
from state_model.audit.columnar.lives import Turns, lives_of
from state_model.audit.columnar.proofs import LogRecord, Proofs
from state_model.audit.columnar.topic_metadata import LogTimes, belongs_to, topic_metadata, unknown_topic_partitions
from state_model.audit.columnar.user_topics import TopicAudit, TopicEnd, UserTopics, newest_states, topic_records
from state_model.audit.table import RULES
from state_model.metadata.history import Moment, Validity
from state_model.share_records import SharePartitionKey, ShareRecord, ShareSnapshot, ShareUpdate, StateBatch
from tests.logs.replay_logs import table

SEVERITIES = {rule.id: rule.severity for rule in RULES if rule.severity}
KEY = SharePartitionKey(group_id="g", topic_id="T" * 22, partition=0)
MINUTE = 60_000
TIMES = LogTimes(0, 5)
SOON, LATER = MINUTE - 1, 10 * MINUTE


def snapshot(start=-1, *, epoch=0, leader=0, count=0):
    return ShareSnapshot(
        snapshot_epoch=epoch, state_epoch=1, leader_epoch=leader, start_offset=start, create_timestamp_ms=0,
        write_timestamp_ms=0, state_batches=(), delivery_complete_count=count,
    )  # fmt: skip


def update(start, first=None, last=None, *, leader=0, count=0):
    batches = () if first is None else (StateBatch(first, last, 2, 1),)
    return ShareUpdate(
        snapshot_epoch=0, leader_epoch=leader, start_offset=start, state_batches=batches, delivery_complete_count=count
    )


def findings(*values, topics, chunk=1):
    records = table([(KEY, value, False) for value in values])
    proofs, turns = Proofs(), Turns()
    audit, auditor = TopicAudit(topics, proofs), Auditor(is_from_zero=True)
    for begin in range(0, records.num_rows, chunk):
        audit.take(topic_records(records.slice(begin, chunk)))
        auditor.take(records.slice(begin, chunk))
        turns.take(records.slice(begin, chunk))
    audit.close(newest_states(auditor, np.zeros(1, np.int64)))
    if topics.metadata is not None:
        unknown_topic_partitions(lives_of(turns.table()), topics.metadata, proofs)
    return proofs.findings(SEVERITIES).to_pylist()


def ending(offset, newest_ms=LATER, leader_epoch=0, **options):
    return UserTopics(end_of=lambda place: TopicEnd("orders", offset, newest_ms, leader_epoch), **options)


def rules(*values, topics):
    return [row["rule"] for row in findings(*values, topics=topics)]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((snapshot(101),), ["start_offset_beyond_end", "negative_lag"]),
        ((snapshot(), update(150)), ["start_offset_beyond_end", "negative_lag"]),
        ((snapshot(), update(150), update(90)), ["start_offset_beyond_end"]),
        ((snapshot(), update(90, 90, 100)), ["batch_beyond_end"]),
        ((snapshot(), update(90, 95, 1 << 62)), ["batch_beyond_end"]),
        ((snapshot(), update(90, 200, 201), update(90)), ["batch_beyond_end"]),
        ((snapshot(), update(90, count=11)), ["complete_count_beyond_end", "negative_lag"]),
        ((snapshot(), update(100, count=1)), ["complete_count_beyond_end", "negative_lag"]),
        ((snapshot(), update(0, count=500), update(100, count=0)), ["complete_count_beyond_end"]),
    ],
)
def test_state_beyond_the_end_of_its_topic_is_a_finding(values, expected):
    assert rules(*values, topics=ending(100)) == expected


@pytest.mark.parametrize(
    "values", [(snapshot(100),), (snapshot(), update(90, 90, 99, count=10)), (snapshot(), update(100, count=0))]
)
def test_state_up_to_the_end_of_its_topic_is_none(values):
    assert rules(*values, topics=ending(100)) == []


def test_a_topic_that_was_copied_earlier_proves_nothing():
    values = (snapshot(101), update(90, 90, 200, count=50))
    assert rules(*values, topics=ending(100, SOON)) == []
    assert rules(*values, topics=UserTopics()) == []


def test_silence_that_is_known_proves_no_error():
    topics = ending(100, SOON, read_until_ms=LATER)
    assert rules(snapshot(), update(90, 90, 200), topics=topics) == ["batch_beyond_cut_end"]


@pytest.mark.parametrize("epochs", [(0, 1), (2, 3), (5, 4)])
def test_an_election_may_have_cut_off_the_end(epochs):
    of_record, of_topic = epochs
    topics = ending(100, leader_epoch=of_topic)
    values = (snapshot(leader=of_record), update(90, 90, 200, leader=of_record, count=50))
    assert rules(*values, topics=topics) == ["batch_beyond_cut_end", "negative_lag"]


@pytest.mark.parametrize(("start", "last", "is_over"), [(0, 2098, False), (0, 2099, True), (5, 2103, False)])
def test_a_window_is_within_the_locks_and_one_log_batch(start, last, is_over):
    topics = ending(10_000, locks_of=lambda group: 2000, span_at=lambda place, offset: 100)
    expected = ["window_over_locks"] if is_over else []
    assert rules(snapshot(), update(start, last, last), update(start, last - 1, last - 1), topics=topics) == expected
    unknown = ending(10_000, locks_of=lambda group: 2000)
    assert rules(snapshot(), update(0, 9000, 9000), topics=unknown) == []


def metadata(*rows, from_ms=None, until_ms=LATER):
    """Rows: (key, content, time); each in force to the end."""
    validities = [
        Validity(key=key, content=content, begin=Moment(offset, time_ms))
        for offset, (key, content, time_ms) in enumerate(rows)
    ]
    return UserTopics(metadata=topic_metadata(validities, from_ms, until_ms))


def partition(number=0, epoch=0, at_ms=0):
    return ("partition", KEY.topic_id, number), {"leader_epoch": epoch}, at_ms


TOPIC = (("topic", KEY.topic_id), {"name": "orders"}, 0)


@pytest.mark.parametrize("epoch", [4, 5, 900])
def test_a_leader_epoch_that_the_metadata_never_had_is_an_error(epoch):
    topics = metadata(TOPIC, partition(epoch=3))
    (row,) = findings(snapshot(), update(0, leader=epoch), update(0, leader=epoch), topics=topics)
    assert (row["rule"], row["count"], row["expected"]) == ("leader_epoch_beyond_topic", 2, "<= 3")


@pytest.mark.parametrize(
    "topics",
    [
        metadata(TOPIC, partition(epoch=4)),
        metadata(TOPIC, partition(epoch=3), partition(epoch=4, at_ms=SOON)),
        metadata(TOPIC, partition(epoch=3), until_ms=SOON),
        metadata(),
    ],
)
def test_a_leader_epoch_that_the_metadata_may_have_is_none(topics):
    assert "leader_epoch_beyond_topic" not in rules(snapshot(), update(0, leader=4), topics=topics)


@pytest.mark.parametrize(
    "topics",
    [metadata(TOPIC, partition(1)), metadata(), metadata(TOPIC, partition(0, at_ms=LATER), partition(1))],
)
def test_state_of_a_partition_that_never_was_is_an_error(topics):
    assert rules(snapshot(), topics=topics) == ["unknown_topic_partition"]


@pytest.mark.parametrize(
    "topics",
    [
        metadata(TOPIC, partition(0, at_ms=SOON)),
        metadata(until_ms=SOON),
        metadata(from_ms=MINUTE),  # the topic may have been deleted before
        metadata(TOPIC, partition(0), partition(1)),
    ],
)
def test_state_of_a_partition_that_may_have_been_is_none(topics):
    assert rules(snapshot(), topics=topics) == []


def test_internal_topics_have_the_ids_of_the_metadata():
    names = [(("topic", topic_id), {"name": "__share_group_state"}, 0) for topic_id in ("old", "new")]
    cluster_metadata = metadata(*names).metadata
    proofs = Proofs()
    log = LogRecord("__share_group_state", 3, 0)
    assert all(belongs_to(cluster_metadata, log, topic_id, TIMES, proofs) for topic_id in ("old", "new"))
    assert belongs_to(cluster_metadata, LogRecord("__consumer_offsets", 0, 0), "any", TIMES, proofs)
    assert proofs.findings(SEVERITIES).num_rows == 0
    assert not belongs_to(cluster_metadata, log, "other", TIMES, proofs)
    (row,) = proofs.findings(SEVERITIES).to_pylist()
    assert (row["rule"], row["seen"]) == ("log_of_other_cluster", "unknown")
    assert {record["topic"] for record in row["records"]} == {"__share_group_state", "__cluster_metadata"}
    assert belongs_to(cluster_metadata, log, "later", LogTimes(LATER - SOON, LATER), Proofs())


def test_records_in_one_chunk_or_many_have_the_same_findings():
    values = (snapshot(101), update(90, 90, 200, count=50), update(150), update(0, 0, 3000))
    topics = ending(100, locks_of=lambda group: 2000, span_at=lambda place, offset: 1)
    assert findings(*values, topics=topics, chunk=4) == findings(*values, topics=topics, chunk=1)


def test_damaged_places_are_passed_over():
    key = KEY._replace(partition=-1)
    records = table([(key, snapshot(5), False)])
    proofs = Proofs()
    TopicAudit(ending(100), proofs).take(topic_records(records))
    assert proofs.findings(SEVERITIES).num_rows == 0
    assert ShareRecord(key=key, value=snapshot()).key.partition == -1
