import uuid
from types import SimpleNamespace

import pytest
from kio.index import load_response_schema
from kio.schema.errors import ErrorCode

from sharelens.broker.handlers import groups, share_groups, share_state
from sharelens.broker.protocol.registry import RequestContext, registered
from sharelens.kafka_formats.messages.api_keys import ApiKey
from state_model.answers import ErrorCode as StateError
from state_model.rule_sets import KAFKA_4_3, KAFKA_4_4
from state_model.uuids import uuid_bytes
from tests.broker_parts.broker_messages import build
from tests.broker_parts.share_group_harness import ShareGroupHarness

MODULES = (groups, share_groups, share_state)
LOWEST = -(1 << 31)


class Server:
    """What handlers see of a broker, and a call of any API in any version, through the real response classes."""

    def __init__(self, rules=KAFKA_4_3):
        self.harness = ShareGroupHarness(rules=rules)
        self.topic = self.harness.cluster.create("alpha", 2)
        self.share_version = 1
        self.catalog = self.harness.cluster
        self.share_groups = self.harness.groups
        self.share_offsets = self.harness.offsets
        self.share_coordinator = self.harness.state
        self.rules = rules
        self.classic_groups = Classic()
        self.epoch_groups = ()

    def call(self, api_key, version, **fields):
        context = RequestContext(
            api_key=api_key, api_version=version, client_id="c1", client_host="/127.0.0.1", connection=None
        )
        api = registered()[api_key]
        assert api.has(version)
        assert not api.has(api.last_version + 1)
        answer = api.handler(self, SimpleNamespace(**fields), context)
        self.harness.timers.advance(0)
        return build(load_response_schema(api_key, version), answer)

    def beat(self, epoch=0, topics=("alpha",), **fields):
        values = {"group_id": "g", "member_id": "m", "rack_id": None}
        return self.call(
            ApiKey.SHARE_GROUP_HEARTBEAT,
            1,
            **{**values, "member_epoch": epoch, "subscribed_topic_names": topics, **fields},
        )

    def settled(self):
        self.beat()
        self.harness.timers.advance(1_000)
        return self.beat(epoch=2, topics=None)

    @property
    def topic_uuid(self):
        return uuid.UUID(bytes=uuid_bytes(self.topic.topic_id))


class Classic:
    """One consumer group, in the shape of ClassicGroups."""

    def __iter__(self):
        yield SimpleNamespace(group_id="old", protocol_type="consumer", state=SimpleNamespace(value="Stable"))

    def delete(self, group_id):
        return ErrorCode.non_empty_group if group_id == "old" else ErrorCode.group_id_not_found


@pytest.fixture
def server():
    return Server()


def test_a_member_joins_gets_its_partitions_and_leaves(server):
    first = server.beat()
    assert (first.error_code, first.member_id, first.member_epoch) == (ErrorCode.none, "m", 2)
    assert first.heartbeat_interval.total_seconds() == 5
    assert first.assignment.topic_partitions == ()
    server.harness.timers.advance(1_000)
    second = server.beat(epoch=2, topics=None)
    (assigned,) = second.assignment.topic_partitions
    assert (assigned.topic_id, assigned.partitions) == (server.topic_uuid, (0, 1))
    assert server.beat(epoch=3, topics=None).assignment is None
    leave_answer = server.beat(epoch=-1, topics=None)
    assert (leave_answer.error_code, leave_answer.member_epoch) == (ErrorCode.none, -1)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"member_id": ""}, ErrorCode.invalid_request),
        ({"member_id": "m" * 37}, ErrorCode.invalid_request),
        ({"group_id": ""}, ErrorCode.invalid_request),
        ({"rack_id": ""}, ErrorCode.invalid_request),
        ({"epoch": -2}, ErrorCode.invalid_request),
        ({"topics": None}, ErrorCode.invalid_request),
        ({"topics": ()}, ErrorCode.invalid_request),
        ({"epoch": 5}, ErrorCode.group_id_not_found),
        ({"epoch": -1}, ErrorCode.group_id_not_found),
    ],
)
def test_a_heartbeat_that_cannot_be_meant_is_refused_with_a_reason(server, fields, code):
    answer = server.beat(**fields)
    assert answer.error_code is code
    assert answer.error_message
    assert answer.assignment is None
    assert server.harness.groups.get("g") is None


def test_without_the_feature_nothing_is_answered(server):
    server.share_version = 0
    assert server.beat().error_code is ErrorCode.unsupported_version
    described = server.call(ApiKey.SHARE_GROUP_DESCRIBE, 1, group_ids=["g"], include_authorized_operations=False)
    assert described.groups[0].error_code is ErrorCode.unsupported_version
    altered = server.call(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, group_id="g", topics=())
    assert altered.error_code is ErrorCode.unsupported_version


def test_a_group_is_described_with_its_members(server):
    server.settled()
    answer = server.call(
        ApiKey.SHARE_GROUP_DESCRIBE, 1, group_ids=["g", "nothing", ""], include_authorized_operations=True
    )
    actual, unknown, empty = answer.groups
    assert (actual.group_state, actual.group_epoch, actual.assignment_epoch, actual.assignor_name) == (
        "Stable",
        3,
        3,
        "simple",
    )
    (member,) = actual.members
    assert (member.member_id, member.member_epoch, member.client_id, member.client_host) == ("m", 3, "c1", "/127.0.0.1")
    assert member.assignment.topic_partitions[0].topic_name == "alpha"
    assert actual.authorized_operations > 0
    assert unknown.error_code is ErrorCode.group_id_not_found
    assert empty.error_code is ErrorCode.invalid_group_id
    plain = server.call(ApiKey.SHARE_GROUP_DESCRIBE, 1, group_ids=["g"], include_authorized_operations=False)
    assert plain.groups[0].authorized_operations == LOWEST


@pytest.mark.parametrize("version", [0, 1])
def test_offsets_are_described_altered_and_deleted(server, version):
    server.settled()
    server.beat(epoch=-1, topics=None)
    partition = SimpleNamespace(partition_index=1, start_offset=5)
    altered = server.call(
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        0,
        group_id="g",
        topics=[SimpleNamespace(topic_name="alpha", partitions=[partition])],
    )
    (topic,) = altered.responses
    assert (topic.topic_name, topic.topic_id, topic.partitions[0].error_code) == (
        "alpha",
        server.topic_uuid,
        ErrorCode.none,
    )
    requested = [
        SimpleNamespace(group_id="g", topics=None),
        SimpleNamespace(group_id="g", topics=[SimpleNamespace(topic_name="alpha", partitions=[1])]),
        SimpleNamespace(group_id="nothing", topics=None),
    ]
    described = server.call(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, version, groups=requested)
    all_topics, each, unknown = described.groups
    assert [actual.start_offset for actual in all_topics.topics[0].partitions] == [-1, 5]
    assert [actual.start_offset for actual in each.topics[0].partitions] == [5]
    assert unknown.error_code is ErrorCode.group_id_not_found
    deleted = server.call(
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
        0,
        group_id="g",
        topics=[SimpleNamespace(topic_name=name) for name in ("alpha", "beta")],
    )
    assert [actual.error_code for actual in deleted.responses] == [ErrorCode.none, ErrorCode.unknown_topic_or_partition]


def test_an_empty_group_id_is_refused(server):
    for api_key in (ApiKey.ALTER_SHARE_GROUP_OFFSETS, ApiKey.DELETE_SHARE_GROUP_OFFSETS):
        assert server.call(api_key, 0, group_id="", topics=()).error_code is ErrorCode.invalid_group_id


def test_offsets_of_a_group_with_members_are_refused(server):
    server.settled()
    for api_key in (ApiKey.ALTER_SHARE_GROUP_OFFSETS, ApiKey.DELETE_SHARE_GROUP_OFFSETS):
        assert server.call(api_key, 0, group_id="g", topics=()).error_code is ErrorCode.non_empty_group


@pytest.mark.parametrize("version", range(6))
def test_groups_of_all_kinds_are_listed(server, version):
    server.beat()
    filters = {}
    if version >= 4:
        filters["states_filter"] = ()
    if version >= 5:
        filters["types_filter"] = ()
    listed = server.call(ApiKey.LIST_GROUPS, version, **filters)
    assert [(group.group_id, group.protocol_type) for group in listed.groups] == [("g", "share"), ("old", "consumer")]


def test_groups_are_listed_by_state_and_kind_whatever_their_capitals(server):
    server.beat()
    server.beat(epoch=-1)

    def listed(states=(), types=()):
        answer = server.call(ApiKey.LIST_GROUPS, 5, states_filter=states, types_filter=types)
        return [group.group_id for group in answer.groups]

    assert listed(types=["Share"]) == ["g"]
    assert listed(types=["classic", "nothing"]) == ["old"]
    assert listed(states=["EMPTY"]) == ["g"]
    assert listed(states=["stable"], types=["share"]) == []


def test_groups_of_all_kinds_are_deleted_by_their_own_rules(server):
    server.beat()

    def deleted(*names):
        return [each.error_code for each in server.call(ApiKey.DELETE_GROUPS, 2, groups_names=names).results]

    assert deleted("g", "old", "nothing") == [
        ErrorCode.non_empty_group,
        ErrorCode.non_empty_group,
        ErrorCode.group_id_not_found,
    ]
    server.beat(epoch=-1)
    assert deleted("g") == [ErrorCode.none]


def state_request(server, *, partition=0, **fields):
    topic = SimpleNamespace(topic_id=server.topic_uuid, partitions=[SimpleNamespace(partition=partition, **fields)])
    return {"group_id": "g", "topics": [topic]}


def result(answer):
    return answer.results[0].partitions[0]


def test_the_state_of_a_share_partition_can_be_made_written_read_and_deleted(server):
    initialize_answer = server.call(
        ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0, **state_request(server, state_epoch=3, start_offset=10)
    )
    assert result(initialize_answer).error_code is ErrorCode.none
    batch = SimpleNamespace(first_offset=11, last_offset=12, delivery_state=2, delivery_count=1)
    written = server.call(
        ApiKey.WRITE_SHARE_GROUP_STATE,
        1,
        **state_request(
            server,
            state_epoch=3,
            leader_epoch=0,
            start_offset=10,
            delivery_complete_count=2,
            state_batches=[batch],
        ),
    )
    assert (written.results[0].topic_id, result(written).error_code) == (server.topic_uuid, ErrorCode.none)
    read = result(server.call(ApiKey.READ_SHARE_GROUP_STATE, 0, **state_request(server, leader_epoch=-1)))
    assert (read.state_epoch, read.start_offset, read.state_batches[0].last_offset) == (3, 10, 12)
    summary = result(server.call(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, 1, **state_request(server, leader_epoch=0)))
    assert (summary.start_offset, summary.delivery_complete_count) == (10, 2)
    oldest = server.call(
        ApiKey.WRITE_SHARE_GROUP_STATE,
        0,
        **state_request(server, state_epoch=2, leader_epoch=0, start_offset=10, state_batches=()),
    )
    assert result(oldest).error_code is ErrorCode.fenced_state_epoch
    assert result(oldest).error_message
    assert result(server.call(ApiKey.DELETE_SHARE_GROUP_STATE, 0, **state_request(server))).error_code is ErrorCode.none
    gone = result(server.call(ApiKey.READ_SHARE_GROUP_STATE, 0, **state_request(server, leader_epoch=0)))
    assert gone.error_code is ErrorCode.invalid_request


def test_state_without_a_group_is_an_empty_answer_and_without_a_topic_id_invalid(server):
    request = state_request(server, leader_epoch=0)
    assert server.call(ApiKey.READ_SHARE_GROUP_STATE, 0, **{**request, "group_id": ""}).results == ()
    request["topics"][0].topic_id = None
    answer = server.call(ApiKey.READ_SHARE_GROUP_STATE, 0, **request)
    assert result(answer).error_code is ErrorCode.invalid_request
    assert result(answer).error_message == "The topic id cannot be null."


WRITE = {"state_epoch": 0, "leader_epoch": 0, "start_offset": 0, "delivery_complete_count": 0, "state_batches": ()}


@pytest.mark.parametrize(
    ("rules", "api", "version", "fields", "code", "message"),
    [
        (KAFKA_4_4, "READ", 0, {"leader_epoch": -1}, 42, "The leader epoch cannot be a negative number."),
        (KAFKA_4_4, "WRITE", 1, WRITE | {"leader_epoch": -1}, 42, "The leader epoch cannot be a negative number."),
        (KAFKA_4_4, "WRITE", 1, WRITE | {"state_epoch": -1}, 42, "The state epoch cannot be a negative number."),
        (
            KAFKA_4_4,
            "INITIALIZE",
            0,
            {"state_epoch": -1, "start_offset": 0},
            42,
            "The state epoch cannot be a negative number.",
        ),
        (
            KAFKA_4_3,
            "READ",
            0,
            {"leader_epoch": -1, "partition": 1},
            42,
            "Read operation on uninitialized share partition not allowed.",
        ),
        (
            KAFKA_4_3,
            "WRITE",
            1,
            WRITE | {"partition": 1},
            42,
            "Write operation on uninitialized share partition not allowed.",
        ),
        (KAFKA_4_3, "DELETE", 0, {"partition": -1}, 42, "The partition id cannot be a negative number."),
        (KAFKA_4_3, "READ", 0, {"leader_epoch": 3}, 74, "The leader epoch in the request is older than"),
        (KAFKA_4_3, "WRITE", 1, WRITE | {"state_epoch": 2, "leader_epoch": 5}, 124, "the share-group state epoch did"),
        (KAFKA_4_3, "DELETE", 0, {"partition": 9}, 3, "This server does not host this topic-partition."),
    ],
)
def test_an_error_of_the_share_coordinator_says_what_kafka_says(rules, api, version, fields, code, message):
    server = Server(rules)
    server.call(ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0, **state_request(server, state_epoch=3, start_offset=10))
    server.call(ApiKey.READ_SHARE_GROUP_STATE, 0, **state_request(server, leader_epoch=5))
    refused = result(
        server.call(ApiKey[f"{api}_SHARE_GROUP_STATE"], version, **state_request(server, **fields)),
    )
    assert refused.error_code == code
    assert message in refused.error_message


def test_a_share_coordinator_that_does_not_work_says_what_could_not_be_done(server):
    server.share_coordinator = SimpleNamespace(delete=lambda key: StateError.COORDINATOR_NOT_AVAILABLE)
    refused = result(server.call(ApiKey.DELETE_SHARE_GROUP_STATE, 0, **state_request(server)))
    assert refused.error_message == "Unable to delete share group state: The coordinator is not available."
