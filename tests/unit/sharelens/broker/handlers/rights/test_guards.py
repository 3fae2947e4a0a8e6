"""Requests through a whole broker with an authorizer: what the recorded answers of Kafka do not show."""

import asyncio
import inspect
from base64 import standard_b64decode

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode

from sharelens.broker.broker import Broker, Options
from sharelens.broker.config.settings import Settings
from sharelens.broker.errors import FrameError
from sharelens.broker.protocol.dispatch import Dispatcher
from sharelens.broker.protocol.registry import ANONYMOUS
from sharelens.broker.timers import LoopTimers
from sharelens.kafka_formats.messages.reader import read
from sharelens.kafka_formats.messages.writer import write
from tests.broker_parts.acl_answers import entry
from tests.broker_parts.broker_messages import plain
from tests.broker_parts.dispatched_broker import DispatchedBroker

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
ALICE = "User:alice"
TOPIC, GROUP, CLUSTER = 2, 3, 4
READ, WRITE, CREATE, DESCRIBE = 3, 4, 5, 8
TOPIC_REFUSED, GROUP_REFUSED = ErrorCode.topic_authorization_failed, ErrorCode.group_authorization_failed
BATCH = standard_b64decode(
    "AAAAAAAAAAAAAAA6/////wJxamGJAAAAAAAAAAAAAAAAA+gAAAAAAAAD6P//////////////////AAAAARAAAAACawJ2AA=="
)
"""One record."""
SETTINGS = {
    "authorizer_class_name": STANDARD,
    "super_users": f"User:nobody; {ANONYMOUS}",
    "group_streams_initial_rebalance_delay_ms": 0,
    "group_streams_assignment_interval_ms": 0,
}


@pytest.fixture
def broker(tmp_path):
    broker = DispatchedBroker(tmp_path / "log", **SETTINGS)
    broker.create("in", 1)
    broker.create("other", 1)
    yield broker
    broker.close()


def allow(broker, resource_type, name, *operations):
    broker.broker.acls.add([entry(ALICE, "*", resource_type, name, 3, operation, 3) for operation in operations])


def deny(broker, resource_type, name, operation):
    broker.broker.acls.add([entry(ALICE, "*", resource_type, name, 3, operation, 2)])


# Topics


@pytest.mark.slow
def test_the_oldest_metadata_hides_topics_and_a_request_for_hidden_ones_is_none_for_all(broker):
    allow(broker, TOPIC, "in", DESCRIBE)
    shown = broker.call_as(ALICE, 3, 0, {"topics": []})["topics"]
    assert [topic["name"] for topic in shown] == ["in"]
    (hidden,) = broker.call_as(ALICE, 3, 0, {"topics": [{"name": "other"}]})["topics"]
    assert (hidden["name"], hidden["error_code"]) == ("other", TOPIC_REFUSED)


@pytest.mark.parametrize("name", ["", "in"])
def test_a_right_to_a_name_is_none_to_the_topic_of_the_id_beside_it(broker, name):
    allow(broker, TOPIC, "in", DESCRIBE)
    hidden_id = broker.broker.catalog.by_name("other").topic_id
    (hidden,) = broker.call_as(ALICE, 3, 12, {"topics": [{"name": name, "topic_id": hidden_id}]})["topics"]
    assert (hidden["name"], hidden["error_code"], hidden["partitions"]) == (None, TOPIC_REFUSED, [])
    shown_id = broker.broker.catalog.by_name("in").topic_id
    (shown,) = broker.call_as(ALICE, 3, 12, {"topics": [{"name": "other", "topic_id": shown_id}]})["topics"]
    assert (shown["name"], shown["error_code"]) == ("in", ErrorCode.none)


def test_a_deletion_by_name_and_id_is_refused_for_its_form(broker):
    shown_id = broker.broker.catalog.by_name("in").topic_id
    (refused,) = broker.call_as(ALICE, 20, 6, {"topics": [{"name": "other", "topic_id": shown_id}]})["responses"]
    assert (refused["name"], refused["error_code"]) == ("other", ErrorCode.invalid_request)


@pytest.mark.parametrize("version", [9, 10])
def test_offsets_of_all_topics_are_those_of_topics_that_the_client_may_describe(broker, version):
    partitions = [{"partition_index": 0, "committed_offset": 1}]
    topics = [{"name": name, "partitions": partitions} for name in ("in", "other")]
    broker.call(8, 8, group_id="g", generation_id_or_member_epoch=-1, member_id="", topics=topics)
    allow(broker, GROUP, "g", DESCRIBE)
    allow(broker, TOPIC, "in", DESCRIBE)
    (group,) = broker.call_as(ALICE, 9, version, {"groups": [{"group_id": "g", "topics": None}]})["groups"]
    (topic,) = group["topics"]
    assert "name" not in topic or topic["name"] == "in"
    assert topic["partitions"][0]["committed_offset"] == 1


def test_topics_of_a_page_are_those_that_the_client_may_describe(broker):
    for name in ("a", "b", "c"):
        broker.create(name, 1)
    for name in ("a", "c"):
        allow(broker, TOPIC, name, DESCRIBE)
    first = broker.call_as(ALICE, 75, 0, {"topics": [], "response_partition_limit": 1})
    assert [topic["name"] for topic in first["topics"]] == ["a"]
    cursor = first["next_cursor"]
    rest = broker.call_as(ALICE, 75, 0, {"topics": [], "response_partition_limit": 9, "cursor": cursor})
    assert [topic["name"] for topic in rest["topics"]] == ["c"]
    named = [{"name": "b"}, {"name": "c"}]
    later = broker.call_as(ALICE, 75, 0, {"topics": named, "response_partition_limit": 9, "cursor": cursor})
    assert [topic["name"] for topic in later["topics"]] == ["c"]


@pytest.mark.parametrize("names", [("in",), ("other", "in")])
def test_a_write_without_acknowledgement_that_is_refused_closes_the_connection(broker, names):
    allow(broker, TOPIC, "other", WRITE)
    topics = [{"name": name, "partition_data": [{"index": 0, "records": BATCH}]} for name in names]
    with pytest.raises(FrameError, match="lack of a right"):
        broker.call_as(ALICE, 0, 9, {"acks": 0, "topic_data": topics})
    log = broker.broker.logs.get("other", 0)
    assert log.high_watermark == len(names) - 1


@pytest.mark.parametrize("operations", [(), (9,)])
def test_replicas_need_a_right_to_the_cluster(broker, operations):
    allow(broker, TOPIC, "in", READ)
    allow(broker, CLUSTER, "kafka-cluster", *operations)
    request = {"replica_id": 2, "topics": [{"topic": "in", "partitions": [{"partition": 0}]}]}
    (topic,) = broker.call_as(ALICE, 1, 12, request)["responses"]
    assert topic["partitions"][0]["error_code"] == (ErrorCode.none if operations else TOPIC_REFUSED)


@pytest.mark.parametrize("version", [1, 6])
def test_a_topic_is_deleted_with_the_right_to_it(broker, version):
    allow(broker, TOPIC, "in", 6)
    names = ["in", "other"]
    request = {"topic_names": names} if version < 6 else {"topics": [{"name": name} for name in names]}
    answers = broker.call_as(ALICE, 20, version, request)["responses"]
    assert {topic["name"]: topic["error_code"] for topic in answers} == {"in": ErrorCode.none, "other": TOPIC_REFUSED}
    assert list(broker.broker.catalog.topics) == ["other"]


@pytest.mark.slow
def test_a_fetch_of_shown_and_hidden_topics_waits_for_the_shown_ones(tmp_path):
    fields = {
        "max_wait": 50,
        "min_bytes": 1,
        "max_bytes": 1000,
        "replica_id": -1,
        "topics": [
            {"topic": name, "partitions": [{"partition": 0, "current_leader_epoch": -1, "partition_max_bytes": 10}]}
            for name in ("in", "other")
        ],
    }

    async def fetched():
        texts = {name.replace("_", "."): str(value) for name, value in SETTINGS.items()}
        broker = Broker(
            Settings(texts), LoopTimers(asyncio.get_running_loop()), Options(log_dir=tmp_path, listeners=[])
        )
        await broker.start()
        for name in ("in", "other"):
            broker.catalog.create(name, 1)
        broker.acls.add([entry(ALICE, "*", TOPIC, "in", 3, READ, 3)])
        schema = load_request_schema(1, 12)
        header = {"request_api_key": 1, "request_api_version": 12, "correlation_id": 5, "client_id": "c"}
        frame = write(schema.__header_schema__, header) + write(schema, fields)
        outcome = Dispatcher(broker, broker.apis).dispatch(frame, Alice(), "/127.0.0.1")
        assert inspect.isawaitable(outcome)
        raw = b"".join(map(bytes, await outcome))
        await broker.stop()
        return raw

    raw = asyncio.run(fetched())
    response = load_response_schema(1, 12)
    _, at = read(response.__header_schema__, raw, 4)
    answer = plain(read(response, raw, at)[0])
    codes = {topic["topic"]: topic["partitions"][0]["error_code"] for topic in answer["responses"]}
    assert codes == {"in": ErrorCode.none, "other": TOPIC_REFUSED}


class Alice:
    id = 1
    principal = ALICE
    listener = "PLAINTEXT"

    def on_close(self, callback):
        """It stays open."""


# Groups


@pytest.mark.slow
def test_each_group_of_a_request_for_offsets_has_its_own_refusals(broker):
    offset = {"partition_index": 0, "committed_offset": 7, "committed_metadata": ""}
    topics = [{"name": name, "partitions": [offset]} for name in ("in", "other")]
    for group in ("g", "hidden"):
        broker.call(8, 8, group_id=group, generation_id_or_member_epoch=-1, topics=topics)
    allow(broker, GROUP, "g", DESCRIBE)
    allow(broker, TOPIC, "in", DESCRIBE)
    named = [{"name": name, "partition_indexes": [0]} for name in ("in", "other")]
    groups = [{"group_id": group, "topics": topics} for group in ("g", "hidden") for topics in (named, None)]
    answers = broker.call_as(ALICE, 9, 8, {"groups": groups})["groups"]

    def offsets(group):
        return {
            topic["name"]: (each["committed_offset"], each["error_code"])
            for topic in group["topics"]
            for each in topic["partitions"]
        }

    assert [group["error_code"] for group in answers] == [0, 0, GROUP_REFUSED, GROUP_REFUSED]
    assert offsets(answers[0]) == {"in": (7, 0), "other": (-1, TOPIC_REFUSED)}
    assert offsets(answers[1]) == {"in": (7, 0)}
    assert offsets(answers[2]) == offsets(answers[3]) == {}
    old = broker.call_as(ALICE, 9, 7, {"group_id": "g", "topics": None})
    assert offsets(old) == {"in": (7, 0)}
    oldest = broker.call_as(ALICE, 9, 1, {"group_id": "hidden", "topics": named})
    assert offsets(oldest) == {"in": (-1, GROUP_REFUSED), "other": (-1, GROUP_REFUSED)}


def member(epoch, **fields):
    return {"group_id": "g", "member_id": "m" * 22, "member_epoch": epoch, **fields}


def fetch_request(topic_id, epoch, acknowledged=()):
    batches = [{"first_offset": 0, "last_offset": 0, "acknowledge_types": [1]} for _ in acknowledged]
    partition = {"partition_index": 0, "acknowledgement_batches": batches}
    return {
        "group_id": "g",
        "member_id": "m" * 22,
        "share_session_epoch": epoch,
        "max_bytes": 1000,
        "max_records": 10,
        "batch_size": 10,
        "topics": [{"topic_id": topic_id, "partitions": [partition]}] if epoch == 0 or acknowledged else [],
    }


def test_a_share_session_loses_a_topic_with_the_right_to_it(broker):
    allow(broker, GROUP, "g", READ)
    allow(broker, TOPIC, "in", READ)
    topic_id = broker.broker.catalog.by_name("in").topic_id
    joined = broker.call_as(ALICE, 76, 1, member(0, subscribed_topic_names=["in"]))
    assert joined["error_code"] == 0
    broker.timers.advance(2_000)
    broker.call_as(ALICE, 76, 1, member(joined["member_epoch"]))
    opened = broker.call_as(ALICE, 78, 1, fetch_request(topic_id, 0))
    assert [part["error_code"] for topic in opened["responses"] for part in topic["partitions"]] == [0]
    deny(broker, TOPIC, "in", READ)
    refused = broker.call_as(ALICE, 78, 1, fetch_request(topic_id, 1))
    assert [part["error_code"] for topic in refused["responses"] for part in topic["partitions"]] == [TOPIC_REFUSED]
    acknowledged = broker.call_as(ALICE, 79, 1, acknowledgement(topic_id, 2))
    (topic,) = acknowledged["responses"]
    assert [part["error_code"] for part in topic["partitions"]] == [TOPIC_REFUSED]


def acknowledgement(topic_id, epoch):
    request = fetch_request(topic_id, epoch, acknowledged=[0])
    return {name: request[name] for name in ("group_id", "member_id", "share_session_epoch", "topics")}


COUNTS = {"name": "g-counts-changelog", "replication_factor": -1, "topic_configs": []}
TOPOLOGY = {
    "epoch": 0,
    "subtopologies": [{"subtopology_id": "0", "source_topics": ["in"], "state_changelog_topics": [COUNTS]}],
}
TASKS = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}


def streams_heartbeat(broker):
    return broker.call_as(ALICE, 88, 0, member(0, topology=TOPOLOGY, rebalance_timeout=60_000, process_id="p", **TASKS))


def test_a_streams_member_creates_internal_topics_with_the_right_to_create_them(broker):
    allow(broker, GROUP, "g", READ)
    allow(broker, TOPIC, "in", DESCRIBE)
    assert streams_heartbeat(broker)["error_code"] == TOPIC_REFUSED
    allow(broker, TOPIC, COUNTS["name"], DESCRIBE)
    (status,) = streams_heartbeat(broker)["status"]
    assert status["status_detail"].endswith(f"; Unauthorized to CREATE on topics {COUNTS['name']}.")
    broker.timers.advance(1_000)
    assert COUNTS["name"] not in broker.broker.catalog.topics
    allow(broker, TOPIC, COUNTS["name"], CREATE)
    (status,) = streams_heartbeat(broker)["status"]
    assert "Unauthorized" not in status["status_detail"]
    broker.timers.advance(1_000)
    assert COUNTS["name"] in broker.broker.catalog.topics


# Without an authorizer


def test_without_an_authorizer_handlers_run_unguarded_and_acls_are_disabled(tmp_path):
    broker = DispatchedBroker(tmp_path / "log")
    try:
        assert broker.broker.acls is None
        filters = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
        described = broker.call_as(ALICE, 29, 3, filters)
        assert described["error_code"] == ErrorCode.security_disabled
        (deleted,) = broker.call_as(ALICE, 31, 3, {"filters": [filters]})["filter_results"]
        assert deleted["error_code"] == ErrorCode.security_disabled
        creation = {"resource_type": 2, "resource_name": "t", "resource_pattern_type": 3, "principal": ALICE}
        request = {"creations": [{**creation, "host": "*", "operation": 3, "permission_type": 3}]}
        (created,) = broker.call_as(ALICE, 30, 3, request)["results"]
        assert created["error_code"] == ErrorCode.security_disabled
    finally:
        broker.close()
