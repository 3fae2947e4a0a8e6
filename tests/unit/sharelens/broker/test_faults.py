"""Fault rules: what they mean as text, whom they strike, and what happens then."""

import asyncio
import errno

import pytest
from kio.index import load_request_schema
from kio.schema.errors import ErrorCode

import sharelens.broker.handlers.all  # noqa: F401  (registers them)
from sharelens.broker.errors import ConfigError, FrameError
from sharelens.broker.faults import Action, FaultInjection, FaultRule, parse_fault
from sharelens.broker.ports import TopicPartition
from sharelens.broker.protocol.error_answers import error_answer
from sharelens.broker.protocol.messages import encode_answer
from sharelens.broker.protocol.registry import Api, RequestContext, registered
from sharelens.broker.protocol.steps import LazyArray
from sharelens.kafka_formats.messages.api_keys import ApiKey
from tests.broker_parts.broker_messages import build

STATE = TopicPartition("__share_group_state", 3)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("api=ShareAcknowledge,action=drop", FaultRule(api=79, action=Action.DROP)),
        ("api=share_fetch,action=delay:200ms", FaultRule(api=78, action=Action.DELAY, delay_ms=200)),
        ("api=*,action=close,probability=0.5,seed=9", FaultRule(api=-1, action=Action.CLOSE, probability=0.5, seed=9)),
        (
            "api=Produce,action=error:15,after=3,count=2",
            FaultRule(api=0, action=Action.ERROR, error_code=ErrorCode(15), after=3, count=2),
        ),
        (
            "api=Produce, action=error:NOT_COORDINATOR",
            FaultRule(api=0, action=Action.ERROR, error_code=ErrorCode.not_coordinator),
        ),
        ("append=__share_group_state,action=torn", FaultRule(append="__share_group_state", action=Action.TORN)),
        ("append=*,action=error,count=0", FaultRule(append="*", action=Action.ERROR, count=0)),
        ("open=orders-0,action=truncate:20", FaultRule(open="orders-0", action=Action.TRUNCATE, lost_offsets=20)),
    ],
)
def test_a_rule_is_read_from_its_text(text, rule):
    assert parse_fault(text) == rule


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "with a key of action, after, api, append, count, open"),
        ("api=Produce", "action is one of close"),
        ("api=Produce,append=x,action=drop", "either api=NAME, append=TOPIC or open=TOPIC"),
        ("action=drop", "either api=NAME, append=TOPIC or open=TOPIC"),
        ("open=x,action=drop", "action is one of truncate"),
        ("open=x,action=truncate", "truncate:20"),
        ("open=x,action=truncate:0", "truncate:20"),
        ("open=x,action=truncate:-1", "truncate:20"),
        ("api=Nothing,action=drop", "'Nothing' is no API"),
        ("api=Produce,action=torn", "action is one of close, delay, drop, error, lose"),
        ("append=x,action=drop", "action is one of crash_after, crash_before, error, torn"),
        ("api=Produce,action=delay", "delay:200ms"),
        ("api=Produce,action=delay:-1ms", "delay:200ms"),
        ("api=Produce,action=drop:3", "drop takes no '3'"),
        ("api=Produce,action=error:99999", "no error code"),
        ("api=Produce,action=drop,probability=1.5", "probability=1.5 is no number from 0 on to 1"),
        ("api=Produce,action=drop,probability=nan", "probability=nan"),
        ("api=Produce,action=drop,after=-1", "after=-1"),
        ("api=Produce,action=drop,count=many", "count=many"),
        ("api=Produce,action=drop,action=close", "'action=close'"),
    ],
)
def test_a_text_that_is_no_rule_is_refused_with_the_reason(text, why):
    with pytest.raises(ConfigError) as caught:
        parse_fault(text)
    assert why in str(caught.value)


def context(api_key=12, version=0):
    return RequestContext(api_key=api_key, api_version=version, client_id="", client_host="", connection=None)


def outcomes(*rules, times=1, api_key=12, handled=None):
    """What comes of requests: their answers, or the error that closes the connection."""
    handled = [] if handled is None else handled

    def handler(broker, request, context):
        handled.append(request)
        return {"error_code": 0}

    api = Api(key=api_key, first_version=0, last_version=0, handler=handler)
    around = FaultInjection([parse_fault(rule) for rule in rules]).around({api_key: api})[api_key].handler

    async def exchange():
        try:
            outcome = around(None, build(load_request_schema(api_key, 0), {}), context(api_key))
            return await outcome if asyncio.iscoroutine(outcome) else outcome
        except FrameError:
            return "closed"

    async def exchange_all():
        return [await exchange() for _ in range(times)]

    return asyncio.run(exchange_all())


@pytest.mark.parametrize(
    ("action", "answer", "is_handled"),
    [
        ("drop", None, False),
        ("close", "closed", False),
        ("lose", "closed", True),
        ("delay:1ms", {"error_code": 0}, True),
        ("error:16", {"error_code": 16}, False),
    ],
)
def test_each_action_does_to_a_request_what_it_says(action, answer, is_handled):
    handled = []
    assert outcomes(f"api=Heartbeat,action={action}", handled=handled) == [answer]
    assert bool(handled) is is_handled


def test_a_request_whose_answer_is_lost_is_handled_to_its_last_element():
    deleted = []

    def delete(name):
        deleted.append(name)
        return {"group_id": name}

    def handler(broker, request, context):
        return {"results": LazyArray(delete, ["a", "b"])}

    api = Api(key=42, first_version=0, last_version=2, handler=handler)
    around = FaultInjection([parse_fault("api=DeleteGroups,action=lose")]).around({42: api})[42].handler

    async def lose():
        await around(None, None, context(42, 2))

    with pytest.raises(FrameError, match="a fault loses its answer"):
        asyncio.run(lose())
    assert deleted == ["a", "b"]


def test_other_apis_are_left_alone():
    assert outcomes("api=Produce,action=drop") == [{"error_code": 0}]
    assert outcomes("api=*,action=drop") == [None]


def test_a_rule_spares_the_first_matches_and_strikes_at_most_count_times():
    struck = [outcome is None for outcome in outcomes("api=Heartbeat,action=drop,after=2,count=3", times=8)]
    assert struck == [False, False, True, True, True, False, False, False]


def test_equal_seeds_strike_the_same_requests_and_others_do_not():
    def struck(seed):
        rule = f"api=Heartbeat,action=drop,probability=0.3,seed={seed}"
        return [outcome is None for outcome in outcomes(rule, times=200)]

    assert struck(1) == struck(1)
    assert struck(1) != struck(2)
    assert 30 < sum(struck(1)) < 90


def test_the_first_rule_that_strikes_counts():
    rules = ("api=Heartbeat,action=error:15,count=1", "api=Heartbeat,action=error:16")
    assert [answer["error_code"] for answer in outcomes(*rules, times=3)] == [15, 16, 16]


def appended(*rules):
    """The bytes that reach the file, and how the write ended."""
    ends = []

    def end_process():
        ends.append("killed")
        raise SystemExit

    injection = FaultInjection([parse_fault(rule) for rule in rules], end_process=end_process)
    written = None
    try:
        written = injection.before_append(STATE, b"12345678")
        injection.after_append(STATE)
    except SystemExit:
        return written, "killed"
    except OSError as error:
        return written, error.errno
    return written, "done"


@pytest.mark.parametrize(
    ("action", "outcome"),
    [
        ("crash_before", (None, "killed")),
        ("crash_after", (b"12345678", "killed")),
        ("torn", (b"1234", "killed")),
        ("error", (None, errno.ENOSPC)),
    ],
)
@pytest.mark.parametrize("name", ["__share_group_state", "__share_group_state-3", "*"])
def test_each_action_does_to_an_append_what_it_says(name, action, outcome):
    assert appended(f"append={name},action={action}") == outcome


def test_other_logs_are_left_alone():
    assert appended("append=__share_group_state-4,action=torn", "append=orders,action=error") == (b"12345678", "done")


@pytest.mark.parametrize("api", registered().values(), ids=lambda api: ApiKey(api.key).name)
def test_every_version_of_every_api_can_be_refused_or_says_that_it_can_not(api):
    for version in range(api.first_version, api.last_version + 1):
        request = build(load_request_schema(api.key, version), {})
        try:
            answer = error_answer(api.key, version, request, ErrorCode.unknown_server_error)
        except FrameError:
            continue
        assert encode_answer(api.key, version, 1, answer)


def test_an_error_is_answered_for_each_requested_part():
    topics = [{"name": "t", "partitions": [{"partition_index": 4}, {"partition_index": 5}]}]
    request = build(load_request_schema(ApiKey.LIST_OFFSETS, 8), {"topics": topics})
    assert error_answer(ApiKey.LIST_OFFSETS, 8, request, ErrorCode(3))["topics"][0]["partitions"] == [
        {"partition_index": 4, "error_code": 3},
        {"partition_index": 5, "error_code": 3},
    ]
    groups = build(load_request_schema(ApiKey.DELETE_GROUPS, 2), {"groups_names": ["a", "b"]})
    assert error_answer(ApiKey.DELETE_GROUPS, 2, groups, ErrorCode(16)) == {
        "results": [{"group_id": "a", "error_code": 16}, {"group_id": "b", "error_code": 16}]
    }
    produced = {"topic_data": [{"name": "t", "partition_data": [{"index": 1, "records": b""}]}]}
    request = build(load_request_schema(ApiKey.PRODUCE, 9), produced)
    assert error_answer(ApiKey.PRODUCE, 9, request, ErrorCode(56)) == {
        "responses": [{"name": "t", "partition_responses": [{"index": 1, "error_code": 56}]}]
    }


@pytest.mark.parametrize(("name", "lost"), [("__share_group_state", 4), ("__share_group_state-3", 4), ("orders", 0)])
def test_a_log_that_is_opened_loses_its_tail_as_often_as_the_rule_says(name, lost):
    injection = FaultInjection([parse_fault(f"open={name},action=truncate:4,count=1")])
    assert [injection.lost_offsets(STATE) for _ in range(2)] == [lost, 0]
    assert injection.before_append(STATE, b"12345678") == b"12345678"
