"""A lake has the findings of its log directories, damaged or not, and tests the same rules."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given

from tests.audit.random_worlds import DAMAGED, OPERATIONS, damaged_world
from tests.audit.roads import over_lake, over_logs, without_topics
from tests.audit.world import World
from tests.depths import examples

pytestmark = pytest.mark.slow


def both_roads(world):
    """The audit over the logs of a world, and over a lake of them."""
    with tempfile.TemporaryDirectory(prefix="sharelens-roads-") as folder:
        logs = world.write(Path(folder))
        return over_logs(logs), over_lake(logs, Path(folder) / "lake")


def test_a_healthy_cluster():
    of_logs, of_lake = both_roads(World())
    assert of_lake == of_logs
    assert not [row for row in of_logs.findings if row["severity"] != "info"]


@pytest.mark.soak
@given(OPERATIONS, DAMAGED)
@examples("lake and log", shrink=False)
def test_damaged_pairs_of_logs(operations, damages):
    of_logs, of_lake = both_roads(damaged_world(operations, damages))
    assert of_lake.findings == of_logs.findings
    assert of_lake == of_logs or without_topics(of_lake) == without_topics(of_logs)
