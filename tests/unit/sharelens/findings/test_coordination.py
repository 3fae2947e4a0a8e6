"""Rules about the topics in which coordinators keep their state."""

from dataclasses import replace

import pytest

from sharelens.findings.coordination import state_not_pruned
from sharelens.findings.finding import IS_FOUND, WARNING
from sharelens.findings.signs import UnprunedState
from sharelens.findings.thresholds import MINUTE_MS, UNPRUNED_BYTES, UNPRUNED_MS, Thresholds
from tests.findings import NOW_MS, TOPIC, signs_with

UNPRUNED = UnprunedState(
    state_partition=7,
    group_id="g",
    topic_id=TOPIC,
    partition=0,
    since_ms=NOW_MS - 42 * MINUTE_MS,
    held_up_ms=42 * MINUTE_MS,
    written_bytes=130 << 20,
)


def test_the_share_partition_that_holds_up_pruning_is_named() -> None:
    (row,) = state_not_pruned(signs_with(unpruned=[UNPRUNED]), Thresholds())
    assert (row.severity, row.result, row.group_id, row.topic, row.partition) == (WARNING, IS_FOUND, "g", "orders", 0)
    assert row.text == (
        "state partition 7 can't be pruned from the snapshot of orders-0 on, 42 min old: 130 MiB were written since"
    )
    assert (row.question, row.options) == ("cost", ("--state-partitions",))


@pytest.mark.parametrize(
    ("held_up_ms", "written_bytes", "is_found"),
    [
        (UNPRUNED_MS, UNPRUNED_BYTES, True),
        (UNPRUNED_MS - 1, UNPRUNED_BYTES, False),
        (UNPRUNED_MS, UNPRUNED_BYTES - 1, False),
    ],
)
def test_age_and_growth_are_both_needed(held_up_ms: int, written_bytes: int, is_found: bool) -> None:
    unpruned = replace(UNPRUNED, held_up_ms=held_up_ms, written_bytes=written_bytes)
    for thresholds in (Thresholds(), Thresholds(min_duration_ms=0)):
        assert bool(list(state_not_pruned(signs_with(unpruned=[unpruned]), thresholds))) == is_found
