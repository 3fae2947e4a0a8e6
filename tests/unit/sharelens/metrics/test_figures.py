"""What the figures of a small log are: known, 0, or absent."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from sharelens.metrics import catalog
from sharelens.metrics.figures import Figures
from sharelens.metrics.reading import read
from sharelens.source.request import Source
from tests.logs.state_logs import ORDERS_ID, START_MS, snapshot, tombstone, update, write_log_directory
from tests.logs.user_topics import ORDERS_RECORDS, write_orders

pytestmark = pytest.mark.slow

KEY = ("g", ORDERS_ID, 0)
LEFT_OUT = "AAAAAAAAAAAAAAAAAAAABg"
ACKNOWLEDGED, ARCHIVED = 2, 4


def of(tmp_path: Path, records: Sequence[dict[str, Any]]) -> Figures:
    logs = write_log_directory(tmp_path / "logs", records)
    write_orders(logs)
    (figures,) = read(Source(log_dirs=(str(logs),)))
    return figures


def named(values: Any) -> dict[str, float]:
    """Values by the metric's name, without what all names share."""
    return {metric.name.removeprefix("kafka_sharegroup_"): value for metric, value in values.items()}


def test_a_group_that_waits_for_a_record(tmp_path: Path):
    story = [
        snapshot(start=0),
        update(batches=[(1, 4, ACKNOWLEDGED, 1)], delivery_complete_count=4, at_ms=START_MS + 5_000),
        update(batches=[(5, 5, ARCHIVED, 5)], delivery_complete_count=5, at_ms=START_MS + 90_000),
    ]
    figures = of(tmp_path, story)
    assert named(figures.of_share_partitions[KEY]) == {
        "lag": ORDERS_RECORDS - 5,
        "start_offset": 0,
        "end_offset": ORDERS_RECORDS,
        "stalled_seconds": 89.996,  # from the last record of its batch on
        "stalled_since_timestamp_seconds": (START_MS + 4) / 1000,
        "oldest_incomplete_age_seconds": 89.996,
        "window_used": 6,
        "archived_records_total": 1,
        "redelivered_records_total": 1,
    }
    assert named(figures.of_groups["g"]) == {
        "group_share_partitions": 1,
        "group_incomplete_share_partitions": 0,
        "group_lag_unknown_share_partitions": 0,
        "group_lag": ORDERS_RECORDS - 5,
        "group_stalled_seconds": 89.996,
        "group_stalled_since_timestamp_seconds": (START_MS + 4) / 1000,
        "group_archived_records_total": 1,
        "group_redelivered_records_total": 1,
    }
    assert figures.of_cluster[catalog.DATA_TIMESTAMP] == (START_MS + 90_000) / 1000
    assert figures.of_cluster[catalog.GAPS] == 0


def test_a_group_that_has_done_everything_waits_for_nothing(tmp_path: Path):
    story = [snapshot(start=ORDERS_RECORDS, delivery_complete_count=0, at_ms=START_MS + 1_000)]
    figures = named(of(tmp_path, story).of_share_partitions[KEY])
    assert (figures["lag"], figures["stalled_seconds"], figures["window_used"]) == (0, 0, 0)
    assert not {"stalled_since_timestamp_seconds", "oldest_incomplete_age_seconds"} & figures.keys()


def test_what_can_not_be_known_without_the_topic_is_absent(tmp_path: Path):
    figures = of(tmp_path, [snapshot(start=3, topic_id=LEFT_OUT)])
    assert named(figures.of_share_partitions["g", LEFT_OUT, 0]) == {
        "start_offset": 3,
        "archived_records_total": 0,
        "redelivered_records_total": 0,
    }
    group = named(figures.of_groups["g"])
    assert group["group_lag_unknown_share_partitions"] == 1
    assert "group_lag" not in group
    assert figures.topics == {LEFT_OUT: LEFT_OUT}


def test_a_start_offset_that_is_not_determined_is_absent(tmp_path: Path):
    figures = of(tmp_path, [snapshot(start=-1, delivery_complete_count=-1)])
    assert "start_offset" not in named(figures.of_share_partitions[KEY])


def test_what_a_share_partition_that_is_gone_gave_up_still_counts(tmp_path: Path):
    story = [
        snapshot(start=0),
        update(batches=[(0, 1, ARCHIVED, 5)], at_ms=START_MS + 1_000),
        tombstone(at_ms=START_MS + 2_000),
    ]
    figures = of(tmp_path, story)
    assert named(figures.of_groups["g"])["group_archived_records_total"] == 2
    assert named(figures.of_groups["g"])["group_share_partitions"] == 0
    assert "lag" not in named(figures.of_share_partitions[KEY])


def test_the_newest_of_several_topics_of_one_name_bears_it(tmp_path: Path):
    names = tmp_path / "names.txt"
    names.write_text(f"{LEFT_OUT} orders\n", encoding="utf-8")
    story = [snapshot(start=0, topic_id=LEFT_OUT), snapshot(start=0, at_ms=START_MS + 1_000)]
    logs = write_log_directory(tmp_path / "logs", story)
    (figures,) = read(Source(log_dirs=(str(logs),), topic_names=str(names)))
    assert figures.topics == {ORDERS_ID: "orders", LEFT_OUT: LEFT_OUT}
