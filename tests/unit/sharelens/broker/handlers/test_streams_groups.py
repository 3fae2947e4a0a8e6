"""Streams groups through the whole broker; the answers of Kafka to heartbeats are in tests/compat."""

from functools import reduce

import pytest

from sharelens.broker.coordinators.classic_groups import JoinRequest
from state_model.group_schemas import GroupKind
from state_model.group_topics import TopicMetadata, metadata_hash
from state_model.streams.group import apply
from state_model.topics import OFFSETS_TOPIC
from state_model.uuids import uuid_bytes
from tests.broker_parts.dispatched_broker import DispatchedBroker
from tests.broker_parts.group_calls import alter, delete, fetch, forget, records, refuse, types

HEARTBEAT, DESCRIBE, LIST, COMMIT = (88, 0), (89, 0), (16, 5), (8, 9)
AT_ONCE = {"group_streams_initial_rebalance_delay_ms": 0, "group_streams_assignment_interval_ms": 0}
COMPACT = [{"key": "cleanup.policy", "value": "compact"}]
CHANGELOG = {"name": "g-counts-changelog", "replication_factor": -1, "topic_configs": COMPACT}
COUNTING = [{"subtopology_id": "0", "source_topics": ["in"], "state_changelog_topics": [CHANGELOG]}]
PLAIN = [{"subtopology_id": "0", "source_topics": ["in"]}]
TASK_LISTS = ("active_tasks", "standby_tasks", "warmup_tasks")
NO_LISTS = dict.fromkeys((*TASK_LISTS, "task_offsets", "task_end_offsets", "client_tags"))


@pytest.fixture
def broker(tmp_path):
    broker = DispatchedBroker(tmp_path / "log", **AT_ONCE)
    broker.create("in", 2)
    broker.create("other", 1)
    yield broker
    broker.close()


def join(broker, member="m", subtopologies=PLAIN, group="g"):
    return broker.call(
        *HEARTBEAT,
        group_id=group,
        member_id=member,
        member_epoch=0,
        rebalance_timeout=60_000,
        topology={"epoch": 0, "subtopologies": subtopologies},
        process_id=f"p-{member}",
        **NO_LISTS | dict.fromkeys(TASK_LISTS, ()),
    )


def beat(broker, epoch, member="m", **fields):
    fields = NO_LISTS | fields
    return broker.call(*HEARTBEAT, group_id="g", member_id=member, member_epoch=epoch, **fields)


def described(broker, group="g"):
    (answer,) = broker.call(*DESCRIBE, group_ids=[group])["groups"]
    return answer


def listed(broker, **filters):
    return [
        (each["group_id"], each["group_state"], each["group_type"]) for each in broker.call(*LIST, **filters)["groups"]
    ]


def commit(broker, epoch, member="m", topic="in", partition=0, version=COMMIT[1]):
    partitions = [{"partition_index": partition, "committed_offset": 5}]
    answer = broker.call(
        COMMIT[0],
        version,
        group_id="g",
        member_id=member,
        generation_id_or_member_epoch=epoch,
        topics=[{"name": topic, "partitions": partitions}],
    )
    return answer["topics"][0]["partitions"][0]["error_code"].value


def test_missing_internal_topics_are_created_with_their_partitions_and_configuration(broker):
    first = join(broker, subtopologies=COUNTING)
    assert [(each["status_code"], each["status_detail"]) for each in first["status"]] == [
        (3, "Internal topics are missing: g-counts-changelog")
    ]
    assert broker.broker.catalog.by_name("g-counts-changelog").partitions == 2
    assert broker.broker.catalog.topic_configs("g-counts-changelog") == {"cleanup.policy": "compact"}
    second = beat(broker, first["member_epoch"])
    assert (second["status"], second["active_tasks"]) == ([], [{"subtopology_id": "0", "partitions": [0, 1]}])


def test_a_group_is_described_from_its_records_alone_after_a_restart(broker):
    join(broker, subtopologies=COUNTING)
    beat(broker, 2)
    before = described(broker)
    assert (before["group_state"], before["group_epoch"], before["assignment_epoch"]) == ("Stable", 3, 3)
    (changelog,) = before["topology"]["subtopologies"][0]["state_changelog_topics"]
    assert (changelog["name"], changelog["partitions"]) == ("g-counts-changelog", 2)
    broker.restart()
    after = described(broker)
    changelog["partitions"] = 0  # decided counts come with the next heartbeat
    assert after == before
    assert beat(broker, 3)["active_tasks"] is None
    group = reduce(apply, [each for each in records(broker) if each.record_type > 1], None)
    assert group == broker.broker.streams_groups.get("g")


def test_groups_are_listed_by_state_and_type(broker):
    join(broker)
    join(broker, group="unready", subtopologies=[{"subtopology_id": "0", "source_topics": ["missing"]}])
    both_groups = [("g", "Stable", "streams"), ("unready", "NotReady", "streams")]
    assert listed(broker) == listed(broker, types_filter=["STREAMS"]) == both_groups
    assert listed(broker, types_filter=["share"]) == listed(broker, states_filter=["NotReady"]) == []
    assert listed(broker, states_filter=["not_ready"]) == both_groups[1:]


def test_members_commit_and_fetch_offsets_in_their_epoch(broker):
    join(broker)
    join(broker, "m2")
    beat(broker, 2, active_tasks=[], standby_tasks=[], warmup_tasks=[])
    assert described(broker)["members"][0]["member_epoch"] == 3
    assert [commit(broker, 3), commit(broker, 2), commit(broker, 1), commit(broker, 4)] == [0, 0, 113, 113]
    assert [commit(broker, 2, partition=1), commit(broker, 2, topic="other")] == [113, 113]
    assert [commit(broker, 3, "unknown"), commit(broker, -1, ""), commit(broker, 3, version=8)] == [25, 25, 35]
    assert fetch(broker) == fetch(broker, "m", 3) == (0, [5])
    assert [fetch(broker, "m", 2), fetch(broker, "unknown", 3)] == [(113, []), (25, [])]


def test_offsets_of_topics_that_members_read_are_not_deleted(broker):
    join(broker)
    commit(broker, 2)
    commit(broker, 2, topic="other")
    assert {topic: forget(broker, topic) for topic in ("in", "other")} == {"in": 86, "other": 0}


def test_an_empty_group_is_deleted_with_its_offsets(broker):
    join(broker)
    commit(broker, 2)
    assert delete(broker) == 68
    beat(broker, -1)
    assert described(broker)["group_state"] == "Empty"
    since = len(records(broker))
    assert (delete(broker), delete(broker)) == (0, 69)
    assert types(broker, since) == [(1, True), (20, True), (17, True), (23, True)]
    broker.restart()
    assert listed(broker) == []
    other = [{"subtopology_id": "0", "source_topics": ["other"]}]
    assert join(broker, subtopologies=other)["error_code"].value == 0


def classic_join(broker, member=""):
    answers = []
    request = JoinRequest(
        group_id="g",
        member_id=member,
        client_id="c",
        client_host="/h",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=(("range", b""),),
        requires_known_member=False,
    )
    broker.broker.classic_groups.join(request, answers.append)
    broker.timers.advance(10)
    return answers[0].error_code.value


def test_a_simple_group_becomes_a_streams_group_and_keeps_its_offsets(broker):
    assert commit(broker, -1, "") == 0
    assert join(broker)["member_epoch"] == 2
    assert types(broker)[1:3] == [(2, True), (19, False)]
    broker.restart()
    assert listed(broker) == [("g", "Stable", "streams")]
    assert fetch(broker) == (0, [5])


def test_a_classic_group_takes_the_id_of_an_empty_streams_group(tmp_path):
    broker = DispatchedBroker(tmp_path / "log", **AT_ONCE, group_initial_rebalance_delay_ms=0)
    broker.create("in", 2)
    join(broker)
    commit(broker, 2)
    assert classic_join(broker) == 23
    beat(broker, -1)
    since = len(records(broker))
    assert classic_join(broker) == 0
    assert types(broker, since)[:4] == [(20, True), (17, True), (23, True), (2, False)]
    assert join(broker)["error_message"] == "Group g is not a streams group."
    assert fetch(broker) == (0, [5])
    broker.restart()
    assert [each[2] for each in listed(broker)] == ["classic"]
    broker.close()


def test_a_silent_member_is_fenced_also_after_a_restart(broker):
    join(broker)
    broker.timers.advance(30_000)
    broker.restart()
    broker.timers.advance(44_000)
    assert described(broker)["group_state"] == "Stable"
    broker.timers.advance(2_000)
    assert described(broker)["group_state"] == "Empty"
    assert beat(broker, 2)["error_code"].value == 25


def test_a_member_that_keeps_tasks_too_long_is_fenced(broker):
    join(broker)
    join(broker, "m2")
    owned = {"active_tasks": [{"subtopology_id": "0", "partitions": [0, 1]}], "standby_tasks": [], "warmup_tasks": []}
    for _ in range(3):
        assert beat(broker, 2, **owned)["error_code"].value == 0
        broker.timers.advance(21_000)
        beat(broker, 3, "m2")
    assert beat(broker, 2, **owned)["error_code"].value == 25
    assert [each["member_id"] for each in described(broker)["members"]] == ["m2"]


@pytest.mark.slow
def test_an_empty_group_without_offsets_is_gone_at_the_next_check(broker):
    join(broker)
    commit(broker, 2)
    beat(broker, -1)
    broker.timers.advance(700_000)
    assert len(listed(broker)) == 1
    broker.timers.advance(8 * 86_400_000)
    assert listed(broker) == []
    assert types(broker)[-4:] == [(1, True), (20, True), (17, True), (23, True)]


def test_a_refused_write_changes_nothing(broker):
    join(broker)
    log = broker.broker.group_log.log_for("g")
    before = described(broker)
    real_append, log.append_records = log.append_records, refuse
    assert join(broker, "m2")["error_code"].value == 15
    log.append_records = real_append
    assert described(broker) == before


@pytest.mark.parametrize(
    "settings", [{"group_coordinator_rebalance_protocols": "classic,consumer"}, {}], ids=["protocol", "feature"]
)
def test_streams_groups_can_be_off(tmp_path, settings):
    broker = DispatchedBroker(tmp_path / "log", **settings)
    if not settings:
        broker.broker.set_features({"streams.version": 0})
    assert [join(broker)["error_code"].value, described(broker)["error_code"].value] == [35, 35]
    broker.close()


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("session.timeout.ms", "70000", 40),
        ("heartbeat.interval.ms", "100", 40),
        ("num.standby.replicas", "3", 40),
        ("num.standby.replicas", "-1", 40),
        ("assignment.interval.ms", "20000", 40),
        ("assignor.offload.enable", "true", 40),
        ("num.standby.replicas", "2", 0),
        ("initial.rebalance.delay.ms", "500", 0),
    ],
)
def test_configurations_of_groups_have_bounds(broker, name, value, code):
    assert alter(broker, f"streams.{name}", value) == code


def test_members_wait_for_the_initial_rebalance_delay(tmp_path):
    broker = DispatchedBroker(tmp_path / "log")
    broker.create("in", 2)
    assert [each["status_code"] for each in join(broker)["status"]] == [5]
    broker.timers.advance(2_999)
    assert beat(broker, 1)["member_epoch"] == 1
    broker.timers.advance(1)
    assert beat(broker, 1)["member_epoch"] == 2
    assert OFFSETS_TOPIC in {topic.name for topic in broker.broker.catalog.topics.values()}
    broker.close()


def test_a_member_id_that_no_record_can_have_is_an_error_and_changes_nothing(broker):
    join(broker)
    before = described(broker)
    assert join(broker, "m" * 40_000)["error_code"].value == -1
    assert described(broker) == before


def test_a_change_that_no_batch_can_have_is_an_error_and_changes_nothing(broker):
    configs = [{"key": "k", "value": "v" * 4_000}]
    changelogs = [{"name": f"c{number}", "topic_configs": configs} for number in range(400)]
    hostile = [{"subtopology_id": "0", "source_topics": ["in"], "state_changelog_topics": changelogs}]
    answer = join(broker, subtopologies=hostile)
    assert (answer["error_code"].value, described(broker)["error_code"].value) == (-1, 69)


def test_a_copartition_group_that_names_no_topic_is_an_unknown_error_as_in_kafka(broker):
    for index in (3, -1):
        groups = [{"source_topics": [index], "source_topic_regex": [], "repartition_source_topics": []}]
        answer = join(broker, subtopologies=[PLAIN[0] | {"copartition_groups": groups}])
        assert (answer["error_code"].value, described(broker)["error_code"].value) == (-1, 69)


def test_the_rack_of_the_broker_counts_in_the_metadata_hash(tmp_path, broker):
    other = DispatchedBroker(tmp_path / "racks", broker_rack="r", **AT_ONCE)
    other.create("in", 2)
    join(other)
    (group,) = [group for name, group in other.broker.streams_groups if name == "g"]
    topic = other.broker.catalog.by_name("in")
    metadata = TopicMetadata("in", uuid_bytes(topic.topic_id), 2)
    assert group.metadata.metadata_hash == metadata_hash([metadata._replace(racks=("r",))]) != metadata_hash([metadata])
    racks = [at.call(3, 12, topics=None)["brokers"][0]["rack"] for at in (broker, other)]
    other.close()
    assert racks == [None, "r"]


def test_rebalances_are_counted(broker):
    join(broker)
    beat(broker, 2)
    join(broker, "m2")
    assert broker.broker.metrics.group_rebalances[GroupKind.STREAMS] == 2


def test_hostile_partition_counts_of_internal_topics_end_in_a_status(broker):
    for number, count in enumerate((2**31 - 1, -5)):
        info = {"name": f"r{number}", "partitions": count, "replication_factor": 1, "topic_configs": []}
        topology = [{"subtopology_id": "0", "source_topics": ["in"], "repartition_source_topics": [info]}]
        join(broker, subtopologies=topology, group=f"hostile-{number}")
        again = join(broker, subtopologies=topology, group=f"hostile-{number}")
        assert [each["status_code"] for each in again["status"]] == [3]
        assert "Creation failed" in again["status"][0]["status_detail"]
