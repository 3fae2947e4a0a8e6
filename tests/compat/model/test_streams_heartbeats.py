"""Raw heartbeats to streams groups: the answers of Kafka 4.3.1, request by request at the recorded moments."""

import json
from datetime import timedelta

import pytest

from tests.broker_parts.dispatched_broker import DispatchedBroker, of_json
from tests.datasets import dataset

pytestmark = pytest.mark.compat

HEARTBEAT = (88, 0)
TIMES = {"group_streams_min_heartbeat_interval_ms": 500, "group_streams_heartbeat_interval_ms": 700}
TIMES |= {"group_streams_min_session_timeout_ms": 1_000, "group_streams_session_timeout_ms": 6_000}
AT_ONCE = TIMES | {"group_streams_initial_rebalance_delay_ms": 0}
SECOND_RUN_MS = 1795383800000
TASK_LISTS = ("active_tasks", "standby_tasks", "warmup_tasks")
FREE_CHOICE = "raw-g"
"""A group of two members with three tasks: which of them gets two is the order of a hash map."""


def probes(name):
    lines = (dataset("streams-topology") / name).read_text().splitlines()
    return [probe for probe in map(json.loads, lines) if probe.get("api") == HEARTBEAT[0]]


def extra_probes(*, is_second):
    return [probe for probe in probes("probes-extra.jsonl") if (probe["t"] > SECOND_RUN_MS) == is_second]


RUNS = {
    "checks and topologies": (lambda: probes("probes.jsonl"), TIMES),
    "no initial delay": (lambda: extra_probes(is_second=False), AT_ONCE),
    "no assignment interval": (
        lambda: extra_probes(is_second=True),
        AT_ONCE | {"group_streams_assignment_interval_ms": 0, "group_streams_max_size": 2},
    ),
}


@pytest.mark.parametrize("run", RUNS)
def test_every_heartbeat_gets_the_recorded_answer(tmp_path, run):
    read, settings = RUNS[run]
    recorded = read()
    broker = DispatchedBroker(tmp_path / "log", now_ms=recorded[0]["t"] - 10, **settings)
    broker.create("plain", 3)
    broker.create("two", 2)
    for probe in recorded:
        broker.timers.advance(probe["t"] - broker.timers.now_ms())
        answer = broker.call(*HEARTBEAT, **of_json(probe["request"]))
        assert comparable(answer, probe) == comparable(of_json(probe["response"]), probe), probe["label"]
    broker.close()


def comparable(answer, probe):
    answer = {
        name: value // timedelta(milliseconds=1) if isinstance(value, timedelta) else value
        for name, value in answer.items()
    }
    if probe["request"]["groupId"] == FREE_CHOICE:
        answer |= {name: answer[name] is not None for name in TASK_LISTS}
    return answer
