"""Account, cost and pruning of recorded logs are the rows of the commands."""

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from sharelens import frames
from sharelens.frames.envelopes import LOSS
from sharelens.measures.schemas import CLASSES
from sharelens.questions import accounting
from sharelens.questions.cost import cost, pruning
from sharelens.tables.where import Span
from state_model.columnar.keys import FULL_PLACE_KEY, STATE_PARTITION_KEY
from state_model.errors import UsageError
from tests.spark.sharelens.frames.recorded import (
    answers,
    cached,
    compare_with,
    extents_of,
    histories_of,
    losses_of,
    table_of,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAMES = ("dlq", "edge", "pruned", "transactions")


@pytest.fixture(scope="module")
def inputs(spark: "SparkSession") -> "dict[str, DataFrame]":
    """The records, histories, headers, ends and losses of some lakes."""
    tables = {"records": table_of(NAMES, "silver.share_record"), "losses": losses_of(NAMES)}
    tables["extents"] = pa.concat_tables([extents_of(name) for name in NAMES])
    return cached(spark, {**histories_of(NAMES), **tables})


def test_every_offset_has_the_class_of_the_command(inputs: "dict[str, DataFrame]") -> None:
    evidence = {name: inputs[name] for name in ("headers", "extents", "losses")}
    rows = frames.account(inputs["history"], inputs["deliveries"], **evidence)
    question = partial(accounting.account, span=Span(), listed=CLASSES)
    expected = answers(NAMES, question, rows.columns)
    assert {"acknowledged_once", "open", "not_in_evidence"} <= set(expected.column("class").to_pylist())
    compare_with(expected, rows, *FULL_PLACE_KEY, "first_offset")


def test_a_loss_hides_outcomes_of_the_share_partitions_that_it_touches(inputs: "dict[str, DataFrame]") -> None:
    """In the recorded log `transactions` a group passed aborted records; here records are lost in between."""
    (place_row,) = (
        inputs["history"].where("group_id = 'g-rc' and partition = 0").select(*FULL_PLACE_KEY).distinct().collect()
    )
    history, deliveries = (
        inputs[name].where(f"topic_id = '{place_row.topic_id}'").coalesce(1) for name in ("history", "deliveries")
    )
    log = {"log_topic_id": place_row.log_topic_id, "state_partition": place_row.state_partition, "reason": "gap"}
    ((newest,),) = history.agg({"log_offset": "max"}).collect()

    def hidden(**named: object) -> set[tuple[str, int]]:
        lost = [log | {"first_offset": at, "last_offset": at} | named for at in range(newest)]
        losses = history.sparkSession.createDataFrame(pa.Table.from_pylist(lost, schema=LOSS))
        rows = frames.account(history, deliveries, losses=losses).where("class = 'not_in_evidence'")
        return {(row.group_id, row.partition) for row in rows.select("group_id", "partition").collect()}

    topic = {"topic_id": place_row.topic_id, "partition": 0}
    assert hidden() == hidden(group_id="g-rc", **topic) == {("g-rc", 0)}
    assert hidden(group_id="another", **topic) == set()


def test_the_cost_is_that_of_the_command(inputs: "dict[str, DataFrame]") -> None:
    rows = frames.cost(inputs["records"], inputs["history"], inputs["deliveries"])
    compare_with(answers(NAMES, partial(cost, span=Span()), rows.columns), rows, *FULL_PLACE_KEY)


def test_what_pruning_would_free_is_that_of_the_command(inputs: "dict[str, DataFrame]") -> None:
    rows = inputs["records"].transform(frames.pruning)
    expected = answers(NAMES, lambda evidence, _, cut: pruning(evidence, cut), rows.columns)
    assert pc.sum(expected.column("freeable_records")).as_py() > 0
    compare_with(expected, rows, *STATE_PARTITION_KEY)


def test_losses_that_do_not_fit_are_refused(inputs: "dict[str, DataFrame]") -> None:
    with pytest.raises(UsageError, match=r"frames.account: losses does not fit: it lacks reason"):
        frames.account(inputs["history"], inputs["deliveries"], losses=inputs["losses"].drop("reason"))
