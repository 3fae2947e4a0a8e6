"""OTLP in JSON: OpenTelemetry's names, the time of the evidence, integers as the encoding asks for them."""

import json

from sharelens.metrics import catalog
from sharelens.metrics.figures import Figures
from sharelens.metrics.otlp import otlp_json
from sharelens.metrics.samples import export

TOPIC = "AAAAAAAAAAAAAAAAAAAABQ"
FIRST_MS, DATA_MS, READ_MS = 1_790_000_000_000, 1_790_000_090_000, 1_790_000_100_000


def request(data_ms: int | None = DATA_MS) -> dict:
    figures = Figures(
        cluster="c",
        first_ms=FIRST_MS,
        data_ms=data_ms,
        read_ms=READ_MS,
        of_cluster={catalog.READ_TIMESTAMP: READ_MS / 1000},
        of_groups={},
        of_share_partitions={("g", TOPIC, 3): {catalog.LAG: 5, catalog.STALLED: 1.5, catalog.ARCHIVED: 2}},
        topics={TOPIC: "orders"},
    )
    line = otlp_json(export([figures]))
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    return json.loads(line)


def metrics(data_ms: int | None = DATA_MS) -> dict[str, dict]:
    (resource,) = request(data_ms)["resourceMetrics"]
    (scope,) = resource["scopeMetrics"]
    return {metric["name"]: metric for metric in scope["metrics"]}


def test_a_gauge_has_its_twins_name_unit_and_attributes():
    lag = metrics()["kafka.share_group.lag"]
    assert lag["unit"] == "{record}"
    assert lag["gauge"]["dataPoints"] == [
        {
            "attributes": [
                {"key": "cluster", "value": {"stringValue": "c"}},
                {"key": "group", "value": {"stringValue": "g"}},
                {"key": "topic", "value": {"stringValue": "orders"}},
                {"key": "partition", "value": {"intValue": "3"}},
            ],
            "timeUnixNano": str(DATA_MS * 1_000_000),
            "asInt": "5",
        }
    ]
    assert metrics()["kafka.share_group.stalled"]["gauge"]["dataPoints"][0]["asDouble"] == 1.5


def test_a_count_is_a_cumulative_sum_since_the_evidence_begins():
    archived = metrics()["kafka.share_group.archived_records"]["sum"]
    assert (archived["aggregationTemporality"], archived["isMonotonic"]) == (2, True)
    assert archived["dataPoints"][0]["startTimeUnixNano"] == str(FIRST_MS * 1_000_000)


def test_without_a_record_the_time_is_that_of_the_reading():
    (point,) = metrics(None)["sharelens.read_timestamp"]["gauge"]["dataPoints"]
    assert point["timeUnixNano"] == str(READ_MS * 1_000_000)
