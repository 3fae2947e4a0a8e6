"""The requests of classic groups, committed offsets and transactions, in every version that is answered."""

import asyncio
import inspect
import uuid
from dataclasses import fields, is_dataclass
from datetime import timedelta
from types import SimpleNamespace
from typing import get_args, get_type_hints

import pytest
from kio.index import load_request_schema, load_response_schema

from sharelens.broker.handlers import classic_groups, group_offsets, transactions
from sharelens.broker.protocol.registry import RequestContext, registered
from sharelens.kafka_formats.messages.api_keys import ApiKey
from state_model.group_schemas import GroupKind
from state_model.uuids import uuid_bytes
from tests.broker_parts.broker_messages import build
from tests.broker_parts.broker_transactions import USER_TOPIC, Coordinators

MODULES = (classic_groups, group_offsets, transactions)


def versions(api_key):
    api = registered()[api_key]
    return range(api.first_version, api.last_version + 1)


def every_version(api_key):
    return pytest.mark.parametrize("version", versions(api_key))


def request_of(schema, options):
    """A request of a class of kio from nested dicts; what its version lacks is left out."""
    hints = get_type_hints(schema)
    values = {}
    for field in fields(schema):
        if field.name in options:
            values[field.name] = _converted(hints[field.name], options[field.name])
    return schema(**values)


def _converted(hint, values):
    nested = next((each for each in _parts(hint) if is_dataclass(each)), None)
    if isinstance(values, list):
        return tuple(request_of(nested, each) if nested else each for each in values)
    return values


def _parts(hint):
    yield hint
    for part in get_args(hint):
        yield from _parts(part)


class Server:
    """What handlers see of a broker; `call` goes through the real classes of requests and responses."""

    def __init__(self, folder):
        self.coordinators = Coordinators(folder)
        self.epoch_groups = self.coordinators.epoch_groups
        self.consumer_groups, _ = self.epoch_groups
        self.timers = self.coordinators.timers
        self.logs = self.catalog = self.coordinators.cluster
        self.group_log = self.coordinators.group_log
        self.classic_groups = self.coordinators.groups
        self.offset_commits = self.coordinators.commits
        self.transactions = self.coordinators.transactions
        self.topic_id = uuid.UUID(bytes=uuid_bytes(self.catalog.by_name(USER_TOPIC).topic_id))

    def ask(self, api_key, version, **values):
        """The answer, or what waits for it."""
        context = RequestContext(
            api_key=api_key, api_version=version, client_id="client", client_host="/127.0.0.1", connection=None
        )
        request = request_of(load_request_schema(api_key, version), values)
        outcome = registered()[api_key].handler(self, request, context)
        schema = load_response_schema(api_key, version)
        if not inspect.isawaitable(outcome):
            return build(schema, outcome)

        async def later():
            return build(schema, await outcome)

        return later()

    def call(self, api_key, version, *, wait_ms=0, **values):
        """The answer, after some time of the broker's where it waits."""

        async def answered():
            outcome = self.ask(api_key, version, **values)
            self.timers.advance(wait_ms)
            return await outcome if inspect.isawaitable(outcome) else outcome

        return asyncio.run(answered())

    def join(self, version=0, member_id=""):
        return self.call(
            ApiKey.JOIN_GROUP,
            version,
            wait_ms=3_000,
            group_id="g",
            session_timeout=timedelta(seconds=10),
            rebalance_timeout=timedelta(seconds=30),
            member_id=member_id,
            group_instance_id=None,
            protocol_type="consumer",
            protocols=[{"name": "range", "metadata": b"topics"}],
            reason=None,
        )

    def sync(self, member_id, version=0):
        return self.call(
            ApiKey.SYNC_GROUP,
            version,
            group_id="g",
            generation_id=1,
            member_id=member_id,
            group_instance_id=None,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[{"member_id": member_id, "assignment": b"all"}],
        )

    def member(self):
        """A member of a stable group."""
        member_id = self.join().member_id
        self.sync(member_id)
        return member_id

    def commit(self, version, partition=0, **changes):
        partitions = [
            {
                "partition_index": partition,
                "committed_offset": 7,
                "committed_leader_epoch": 3,
                "committed_metadata": "seven",
            }
        ]
        values = {
            "group_id": "g",
            "generation_id_or_member_epoch": -1,
            "member_id": "",
            "group_instance_id": None,
            "retention_time": timedelta(milliseconds=-1),
            "topics": [{"name": USER_TOPIC, "topic_id": self.topic_id, "partitions": partitions}],
        }
        return self.call(ApiKey.OFFSET_COMMIT, version, **{**values, **changes})


@pytest.fixture
def server(tmp_path):
    new_server = Server(tmp_path)
    yield new_server
    new_server.catalog.close()


@every_version(ApiKey.JOIN_GROUP)
def test_a_member_joins(server, version):
    answer = server.join(version)
    if version >= 4:
        assert answer.error_code.name == "member_id_required"
        answer = server.join(version, answer.member_id)
    assert (answer.error_code.name, answer.generation_id, answer.protocol_name) == ("none", 1, "range")
    assert answer.leader == answer.member_id
    assert [(member.member_id, member.metadata) for member in answer.members] == [(answer.member_id, b"topics")]


@every_version(ApiKey.JOIN_GROUP)
def test_a_stranger_is_refused(server, version):
    answer = server.join(version, "made up")
    assert (answer.error_code.name, answer.member_id) == ("unknown_member_id", "made up")
    assert answer.protocol_name == (None if version >= 7 else "")


@every_version(ApiKey.SYNC_GROUP)
def test_a_member_gets_its_assignment(server, version):
    answer = server.sync(server.join().member_id, version)
    assert (answer.error_code.name, answer.assignment) == ("none", b"all")
    if version >= 5:
        assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")


@every_version(ApiKey.HEARTBEAT)
def test_a_member_says_that_it_lives(server, version):
    member_id = server.member()
    requested = {"group_id": "g", "generation_id": 1, "group_instance_id": None}
    assert server.call(ApiKey.HEARTBEAT, version, member_id=member_id, **requested).error_code.name == "none"
    assert server.call(ApiKey.HEARTBEAT, version, member_id="x", **requested).error_code.name == "unknown_member_id"


@every_version(ApiKey.LEAVE_GROUP)
def test_a_member_leaves(server, version):
    member_id = server.member()
    members = [{"member_id": each, "group_instance_id": None, "reason": "done"} for each in (member_id, "x")]
    answer = server.call(ApiKey.LEAVE_GROUP, version, group_id="g", member_id=member_id, members=members)
    assert answer.error_code.name == "none"
    if version >= 3:
        assert [member.error_code.name for member in answer.members] == ["none", "unknown_member_id"]
    assert server.classic_groups.get("g").state.value == "Empty"


@every_version(ApiKey.DESCRIBE_GROUPS)
def test_groups_are_described(server, version):
    member_id = server.member()
    answer = server.call(ApiKey.DESCRIBE_GROUPS, version, groups=["g", "none"], include_authorized_operations=False)
    stable_group, gone = answer.groups
    assert (stable_group.group_state, stable_group.protocol_type, stable_group.protocol_data) == (
        "Stable",
        "consumer",
        "range",
    )
    assert [
        (each.member_id, each.client_host, each.member_metadata, each.member_assignment)
        for each in stable_group.members
    ] == [(member_id, "/127.0.0.1", b"topics", b"all")]
    assert gone.group_state == "Dead"
    assert gone.error_code.name == ("group_id_not_found" if version >= 6 else "none")


@every_version(ApiKey.OFFSET_COMMIT)
def test_offsets_are_committed(server, version):
    answer = server.commit(version)
    assert [each.error_code.name for topic in answer.topics for each in topic.partitions] == ["none"]
    (committed,) = server.classic_groups.offsets.of_group("g").values()
    assert (committed.offset, committed.metadata) == (7, "seven")
    assert committed.leader_epoch == (3 if version >= 6 else -1)


@every_version(ApiKey.OFFSET_COMMIT)
def test_offsets_of_what_does_not_exist_are_refused(server, version):
    unknown = [{"name": "none", "topic_id": uuid.uuid4(), "partitions": []}]
    unknown[0]["partitions"] = [
        {"partition_index": 0, "committed_offset": 1, "committed_leader_epoch": -1, "committed_metadata": None}
    ]
    (topic,) = server.commit(version, topics=unknown).topics
    assert topic.partitions[0].error_code.name == (
        "unknown_topic_id" if version >= 10 else "unknown_topic_or_partition"
    )
    (topic,) = server.commit(version, partition=99).topics
    assert topic.partitions[0].error_code.name == "unknown_topic_or_partition"


def fetch(server, version, topics, group_id="g", require_stable=False):
    group = {"group_id": group_id, "member_id": None, "member_epoch": -1, "topics": topics}
    return server.call(ApiKey.OFFSET_FETCH, version, **group, groups=[group], require_stable=require_stable)


def fetched(answer, version):
    group = answer.groups[0] if version >= 8 else answer
    return {(each.partition_index, each.committed_offset, each.metadata, each.error_code.name)
            for topic in group.topics for each in topic.partitions}  # fmt: skip


@every_version(ApiKey.OFFSET_FETCH)
def test_offsets_are_fetched(server, version):
    server.commit(9)
    requested = [{"name": USER_TOPIC, "topic_id": server.topic_id, "partition_indexes": [0, 1]}]
    there, missing = (0, 7, "seven", "none"), (1, -1, "", "none")
    assert fetched(fetch(server, version, requested), version) == {there, missing}
    if version >= 2:
        assert fetched(fetch(server, version, None), version) == {there}


@pytest.mark.parametrize("version", [7, 8, 9, 10])
def test_an_open_transaction_makes_offsets_unstable(server, version):
    producer = server.transactions.init_producer_id("tx", 60_000)
    identity = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}
    transaction_fields = {"transactional_id": "tx", "group_id": "g", **identity}
    assert server.call(ApiKey.ADD_OFFSETS_TO_TXN, 3, **transaction_fields).error_code.name == "none"
    commit_in_transaction(server, 3, **transaction_fields)
    requested = [{"name": USER_TOPIC, "topic_id": server.topic_id, "partition_indexes": [0]}]
    assert fetched(fetch(server, version, requested), version) == {(0, -1, "", "none")}
    unstable = fetch(server, version, requested, require_stable=True)
    assert fetched(unstable, version) == {(0, -1, "", "unstable_offset_commit")}
    assert fetched(fetch(server, version, None, require_stable=True), version) == set()


@every_version(ApiKey.OFFSET_FETCH)
def test_a_share_group_has_no_offsets_to_fetch(server, version):
    server.group_log.ids.claim("shared", GroupKind.SHARE)
    requested = [{"name": USER_TOPIC, "topic_id": server.topic_id, "partition_indexes": [0]}]
    answer = fetch(server, version, requested, group_id="shared")
    if version >= 2:
        top = answer.groups[0] if version >= 8 else answer
        assert top.error_code.name == "group_id_not_found"
    else:
        assert fetched(answer, version) == {(0, -1, "", "group_id_not_found")}


def commit_in_transaction(server, version, **transaction_fields):
    partitions = [
        {"partition_index": 0, "committed_offset": 9, "committed_leader_epoch": -1, "committed_metadata": None}
    ]
    answer = server.call(
        ApiKey.TXN_OFFSET_COMMIT,
        version,
        generation_id=-1,
        member_id="",
        group_instance_id=None,
        topics=[{"name": USER_TOPIC, "partitions": partitions}],
        **transaction_fields,
    )
    return answer.topics[0].partitions[0].error_code.name


@every_version(ApiKey.TXN_OFFSET_COMMIT)
def test_offsets_are_committed_with_a_transaction_that_has_the_group(server, version):
    producer = server.call(
        ApiKey.INIT_PRODUCER_ID,
        min(version, 5),
        transactional_id="tx",
        transaction_timeout=timedelta(seconds=60),
        producer_id=-1,
        producer_epoch=-1,
    )
    identity = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}
    transaction_fields = {"transactional_id": "tx", "group_id": "g", **identity}
    assert commit_in_transaction(server, version, **transaction_fields) == "invalid_txn_state"
    assert server.call(ApiKey.ADD_OFFSETS_TO_TXN, version, **transaction_fields).error_code.name == "none"
    assert commit_in_transaction(server, version, **transaction_fields) == "none"
    end = {"transactional_id": "tx", "committed": True, **identity}
    assert server.call(ApiKey.END_TXN, version, **end).error_code.name == "none"
    assert [each.offset for each in server.classic_groups.offsets.of_group("g").values()] == [9]


def add_partitions(server, version, producer, *partitions, epoch=0):
    answer = server.call(
        ApiKey.ADD_PARTITIONS_TO_TXN,
        version,
        v3_and_below_transactional_id="tx",
        v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=epoch,
        v3_and_below_topics=[{"name": USER_TOPIC, "partitions": list(partitions)}],
    )
    (topic,) = answer.results_by_topic_v3_and_below
    return [each.partition_error_code.name for each in topic.results_by_partition]


@every_version(ApiKey.ADD_PARTITIONS_TO_TXN)
def test_partitions_are_added_to_a_transaction_together(server, version):
    producer = server.transactions.init_producer_id("tx", 60_000)
    assert add_partitions(server, version, producer, 0, 9) == ["operation_not_attempted", "unknown_topic_or_partition"]
    assert server.transactions.get("tx").partitions == frozenset()
    assert add_partitions(server, version, producer, 0, 1) == ["none", "none"]
    fenced = "producer_fenced" if version >= 2 else "invalid_producer_epoch"
    assert add_partitions(server, version, producer, 0, epoch=5) == [fenced]


@every_version(ApiKey.INIT_PRODUCER_ID)
def test_producers_are_initialised(server, version):
    def init(transactional_id, **producer_fields):
        return server.call(
            ApiKey.INIT_PRODUCER_ID,
            version,
            transactional_id=transactional_id,
            transaction_timeout=timedelta(seconds=60),
            **{"producer_id": -1, "producer_epoch": -1, **producer_fields},
        )

    assert init(None).error_code.name == "none"
    first, second = init("tx"), init("tx")
    assert (first.producer_id, first.producer_epoch) == (second.producer_id, second.producer_epoch - 1)
    if version >= 3:
        other = init("tx", producer_id=77, producer_epoch=0).error_code.name
        assert other == ("producer_fenced" if version >= 4 else "invalid_producer_epoch")


def test_the_answer_to_a_client_that_has_gone_is_dropped(server):
    async def abandon():
        request = SimpleNamespace(
            group_id="g",
            session_timeout=timedelta(seconds=10),
            member_id="",
            protocol_type="consumer",
            protocols=[SimpleNamespace(name="range", metadata=b"")],
        )
        context = RequestContext(
            api_key=ApiKey.JOIN_GROUP, api_version=0, client_id="c", client_host="/h", connection=None
        )
        waiting = asyncio.ensure_future(classic_groups.join_group(server, request, context))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        server.timers.advance(3_000)

    asyncio.run(abandon())
    assert server.classic_groups.get("g").generation == 1
