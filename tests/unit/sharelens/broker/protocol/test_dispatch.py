"""From frames to answers."""

import asyncio
import itertools
import logging

import pytest
from kio.index import load_response_schema
from kio.schema.errors import ErrorCode

from sharelens.broker.errors import FrameError
from sharelens.broker.protocol.dispatch import Dispatcher
from sharelens.broker.protocol.registry import Api
from sharelens.broker.protocol.steps import LazyArray
from sharelens.kafka_formats.messages.api_keys import ApiKey
from sharelens.kafka_formats.messages.reader import read
from state_model.codec.steps import STEP_ELEMENTS

CLIENT = b"\x00\x01c"


def dispatcher(**handlers):
    """A dispatcher of handlers by the API's name: (first version, last version, handler)."""
    apis = {
        int(ApiKey[name.upper()]): Api(
            key=int(ApiKey[name.upper()]), first_version=first, last_version=last, handler=handler
        )
        for name, (first, last, handler) in handlers.items()
    }
    return Dispatcher("the broker", apis)


def request(key, version, body=b"", *, flexible=False):
    tags = b"\x00" if flexible else b""
    return key.to_bytes(2, "big") + version.to_bytes(2, "big") + (7).to_bytes(4, "big") + CLIENT + tags + body


def answer_of(pieces, key, version):
    raw = b"".join(bytes(piece) for piece in pieces)
    assert int.from_bytes(raw[:4], "big") == len(raw) - 4
    schema = load_response_schema(key, version)
    header, at = read(schema.__header_schema__, raw, 4)
    assert header.correlation_id == 7
    body, end = read(schema, raw, at)
    assert end == len(raw)
    return body


def test_handlers_get_the_broker_the_request_and_who_asks():
    calls = []

    def handler(broker, body, context):
        calls.append((broker, body.group_id, context.client_id, context.client_host, context.api_version))
        return {"error_code": 16}

    frame = request(12, 0, b"\x00\x01g" + bytes(4) + b"\x00\x00")
    pieces = dispatcher(heartbeat=(0, 0, handler)).dispatch(frame, None, "/127.0.0.1")
    assert answer_of(pieces, 12, 0).error_code == 16
    assert calls == [("the broker", "g", "c", "/127.0.0.1", 0)]


def test_a_handler_may_wait_and_may_have_no_answer():
    async def later(broker, body, context):
        return {"error_code": 0} if context.api_version == 1 else None

    table = dispatcher(api_versions=(0, 1, later))

    async def run():
        assert answer_of(await table.dispatch(request(18, 1), None, ""), 18, 1).error_code == 0
        assert await table.dispatch(request(18, 0), None, "") is None

    asyncio.run(run())


def test_too_new_an_api_versions_is_answered_in_the_oldest_layout_with_what_is_known():
    table = dispatcher(api_versions=(0, 4, None))
    body = answer_of(table.dispatch(request(18, 9, b"whatever"), None, ""), 18, 0)
    assert body.error_code == 35
    assert [(each.api_key, each.min_version, each.max_version) for each in body.api_keys] == [(18, 0, 4)]


@pytest.mark.parametrize(("key", "version"), [(12, 1), (999, 0), (-1, 0), (12, -1)])
def test_any_other_unknown_request_closes_the_connection(key, version):
    frame = (key % 65536).to_bytes(2, "big") + (version % 65536).to_bytes(2, "big") + bytes(4) + CLIENT
    with pytest.raises(FrameError, match="is not answered here"):
        dispatcher(heartbeat=(0, 0, None)).dispatch(frame, None, "")


def broken(broker, body, context):
    raise ZeroDivisionError("a mistake of ours")


async def broken_later(broker, body, context):
    raise ZeroDivisionError("a mistake of ours")


def test_an_unexpected_error_is_sent_where_the_answer_has_an_error_code(caplog):
    with caplog.at_level(logging.ERROR):
        pieces = dispatcher(api_versions=(0, 0, broken)).dispatch(request(18, 0), None, "")
    assert answer_of(pieces, 18, 0).error_code == -1
    assert "a mistake of ours" in caplog.text


def test_an_unexpected_error_closes_the_connection_where_the_answer_has_no_error_code(caplog):
    frame = request(3, 1, b"\xff\xff\xff\xff")
    with caplog.at_level(logging.CRITICAL), pytest.raises(FrameError):
        dispatcher(metadata=(1, 1, broken)).dispatch(frame, None, "")
    with caplog.at_level(logging.CRITICAL), pytest.raises(FrameError):
        asyncio.run(dispatcher(metadata=(1, 1, broken_later)).dispatch(frame, None, ""))


def test_a_handler_may_close_the_connection():
    def refuse(broker, body, context):
        raise FrameError("acks=0")

    with pytest.raises(FrameError, match="acks=0"):
        dispatcher(api_versions=(0, 0, refuse)).dispatch(request(18, 0), None, "")


def large_describe(count):
    """DescribeGroups version 0 of so many empty names."""
    return request(15, 0, count.to_bytes(4, "big") + bytes(2 * count))


def describe(broker, body, context):
    return {"groups": LazyArray(lambda name: {"group_id": name}, body.groups)}


@pytest.mark.slow
def test_a_large_request_is_handled_over_many_turns():
    table = dispatcher(describe_groups=(0, 0, describe))
    count = 40 * STEP_ELEMENTS

    async def scenario():
        turns = 0

        async def count_turns():
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        counting = asyncio.create_task(count_turns())
        pieces = await table.dispatch(large_describe(count), None, "")
        counting.cancel()
        # One step for each STEP_ELEMENTS elements that are read, and one for each that are written.
        assert turns >= 2 * 40
        assert len(answer_of(pieces, 15, 0).groups) == count

    asyncio.run(scenario())


@pytest.mark.slow
def test_of_several_large_requests_one_takes_a_step_in_each_turn():
    computed = []

    def count_elements(broker, body, context):
        def element(name):
            computed.append(name)
            return {"group_id": name}

        return {"groups": LazyArray(element, body.groups)}

    table = dispatcher(describe_groups=(0, 0, count_elements))

    async def scenario():
        frame = large_describe(4 * STEP_ELEMENTS)
        tasks = [asyncio.create_task(table.dispatch(frame, None, "")) for _ in range(5)]
        counts = []
        while not all(task.done() for task in tasks):
            counts.append(len(computed))
            await asyncio.sleep(0)
        assert max(after - before for before, after in itertools.pairwise(counts)) <= STEP_ELEMENTS
        assert len(computed) == 5 * 4 * STEP_ELEMENTS
        for task in tasks:
            assert len(answer_of(task.result(), 15, 0).groups) == 4 * STEP_ELEMENTS

    asyncio.run(scenario())


def test_a_request_with_more_elements_than_its_api_allows_closes_the_connection():
    key = int(ApiKey.DESCRIBE_GROUPS)
    api = Api(key=key, first_version=0, last_version=0, handler=describe, elements_max=100)
    table = Dispatcher("the broker", {key: api})
    assert len(answer_of(table.dispatch(large_describe(100), None, ""), 15, 0).groups) == 100
    with pytest.raises(FrameError, match="101 elements announced"):
        table.dispatch(large_describe(101), None, "")


def test_a_request_with_more_elements_than_its_api_allows_is_refused_where_the_answer_has_an_error_code():
    def join(broker, body, context):
        return {"error_code": len(body.protocols)}

    key = int(ApiKey.JOIN_GROUP)
    api = Api(key=key, first_version=0, last_version=0, handler=join, elements_max=100)
    table = Dispatcher("the broker", {key: api})

    def code(protocols):
        head = b"\x00\x01g" + bytes(8)
        frame = request(key, 0, head + protocols.to_bytes(4, "big") + bytes(6 * protocols))
        return answer_of(table.dispatch(frame, None, ""), key, 0).error_code

    assert (code(100), code(101)) == (100, ErrorCode.invalid_request)


def test_a_small_request_is_answered_at_once():
    pieces = dispatcher(describe_groups=(0, 0, describe)).dispatch(large_describe(STEP_ELEMENTS // 2), None, "")
    assert len(answer_of(pieces, 15, 0).groups) == STEP_ELEMENTS // 2


def test_an_answer_that_fails_while_it_is_written_closes_the_connection(caplog):
    def fail(name):
        raise ZeroDivisionError("a mistake of ours")

    table = dispatcher(describe_groups=(0, 0, lambda broker, body, context: {"groups": LazyArray(fail, body.groups)}))
    with caplog.at_level(logging.CRITICAL), pytest.raises(FrameError, match="a mistake of ours"):
        table.dispatch(large_describe(1), None, "")
