"""Every version that ApiVersions advertises is answered, in a broker that serves no sockets."""

import asyncio
import inspect

import pytest
from kio.index import load_request_schema, load_response_schema

from sharelens.broker.broker import Broker, Options
from sharelens.broker.config.settings import Settings
from sharelens.broker.handlers.all import MODULES
from sharelens.broker.protocol.dispatch import Dispatcher
from sharelens.broker.protocol.registry import registered
from sharelens.broker.timers import LoopTimers
from sharelens.kafka_formats.messages.api_keys import ApiKey
from sharelens.kafka_formats.messages.reader import read
from sharelens.kafka_formats.messages.writer import write
from state_model.codec.steps import STEP_ELEMENTS

VERSIONS = [
    (api.key, version)
    for api in sorted(registered().values(), key=lambda api: api.key)
    for version in range(api.first_version, api.last_version + 1)
]

NEEDED_FIELDS = {0: {"acks": 1}, 29: {"resource_type_filter": 1, "operation": 1, "permission_type": 1}}
"""What an answer needs: Produce without acks has none, and Kafka closes the connection of filters of unknown types."""


class Peer:
    """A connection that nobody closes."""

    id = 1
    listener = "PLAINTEXT"

    def on_close(self, callback):
        """Nothing will happen."""


def ask(tmp_path, *requests, beside=None):
    """The answers of one broker to requests (key, version, fields), one after the other; a task may run beside them."""

    async def run():
        timers = LoopTimers(asyncio.get_running_loop())
        settings = Settings({"offsets.topic.num.partitions": "2", "transaction.state.log.num.partitions": "2"})
        broker = Broker(settings, timers, Options(log_dir=tmp_path / "log", listeners=[]))
        await broker.start()
        task = None if beside is None else asyncio.create_task(beside())
        try:
            return [await answer(Dispatcher(broker, registered()), *request) for request in requests]
        finally:
            if task is not None:
                task.cancel()
            await broker.stop()

    return asyncio.run(run())


async def answer(dispatcher, key, version, fields):
    schema = load_request_schema(key, version)
    header = schema.__header_schema__
    names = {"request_api_key": key, "request_api_version": version, "correlation_id": 5, "client_id": "c"}
    frame = write(header, names) + write(schema, fields)
    pieces = dispatcher.dispatch(frame, Peer(), "/127.0.0.1")
    if inspect.isawaitable(pieces):
        pieces = await asyncio.wait_for(pieces, 60)
    if pieces is None:
        return None
    raw = b"".join(bytes(piece) for piece in pieces)
    response = load_response_schema(key, version)
    read_header, at = read(response.__header_schema__, raw, 4)
    assert read_header.correlation_id == 5
    body, end = read(response, raw, at)
    assert end == len(raw)
    return body


@pytest.mark.parametrize("key", sorted({key for key, _ in VERSIONS}))
def test_an_empty_request_in_every_version_has_an_answer(tmp_path, caplog, key):
    versions = [version for api_key, version in VERSIONS if api_key == key]
    answers = ask(tmp_path, *[(key, version, NEEDED_FIELDS.get(key, {})) for version in versions])
    assert len(answers) == len(versions)
    assert None not in answers
    assert "failed" not in caplog.text
    assert [body for body in answers if getattr(body, "error_code", 0) == -1] == []


@pytest.mark.slow
def test_large_requests_leave_turns_to_others(tmp_path):
    """DescribeGroups and ListOffsets of many names, through the whole broker."""
    count = 20 * STEP_ELEMENTS
    groups = (15, 6, {"groups": [f"g{index}" for index in range(count)]})
    partitions = [{"partition_index": index, "timestamp": -1} for index in range(count)]
    offsets = (2, 7, {"topics": [{"name": "unknown", "partitions": partitions}]})
    turns = []

    async def count_turns():
        while True:
            turns.append(None)
            await asyncio.sleep(0)

    described, listed = ask(tmp_path, groups, offsets, beside=count_turns)
    assert {group.error_code for group in described.groups} == {69}
    assert len(described.groups) == len(listed.topics[0].partitions) == count
    # Reading takes one step for each STEP_ELEMENTS elements, and so does writing.
    assert len(turns) >= 2 * 2 * 20


def test_a_topic_that_is_named_many_times_is_described_once(tmp_path):
    (body,) = ask(tmp_path, (3, 1, {"topics": [{"name": ""}] * 10_000 + [{"name": "t"}] * 2}))
    assert [(topic.name, topic.error_code) for topic in body.topics] == [("", 17), ("t", 0)]


def test_all_handlers_are_in_the_listed_modules():
    assert {api.handler.__module__ for api in registered().values()} == {module.__name__ for module in MODULES}


def test_a_topic_is_found_by_name_and_by_id(tmp_path):
    created, by_name, by_nothing, unknown = ask(
        tmp_path,
        (19, 7, {"topics": [{"name": "t", "num_partitions": 2, "replication_factor": 1}]}),
        (3, 12, {"topics": [{"name": "t"}], "allow_auto_topic_creation": False}),
        (3, 12, {"topics": [{"name": "other"}], "allow_auto_topic_creation": False}),
        (3, 12, {"topics": [{"name": None, "topic_id": "AAECAwQFBgcICQoLDA0ODw"}]}),
    )
    assert created.topics[0].topic_id == by_name.topics[0].topic_id
    assert [partition.leader_epoch for partition in by_name.topics[0].partitions] == [0, 0]
    assert by_nothing.topics[0].error_code == 3
    assert unknown.topics[0].error_code == 100


def test_topics_are_described_in_pages(tmp_path):
    topics = [{"name": name, "num_partitions": 3, "replication_factor": 1} for name in ("a", "b")]
    _, first, second = ask(
        tmp_path,
        (19, 7, {"topics": topics}),
        (75, 0, {"response_partition_limit": 4}),
        (75, 0, {"response_partition_limit": 4, "cursor": {"topic_name": "b", "partition_index": 1}}),
    )
    assert [(topic.name, len(topic.partitions)) for topic in first.topics] == [("a", 3), ("b", 1)]
    assert (first.next_cursor.topic_name, first.next_cursor.partition_index) == ("b", 1)
    assert [(topic.name, len(topic.partitions)) for topic in second.topics] == [("b", 2)]
    assert second.next_cursor is None


def test_the_first_question_for_a_share_coordinator_creates_the_state_topic(tmp_path):
    key = {"key_type": 2, "coordinator_keys": ["g:with:colons:AAECAwQFBgcICQoLDA0ODw:0"]}
    first, second, broken, old = ask(
        tmp_path,
        (10, 6, key),
        (10, 6, key),
        (
            10,
            6,
            {"key_type": 2, "coordinator_keys": ["g:AAECAwQFBgcICQoLDA0ODw", "g:x:0", ":AAECAwQFBgcICQoLDA0ODw:0"]},
        ),
        (10, 5, key),
    )
    assert [each.error_code for each in first.coordinators] == [15]
    assert [(each.error_code, each.node_id) for each in second.coordinators] == [(0, 1)]
    assert [each.error_code for each in broken.coordinators] == [42, 42, 42]
    assert [each.error_code for each in old.coordinators] == [42]


def test_a_leader_epoch_other_than_the_current_one_is_refused(tmp_path):
    def fetch(epoch):
        partition = {"partition": 0, "current_leader_epoch": epoch, "fetch_offset": 0, "partition_max_bytes": 1000}
        return (1, 12, {"topics": [{"topic": "t", "partitions": [partition]}], "max_bytes": 1000})

    _, current, unknown = ask(
        tmp_path,
        (19, 7, {"topics": [{"name": "t", "num_partitions": 1, "replication_factor": 1}]}),
        fetch(0),
        fetch(1),
    )
    assert current.responses[0].partitions[0].error_code == 0
    assert unknown.responses[0].partitions[0].error_code == 75


def test_fetch_sessions_are_not_supported(tmp_path):
    begun, actual = ask(tmp_path, (1, 12, {"session_id": 0, "session_epoch": 0}), (1, 12, {"session_id": 4}))
    assert (begun.error_code, begun.session_id) == (0, 0)
    assert actual.error_code == 70


def test_api_versions_has_the_levels_of_features(tmp_path):
    (body,) = ask(tmp_path, (18, 4, {}))
    assert [(each.name, each.max_version_level) for each in body.finalized_features] == [
        ("share.version", 1),
        ("group.version", 1),
        ("streams.version", 1),
    ]
    assert [(each.name, each.min_version, each.max_version) for each in body.supported_features] == [
        ("share.version", 0, 1),
        ("group.version", 0, 1),
        ("streams.version", 0, 1),
    ]
    listed_versions = {each.api_key: (each.min_version, each.max_version) for each in body.api_keys}
    assert listed_versions.pop(ApiKey.PRODUCE) == (0, 13)  # as Kafka 4.3.1, which refuses those below 3
    handled_versions = {api.key: (api.first_version, api.last_version) for api in registered().values()}
    assert handled_versions.pop(ApiKey.PRODUCE) == (3, 13)
    assert listed_versions == handled_versions
