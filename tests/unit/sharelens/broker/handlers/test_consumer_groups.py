"""Consumer groups of KIP-848 through the whole broker; Kafka's answers to heartbeats are in tests/components."""

import asyncio
from datetime import timedelta
from uuid import UUID

import pytest

from sharelens.broker.security.authorization.entries import Operation, ResourceType
from state_model.consumer.heartbeat import Heartbeat
from state_model.group_schemas import GroupKind
from state_model.uuids import uuid_bytes
from tests.broker_parts.acl_answers import entry
from tests.broker_parts.dispatched_broker import DispatchedBroker
from tests.broker_parts.group_calls import alter, code, delete, fetch, forget, refuse, types

HEARTBEAT, DESCRIBE, LIST, LEAVE, COMMIT = (68, 1), (69, 1), (16, 5), (13, 5), (8, 9)
AT_ONCE = {"group_consumer_assignment_interval_ms": 0}
UNCHANGED = {
    "rebalance_timeout": -1,
    "subscribed_topic_names": None,
    "subscribed_topic_regex": None,
    "topic_partitions": None,
}


@pytest.fixture
def broker(tmp_path):
    broker = DispatchedBroker(tmp_path / "log", **AT_ONCE)
    broker.create("in", 2)
    broker.create("other", 1)
    yield broker
    broker.close()


def join(broker, member="m", group="g", version=1, **fields):
    request_fields = (
        UNCHANGED | {"rebalance_timeout": 60_000, "subscribed_topic_names": ["in"], "topic_partitions": []} | fields
    )
    if version == 0:
        del request_fields["subscribed_topic_regex"]
    return broker.call(HEARTBEAT[0], version, group_id=group, member_id=member, member_epoch=0, **request_fields)


def beat(broker, epoch, member="m", **fields):
    return broker.call(*HEARTBEAT, group_id="g", member_id=member, member_epoch=epoch, **UNCHANGED | fields)


def owned(broker, *partitions, topic="in"):
    topic_id = broker.broker.catalog.by_name(topic).topic_id
    return [{"topic_id": uuid_of(topic_id), "partitions": list(partitions)}]


def uuid_of(text):
    return UUID(bytes=uuid_bytes(text))


def partitions(answer):
    """The partitions of an answer by topic name; None when it has no assignment."""
    if answer["assignment"] is None:
        return None
    return [topic["partitions"] for topic in answer["assignment"]["topic_partitions"]]


def described(broker, group="g"):
    (answer,) = broker.call(*DESCRIBE, group_ids=[group])["groups"]
    return answer


def listed(broker, **filters):
    return [
        (each["group_id"], each["group_state"], each["group_type"], each["protocol_type"])
        for each in broker.call(*LIST, **filters)["groups"]
    ]


def commit(broker, epoch, member="m", places=(("in", 0),), version=COMMIT[1]):
    topics = [
        {"name": topic, "partitions": [{"partition_index": partition, "committed_offset": 5}]}
        for topic, partition in places
    ]
    fields = {"group_id": "g", "member_id": member, "generation_id_or_member_epoch": epoch, "topics": topics}
    answer = broker.call(COMMIT[0], version, **fields)
    return [each["partitions"][0]["error_code"].value for each in answer["topics"]]


def test_members_share_the_partitions_one_after_the_other_and_commit_in_their_epoch(broker):
    first = join(broker)
    assert (code(first), first["member_id"], first["member_epoch"], partitions(first)) == (0, "m", 2, [[0, 1]])
    assert first["heartbeat_interval"] == timedelta(seconds=5)
    assert partitions(beat(broker, 2)) is None
    second = join(broker, "n")
    assert (second["member_epoch"], partitions(second)) == (3, [])
    revoking = beat(broker, 2, topic_partitions=owned(broker, 0, 1))
    assert (revoking["member_epoch"], partitions(revoking)) == (2, [[0]])
    assert commit(broker, 2, places=[("in", 0), ("in", 1)]) == [0, 0]
    assert beat(broker, 2, topic_partitions=owned(broker, 0))["member_epoch"] == 3
    assert partitions(beat(broker, 3, "n")) == [[1]]
    assert described(broker)["group_state"] == "Stable"
    # The epoch 2 is old, but partition 0 was assigned in it; the other one is gone.
    assert [commit(broker, 3), commit(broker, 2), commit(broker, 4)] == [[0], [0], [113]]
    assert commit(broker, 2, places=[("in", 0), ("in", 1)]) == [113, 113]
    assert [commit(broker, 2, "n", [("in", 1)]), commit(broker, 3, "n", [("in", 1)])] == [[113], [0]]
    assert [commit(broker, 3, "x"), commit(broker, -1, ""), commit(broker, 3, version=8)] == [[25], [25], [35]]
    assert fetch(broker) == fetch(broker, "m", 3) == (0, [5, 5])
    assert [fetch(broker, "m", 2), fetch(broker, "x", 3), fetch(broker, "", -1)] == [(113, []), (25, []), (25, [])]


def test_offsets_are_committed_by_topic_id_too(broker):
    join(broker)
    topic_id = uuid_of(broker.broker.catalog.by_name("in").topic_id)
    topics = [{"topic_id": topic_id, "partitions": [{"partition_index": 1, "committed_offset": 7}]}]
    fields = {"group_id": "g", "member_id": "m", "generation_id_or_member_epoch": 2, "topics": topics}
    (topic,) = broker.call(8, 10, **fields)["topics"]
    assert (topic["topic_id"], topic["partitions"][0]["error_code"].value) == (topic_id, 0)
    requested = {"group_id": "g", "member_id": "m", "member_epoch": 2}
    requested["topics"] = [{"topic_id": topic_id, "partition_indexes": [1]}]
    (group,) = broker.call(9, 10, groups=[requested])["groups"]
    assert group["topics"][0]["partitions"][0]["committed_offset"] == 7


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"member": ""}, 42),
        ({"group": ""}, 42),
        ({"instance_id": ""}, 42),
        ({"rack_id": " "}, 42),
        ({"rebalance_timeout": -1}, 42),
        ({"topic_partitions": None}, 42),
        ({"subscribed_topic_names": None}, 42),
        ({"server_assignor": "sticky"}, 112),
        ({"subscribed_topic_names": []}, 0),
        ({"server_assignor": "range"}, 0),
        ({"version": 0, "member": ""}, 0),
    ],
)
def test_joins_are_checked_before_any_group_is(broker, fields, expected):
    answer = join(broker, **fields)
    assert code(answer) == expected
    assert (answer["assignment"] is None) == bool(expected)
    assert len(answer["member_id"] or "") == (0 if expected else 22 if fields.get("version") == 0 else 1)


def test_epochs_and_members_that_the_group_has_not_are_refused(broker):
    assert code(beat(broker, 1)) == 69
    join(broker)
    assert [code(beat(broker, 2, "x")), code(beat(broker, 3)), code(beat(broker, -3))] == [25, 110, 42]
    assert [code(beat(broker, -2)), code(beat(broker, -1, "x"))] == [42, 25]
    # The answer with the newer epoch was lost: the older one counts while what the member has is a part of its own.
    join(broker, "n")
    beat(broker, 2, topic_partitions=owned(broker, 0))
    assert described(broker)["members"][0]["member_epoch"] == 3
    assert code(beat(broker, 2, topic_partitions=owned(broker, 0))) == 0
    assert code(beat(broker, 2, topic_partitions=owned(broker, 1))) == 110
    assert code(beat(broker, 2)) == 110
    leaving = beat(broker, -1)
    assert (code(leaving), leaving["member_epoch"], leaving["heartbeat_interval"]) == (0, -1, timedelta(0))


def test_static_members_keep_their_place_while_they_are_away(broker):
    join(broker, instance_id="i")
    assert code(join(broker, "n", instance_id="i")) == 111
    leaving = beat(broker, -2, instance_id="i")
    assert (code(leaving), leaving["member_epoch"]) == (0, -2)
    back = join(broker, "n", instance_id="i")
    assert (code(back), back["member_epoch"], partitions(back)) == (0, 2, [[0, 1]])
    assert code(beat(broker, 2, "m", instance_id="i")) == 82
    assert code(beat(broker, -1, "m", instance_id="i")) == 82
    assert code(beat(broker, -1, "n", instance_id="i")) == 0


def test_a_full_group_takes_no_member(tmp_path):
    broker = DispatchedBroker(tmp_path / "log", group_consumer_max_size=1, **AT_ONCE)
    broker.create("in", 1)
    assert [code(join(broker)), code(join(broker, "n")), code(join(broker))] == [0, 81, 0]
    broker.close()


def test_a_group_is_described_from_its_records_alone_after_a_restart(broker):
    join(broker, rack_id="r", subscribed_topic_names=["in", "other"], server_assignor="range")
    join(broker, "n")
    before = described(broker)
    (member, _) = before["members"]
    assert (before["group_state"], before["group_epoch"], before["assignment_epoch"]) == ("Reconciling", 3, 3)
    assert (before["assignor_name"], member["member_type"], member["rack_id"]) == ("range", 1, "r")
    assert member["subscribed_topic_names"] == ["in", "other"]
    names = [each["topic_name"] for each in member["assignment"]["topic_partitions"]]
    assert (sorted(names), member["subscribed_topic_regex"]) == (["in", "other"], "")
    assert {each["topic_name"]: each["partitions"] for each in member["target_assignment"]["topic_partitions"]} == {
        "in": [0],
        "other": [0],
    }
    broker.restart()
    assert described(broker) == before


def test_what_a_member_must_still_revoke_is_in_its_description(broker):
    join(broker)
    join(broker, "n")
    beat(broker, 2, topic_partitions=owned(broker, 0, 1))
    (first, second) = described(broker)["members"]
    assert [each["partitions"] for each in first["assignment"]["topic_partitions"]] == [[0, 1]]
    assert second["assignment"]["topic_partitions"] == []


def test_missing_groups_and_groups_of_another_kind_are_not_described(broker):
    assert (code(described(broker, "")), code(described(broker))) == (24, 69)
    join(broker)
    (classic,) = broker.call(15, 6, groups=["g"])["groups"]
    assert (code(classic), classic["error_message"]) == (69, "Group g is not a classic group.")
    (older,) = broker.call(15, 5, groups=["g"])["groups"]
    assert (code(older), older["group_state"]) == (0, "Dead")
    (streams,) = broker.call(89, 0, group_ids=["g"])["groups"]
    assert streams["error_message"] == "Group g is not a streams group."


def test_groups_are_listed_by_state_and_type(broker):
    join(broker)
    join(broker, "a", group="h")
    join(broker, "b", group="h")
    both_groups = [("g", "Stable", "consumer", "consumer"), ("h", "Reconciling", "consumer", "consumer")]
    assert listed(broker) == listed(broker, types_filter=["Consumer"]) == both_groups
    assert listed(broker, states_filter=["reconciling"]) == both_groups[1:]
    assert listed(broker, types_filter=["classic"]) == []


def test_an_empty_group_is_deleted_with_its_offsets(broker):
    join(broker)
    commit(broker, 2)
    assert delete(broker) == 68
    beat(broker, -1)
    assert described(broker)["group_state"] == "Empty"
    since = len(types(broker))
    assert (delete(broker), delete(broker)) == (0, 69)
    assert types(broker, since) == [(1, True), (6, True), (4, True), (3, True)]
    broker.restart()
    assert listed(broker) == []


def test_offsets_of_topics_that_members_subscribe_to_are_not_deleted(broker):
    join(broker)
    commit(broker, -1, "")
    assert {topic: forget(broker, topic) for topic in ("in", "other")} == {"in": 86, "other": 0}


def leave(broker, *members, version=5):
    named = [{"member_id": member_id, "group_instance_id": instance_id} for member_id, instance_id in members]
    answer = broker.call(LEAVE[0], version, group_id="g", members=named)
    return [each["error_code"].value for each in answer["members"]]


def test_an_administrator_removes_members_at_once(broker):
    join(broker, instance_id="i")
    join(broker, "n")
    join(broker, "k")
    epoch = described(broker)["group_epoch"]
    assert leave(broker, ("x", None), ("", "unknown"), ("n", "i"), ("", "i"), ("n", None)) == [25, 25, 82, 0, 0]
    after = described(broker)
    assert ([each["member_id"] for each in after["members"]], after["group_epoch"]) == (["k"], epoch + 1)
    assert broker.call(LEAVE[0], 2, group_id="g", member_id="k")["error_code"].value == 0
    assert described(broker)["group_state"] == "Empty"


def test_a_simple_group_becomes_a_consumer_group_and_keeps_its_offsets(broker):
    assert commit(broker, -1, "") == [0]
    assert join(broker)["member_epoch"] == 2
    assert types(broker)[1:3] == [(2, True), (5, False)]
    broker.restart()
    assert listed(broker) == [("g", "Stable", "consumer", "consumer")]
    assert fetch(broker) == (0, [5])


def test_a_classic_group_takes_the_id_of_an_empty_consumer_group_and_gives_it_back(broker):
    join(broker)
    commit(broker, 2)
    assert classic_join(broker) == 79
    beat(broker, -1)
    since = len(types(broker))
    # The id of a member that has not joined yet does not keep the group.
    assert classic_join(broker) == 79
    assert types(broker, since) == [(6, True), (4, True), (3, True), (2, False)]
    assert [each[2] for each in listed(broker)] == ["classic"]
    assert (code(beat(broker, 2)), code(join(broker))) == (69, 0)
    assert fetch(broker) == (0, [5])
    broker.timers.advance(20_000)
    assert listed(broker) == [("g", "Stable", "consumer", "consumer")]


def classic_join(broker):
    fields = {"session_timeout": 10_000, "rebalance_timeout": 10_000, "protocol_type": "consumer"}

    async def join_group():
        return code(broker.call(11, 5, group_id="g", protocols=[{"name": "range", "metadata": b""}], **fields))

    return asyncio.run(join_group())


def test_a_silent_member_is_fenced_also_after_a_restart(broker):
    join(broker)
    broker.timers.advance(30_000)
    broker.restart()
    broker.timers.advance(44_000)
    assert described(broker)["group_state"] == "Stable"
    broker.timers.advance(2_000)
    assert described(broker)["group_state"] == "Empty"
    assert code(beat(broker, 2)) == 25


@pytest.mark.parametrize("is_restarted", [False, True])
def test_a_member_that_keeps_partitions_too_long_is_fenced(broker, is_restarted):
    join(broker)
    join(broker, "n")
    all_partitions = {"topic_partitions": owned(broker, 0, 1)}
    beat(broker, 2, **all_partitions)
    if is_restarted:
        broker.restart()
    for _ in range(3):
        assert code(beat(broker, 2, **all_partitions)) == 0
        broker.timers.advance(21_000)
        beat(broker, 3, "n")
    assert code(beat(broker, 2, **all_partitions)) == 25
    assert [each["member_id"] for each in described(broker)["members"]] == ["n"]


def test_targets_are_computed_after_the_assignment_interval(tmp_path):
    broker = DispatchedBroker(tmp_path / "log")
    broker.create("in", 2)
    join(broker)
    assert join(broker, "n")["member_epoch"] == 2
    assert described(broker)["group_state"] == "Assigning"
    broker.timers.advance(1_000)
    assert beat(broker, 2, "n")["member_epoch"] == 3
    broker.close()


def test_new_partitions_and_new_topics_reach_the_members(broker):
    join(broker, subscribed_topic_names=["in", "later"])
    broker.call(37, 3, topics=[{"name": "in", "count": 3}], timeout=1_000)
    grown = beat(broker, 2)
    assert (grown["member_epoch"], partitions(grown)) == (3, [[0, 1, 2]])
    broker.create("later", 1)
    assert sorted(partitions(beat(broker, 3))) == [[0], [0, 1, 2]]
    broker.call(20, 6, topics=[{"name": "later"}], timeout=1_000)
    assert partitions(beat(broker, 4)) == [[0, 1, 2]]


def test_a_refused_write_changes_nothing(broker):
    join(broker)
    log = broker.broker.group_log.log_for("g")
    before = described(broker)
    real_append, log.append_records = log.append_records, refuse
    assert [code(join(broker, "n")), code(beat(broker, -1)), leave_code(broker)] == [15, 15, 15]
    log.append_records = real_append
    assert described(broker) == before


def leave_code(broker):
    return code(broker.call(*LEAVE, group_id="g", members=[{"member_id": "m"}]))


@pytest.mark.parametrize(
    "settings", [{"group_coordinator_rebalance_protocols": "classic,streams"}, {}], ids=["protocol", "feature"]
)
def test_consumer_groups_can_be_off(tmp_path, settings):
    broker = DispatchedBroker(tmp_path / "log", **settings)
    if not settings:
        broker.broker.set_features({"group.version": 0})
    assert [code(join(broker)), code(described(broker))] == [35, 35]
    broker.close()


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("session.timeout.ms", "70000", 40),
        ("session.timeout.ms", "44999", 40),
        ("heartbeat.interval.ms", "100", 40),
        ("assignment.interval.ms", "20000", 40),
        ("assignment.interval.ms", "-1", 40),
        ("assignor.offload.enable", "true", 40),
        ("session.timeout.ms", "50000", 0),
        ("heartbeat.interval.ms", "6000", 0),
        ("assignment.interval.ms", "0", 0),
    ],
)
def test_configurations_of_groups_have_bounds(broker, name, value, expected):
    assert alter(broker, f"consumer.{name}", value) == expected


def test_a_groups_own_configuration_is_in_force_and_described(broker):
    for name, value in (("heartbeat.interval.ms", "6000"), ("session.timeout.ms", "50000")):
        assert alter(broker, f"consumer.{name}", value) == 0
    assert join(broker)["heartbeat_interval"] == timedelta(seconds=6)
    broker.timers.advance(49_000)
    assert described(broker)["group_state"] == "Stable"
    broker.timers.advance(1_000)
    assert described(broker)["group_state"] == "Empty"
    resource = {"resource_type": 32, "resource_name": "g", "configuration_keys": None}
    (answer,) = broker.call(32, 4, resources=[resource])["results"]
    values = {each["name"]: each["value"] for each in answer["configs"]}
    assert {name: values[f"consumer.{name}.ms"] for name in ("session.timeout", "assignment.interval")} == {
        "session.timeout": "50000",
        "assignment.interval": "0",
    }


def test_rebalances_are_counted(broker):
    join(broker)
    beat(broker, 2)
    join(broker, "n")
    assert broker.broker.metrics.group_rebalances[GroupKind.CONSUMER] == 2


def test_a_member_id_that_no_record_can_have_is_an_error_and_changes_nothing(broker):
    join(broker)
    before = described(broker)
    assert code(join(broker, "m" * 40_000)) == -1
    assert described(broker) == before


def subscribe(broker, expression, member="m", **fields):
    return join(broker, member, subscribed_topic_names=None, subscribed_topic_regex=expression, **fields)


def test_an_expression_is_resolved_after_the_heartbeat_and_again_when_topics_come(broker):
    first = subscribe(broker, "i.*")
    assert (code(first), partitions(first)) == (0, [])
    second = beat(broker, first["member_epoch"])
    assert (second["member_epoch"], partitions(second)) == (first["member_epoch"] + 1, [[0, 1]])
    epoch = second["member_epoch"]
    broker.create("inner", 1)
    broker.create("outer", 1)
    broker.timers.advance(10_000)
    assert partitions(beat(broker, epoch)) is None
    broker.timers.advance(1)
    # This heartbeat starts the resolution, the next one has its outcome.
    assert [partitions(beat(broker, epoch)), sorted(partitions(beat(broker, epoch)))] == [None, [[0], [0, 1]]]
    assert described(broker)["members"][0]["subscribed_topic_regex"] == "i.*"


def test_an_expression_is_resolved_again_when_its_resolution_is_too_old(broker):
    epoch = subscribe(broker, "in")["member_epoch"] + 1
    beat(broker, epoch - 1)
    since = len(types(broker))
    for _ in range(15):
        broker.timers.advance(40_000)
        beat(broker, epoch)
    assert types(broker, since) == []
    broker.timers.advance(1)
    beat(broker, epoch)
    assert types(broker, since) == [(16, False)]


def test_an_expression_that_does_not_compile_is_refused(broker):
    answer = subscribe(broker, "in(")
    assert (code(answer), listed(broker)) == (128, [])
    assert answer["error_message"].startswith("SubscribedTopicRegex `in(` is not a valid regular expression: missing )")
    assert code(subscribe(broker, "(?=in)")) == 128
    unmatched = subscribe(broker, "unmatched")
    assert partitions(unmatched) == []
    assert partitions(beat(broker, unmatched["member_epoch"])) in (None, [])


def test_expressions_of_a_group_are_resolved_together(broker):
    subscribe(broker, "in")
    subscribe(broker, "other", "n")
    epoch = described(broker)["group_epoch"]
    assert [each for each in types(broker) if each[0] == 16] == [(16, False)]
    broker.timers.advance(10_001)
    since = len(types(broker))
    assert code(beat(broker, 1)) == 0
    resolved = [(16, False), (16, False), (3, False)]
    assert types(broker, since)[-len(resolved) :] == resolved
    assert described(broker)["group_epoch"] == epoch + 1


def test_an_expression_matches_topics_that_its_member_may_describe(tmp_path):
    authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    settings = {"authorizer_class_name": authorizer, "super_users": "User:ANONYMOUS"}
    broker = DispatchedBroker(tmp_path / "log", **settings, **AT_ONCE)
    for name in ("in", "inner", "hidden"):
        broker.create(name, 1)
    rights = [(ResourceType.GROUP, "g", Operation.READ), (ResourceType.TOPIC, "in", Operation.DESCRIBE)]
    broker.broker.acls.add([entry("User:alice", "*", kind, name, 3, operation, 3) for kind, name, operation in rights])

    def beat_as_alice(epoch, **fields):
        body = {"group_id": "g", "member_id": "m", "member_epoch": epoch}
        return broker.call_as("User:alice", *HEARTBEAT, UNCHANGED | body | fields)

    joined = beat_as_alice(0, rebalance_timeout=60_000, subscribed_topic_regex=".*", topic_partitions=[])
    assert partitions(joined) == []
    (topic,) = beat_as_alice(joined["member_epoch"])["assignment"]["topic_partitions"]
    assert topic["topic_id"] == owned(broker, 0)[0]["topic_id"]
    broker.close()


def test_a_deleted_group_ends_the_resolution_of_its_expressions(broker):
    groups = broker.broker.consumer_groups
    groups.heartbeat(
        Heartbeat("g", "m", 0, rebalance_timeout_ms=1, subscribed_topic_regex="in", owned=frozenset()), version=1
    )
    groups.heartbeat(Heartbeat("g", "m", -1), version=1)
    assert groups.delete("g").value == 0
    broker.timers.advance(0)
    assert (listed(broker), types(broker)[-1]) == ([], (3, True))


def test_a_restart_resolves_expressions_again_and_rebalances_nothing(broker):
    epoch = subscribe(broker, "in")["member_epoch"] + 1
    beat(broker, epoch - 1)
    broker.restart()
    broker.timers.advance(10_001)
    since = len(types(broker))
    assert partitions(beat(broker, epoch)) is None
    assert types(broker, since) == [(16, False)]


def test_without_re2_an_expression_is_refused_with_what_is_missing(broker, monkeypatch):
    monkeypatch.setattr("sharelens.broker.coordinators.topic_expressions.has_re2", lambda: False)
    answer = subscribe(broker, "in")
    assert (code(answer), "sharelens[regex]" in answer["error_message"]) == (128, True)
    assert code(join(broker)) == 0
