"""Losses that a replay marks: those of its runs, and of all runs where a state partition starts over."""

import pytest

from jobs.replay.losses import find_losses
from sharelens.lake.lake import Lake
from state_model.columnar.values import Loss
from tests.processes.in_process import empty_lake
from tests.unit.sharelens.evidence.test_coverage import gap
from tests.unit.sharelens.evidence.test_losses import extent

KEY = ("cluster", "topic", 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("late", "losses"),
    [
        (set(), [Loss(first_offset=20, last_offset=29, reason="pruned")]),
        (
            {KEY},
            [
                Loss(first_offset=5, last_offset=9, reason="pruned"),
                Loss(first_offset=20, last_offset=29, reason="pruned"),
            ],
        ),
    ],
    ids=["goes on", "starts over"],
)
def test_a_state_partition_that_starts_over_has_the_losses_of_earlier_runs_too(
    late: set[tuple[str, str, int]], losses: list[Loss]
) -> None:
    first = [extent(1, 0, 5), extent(1, 10, 20, gaps=[gap(5, 9, "pruned")])]
    extents = {KEY: [*first, extent(2, 30, 40, gaps=[gap(20, 29, "pruned")])]}
    assert find_losses(Lake(empty_lake()), extents, late, (2, 2)) == {KEY: losses}
