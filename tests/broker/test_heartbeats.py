"""The load of heartbeats that the bench measures."""

import pytest

from bench.brokers import Started
from bench.heartbeats import share_of_core

pytestmark = pytest.mark.broker


def test_members_settle_and_their_heartbeats_take_processor_time(start_broker):
    broker = start_broker(group_consumer_assignment_interval_ms=0)
    started = Started(bootstrap=broker.bootstrap, start_s=0, pid=broker.process.pid)
    assert 0 <= share_of_core(started, members=3, partitions=4, rounds=2) < 1
