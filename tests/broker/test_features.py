"""Kafka's own tool raises and lowers features of a running broker."""

import pytest

from tests.broker.kafka_tools import FEATURES, kafka_tool

pytestmark = pytest.mark.components


def test_kafkas_tool_raises_share_version_and_describes_it(start_broker):
    broker = start_broker("--kafka-version", "4.4")
    server = ("--bootstrap-server", broker.bootstrap)
    assert "FinalizedVersionLevel: 1" in kafka_tool(FEATURES, *server, "describe").out
    kafka_tool(FEATURES, *server, "upgrade", "--feature", "share.version=2")
    assert "FinalizedVersionLevel: 2" in kafka_tool(FEATURES, *server, "describe").out
    refused = kafka_tool(FEATURES, *server, "upgrade", "--feature", "share.version=3", code=None)
    assert refused.code != 0
    assert "levels from 0 to 2" in refused.out + refused.err
    assert broker.stop() == 0
    broker = start_broker("--kafka-version", "4.4")
    output = kafka_tool(FEATURES, "--bootstrap-server", broker.bootstrap, "describe").out
    assert "FinalizedVersionLevel: 2" in output
