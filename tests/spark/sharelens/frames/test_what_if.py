"""What-ifs over Spark are the rows of the command, on recorded logs of every kind."""

from typing import TYPE_CHECKING

import pytest

from sharelens import frames
from sharelens.questions import what_if, what_if_placement
from state_model.columnar.keys import FULL_PLACE_KEY
from state_model.errors import UsageError
from tests.depths import in_soak
from tests.spark.sharelens.frames.recorded import answers, cached, compare_with, histories_of, table_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAMES = ("dlq", "edge", "pruned", "transactions")


def compare(computed, question, value, *order) -> None:
    compare_with(answers(NAMES, lambda *scope: question(*scope, value), computed.columns), computed, *order)


@pytest.fixture(scope="module")
def inputs(spark: "SparkSession") -> "dict[str, DataFrame]":
    """The records, histories and headers of some lakes."""
    return cached(spark, {**histories_of(NAMES), "records": table_of(NAMES, "silver.share_record")})


@pytest.mark.soak
@pytest.mark.parametrize("limit", [3, 10])
def test_another_delivery_count_limit_gives_the_rows_of_the_command(limit, inputs) -> None:
    histories = (inputs["history"], inputs["deliveries"])
    rows = frames.what_if_delivery_count_limit(*histories, limit)
    compare(rows, what_if.other_delivery_limit, limit, *FULL_PLACE_KEY, "figure")
    listed = frames.what_if_delivery_count_limit(*histories, limit, listed=True)
    compare(listed, what_if.other_outcomes, limit, *FULL_PLACE_KEY, "life_log_offset", "first_offset")


@pytest.mark.soak
def test_another_lock_duration_gives_the_rows_of_the_command(inputs) -> None:
    rows = frames.what_if_lock_duration(inputs["history"], inputs["deliveries"], 5_000, headers=inputs["headers"])
    compare(rows, what_if.other_lock_duration, 5_000, *FULL_PLACE_KEY, "figure")


@pytest.mark.parametrize("level", ["read_uncommitted", *in_soak("read_committed")])
def test_another_isolation_level_gives_the_rows_of_the_command(level, inputs) -> None:
    histories = (inputs["history"], inputs["deliveries"])
    rows = frames.what_if_isolation_level(*histories, level, headers=inputs["headers"])
    compare(rows, what_if.other_isolation_level, level, *FULL_PLACE_KEY, "figure")


def test_another_snapshot_interval_gives_the_rows_of_the_command(inputs) -> None:
    histories = (inputs["history"], inputs["deliveries"])
    rows = frames.what_if_snapshot_update_records(inputs["records"], *histories, 7)
    compare(rows, what_if.other_snapshot_interval, 7, *FULL_PLACE_KEY, "figure")


def test_another_number_of_state_partitions_gives_the_rows_of_the_command(inputs) -> None:
    rows = frames.what_if_state_partitions(inputs["records"], 7)
    compare(rows, what_if_placement.other_balance, 7, "log_topic_id", "state_partition", "figure")
    listed = frames.what_if_state_partitions(inputs["records"], 7, listed=True)
    compare(listed, what_if_placement.other_placement, 7, "log_topic_id", *FULL_PLACE_KEY[2:], "in_history")


def test_a_setting_that_a_broker_refuses_is_refused(inputs) -> None:
    with pytest.raises(UsageError, match="2 to 25"):
        frames.what_if_delivery_count_limit(inputs["history"], inputs["deliveries"], 1)
    with pytest.raises(UsageError, match="it lacks"):
        frames.what_if_lock_duration(inputs["history"].drop("log_offset"), inputs["deliveries"], 5_000)
