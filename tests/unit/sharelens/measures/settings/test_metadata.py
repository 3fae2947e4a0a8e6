"""Group settings in force at a time, by the values of the metadata log."""

from dataclasses import replace

import pytest

from sharelens.measures.settings.metadata import group_observations
from sharelens.measures.settings.observations import Entry, Observation, settings_of
from sharelens.measures.settings.over_time import BROKER_CONFIG, DELIVERY_COUNT_LIMIT, GroupSettings
from state_model.audit.model_groups import bounds as settings
from state_model.metadata.history import Moment, Validity

ASSIGNMENT_INTERVAL = f"streams.{settings.ASSIGNMENT_INTERVAL}"


def setting(
    value: str, begin: int, end: int | None = None, *, name: str = DELIVERY_COUNT_LIMIT, earlier: bool = False
) -> Validity:
    return Validity(
        key=("config", "group", "g", name),
        content={"value": value, "hidden": None},
        begin=Moment(begin, begin * 10),
        end=None if end is None else Moment(end, end * 10),
        began_earlier=earlier,
    )


def settings(*rows: Validity, first_ms: int | None = None) -> GroupSettings:
    return settings_of(group_observations(rows, first_ms)).groups


def limits(of: GroupSettings, *times_ms: int) -> list[str | None]:
    return [of.of("g", DELIVERY_COUNT_LIMIT, time_ms).value for time_ms in times_ms]


def test_value_is_in_force_from_its_record_to_the_next_or_its_removal() -> None:
    of_group = settings(setting("3", 1, 5), setting("7", 5, 8))
    assert limits(of_group, 9, 10, 49, 50, 79, 80) == [None, "3", "3", "7", "7", None]
    assert of_group.of("g", DELIVERY_COUNT_LIMIT, 10).origin == "dynamic_group_config"


def test_values_of_one_moment_leave_the_last_one() -> None:
    assert limits(settings(setting("3", 5, 5), setting("7", 5)), 49, 50) == [None, "7"]


def test_values_of_the_first_snapshot_count_from_the_beginning_and_of_a_later_one_do_not() -> None:
    first, later = setting("3", 5, 9, earlier=True), setting("7", 9, earlier=True)
    assert limits(settings(first, later, first_ms=50), 1, 89, 90) == ["3", "3", "7"]


def test_settings_that_no_measure_reads_and_other_resources_are_left_out() -> None:
    of_broker = Validity(
        key=("config", "broker", "1", DELIVERY_COUNT_LIMIT), content={"value": "4"}, begin=Moment(1, 1)
    )
    assert limits(settings(setting("9", 1, name="share.heartbeat.interval.ms"), of_broker), 100) == [None]


def interval(value: str, begin: int, end: int | None = None, *, broker: str = "") -> Validity:
    key = ("config", "broker", broker, f"group.{ASSIGNMENT_INTERVAL}")
    return replace(setting(value, begin, end), key=key)


def intervals(of: GroupSettings, *times_ms: int) -> list[str | None]:
    return [of.of("g", ASSIGNMENT_INTERVAL, time_ms).value for time_ms in times_ms]


def test_the_default_of_all_brokers_counts_for_groups_without_their_own_value() -> None:
    group_setting = setting("9", 3, 5, name=ASSIGNMENT_INTERVAL)
    of_group = settings(interval("4", 1, 7), interval("6", 7, 8), group_setting)
    assert intervals(of_group, 9, 10, 30, 50, 70, 80) == [None, "4", "9", "4", "6", None]
    assert of_group.of("g", ASSIGNMENT_INTERVAL, 10).origin == "dynamic_default_broker_config"


def test_another_value_of_one_broker_leaves_it_unknown_which_one_counts() -> None:
    brokers = [interval("4", 1), interval("4", 2, 6, broker="1"), interval("5", 3, 5, broker="2")]
    assert intervals(settings(*brokers), 10, 20, 30, 50, 60) == ["4", "4", None, "4", "4"]
    assert intervals(settings(interval("4", 1, broker="1")), 10) == [None]


def test_the_dynamic_value_of_brokers_counts_before_that_of_their_files() -> None:
    file = Observation(kind=BROKER_CONFIG, from_ms=0, entries=(Entry("", f"group.{ASSIGNMENT_INTERVAL}", "7"),))
    observed = settings_of([file, *group_observations([interval("4", 1, 5)], None)]).groups
    assert intervals(observed, 9, 10, 50) == ["7", "4", "7"]


def test_isolation_level_of_a_group_without_a_value_is_kafkas_default() -> None:
    assert settings().of("g", "share.isolation.level").value == "read_uncommitted"


@pytest.mark.slow
def test_more_settings_than_fit_the_memory_count_as_unknown() -> None:
    rows = [
        replace(setting("3", number), key=("config", "group", f"g{number}", DELIVERY_COUNT_LIMIT))
        for number in range(1001)
    ]
    assert group_observations(rows, None) == ()
    assert len(group_observations(rows[:900], None)) == 900
