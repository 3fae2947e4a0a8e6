"""The numbers that rules on streams groups compare with, over time."""

import pytest

from sharelens.measures.settings.over_time import NO_SETTINGS, Setting, over_time
from sharelens.measures.settings.streams import bounds_of
from state_model.audit.model_groups import bounds as settings
from state_model.audit.model_groups.bounds import MAX_STANDBY_REPLICAS

ASSIGNMENT_INTERVAL = f"streams.{settings.ASSIGNMENT_INTERVAL}"

SETTINGS = over_time(
    {0: {}, 100: {"g": {ASSIGNMENT_INTERVAL: Setting(value="7")}}, 200: {}},
    {0: {f"group.{MAX_STANDBY_REPLICAS}": "3"}},
)


@pytest.mark.parametrize(
    ("from_ms", "to_ms", "bounds"),
    [(0, 99, (1000, 1000)), (50, 100, (7, 1000)), (100, 199, (7, 7)), (199, 300, (7, 1000)), (200, 300, (1000, 1000))],
)
def test_all_that_was_in_force_between_two_times_counts(from_ms: int, to_ms: int, bounds: tuple[int, int]) -> None:
    assert bounds_of(SETTINGS)("g")(ASSIGNMENT_INTERVAL, from_ms, to_ms) == bounds
    assert bounds_of(SETTINGS)("other")(ASSIGNMENT_INTERVAL, from_ms, to_ms) == (1000, 1000)


def test_a_default_counts_where_the_file_of_the_brokers_is_known() -> None:
    assert bounds_of(SETTINGS)("g")(MAX_STANDBY_REPLICAS, 0, 0) == (3, 3)
    assert bounds_of(SETTINGS)("g")("streams.heartbeat.interval.ms", 0, 0) == (5000, 5000)
    of_groups_alone = over_time({0: {"g": {ASSIGNMENT_INTERVAL: Setting(value="7")}}}, {})
    assert bounds_of(of_groups_alone)("g")(ASSIGNMENT_INTERVAL, 5, 6) == (7, 7)
    assert bounds_of(of_groups_alone)("g")("streams.heartbeat.interval.ms", 5, 6) is None
    assert bounds_of(NO_SETTINGS)("g")(ASSIGNMENT_INTERVAL, 5, 6) is None


def test_what_is_no_number_is_unknown() -> None:
    odd = over_time({0: {"g": {ASSIGNMENT_INTERVAL: Setting(value="soon")}}}, {})
    assert bounds_of(odd)("g")(ASSIGNMENT_INTERVAL, 0, 1) is None
