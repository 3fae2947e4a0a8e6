"""Which setting counts for a group, and where it is from."""

import numpy as np

from sharelens.measures.settings.over_time import (
    DELIVERY_COUNT_LIMIT,
    ISOLATION_LEVEL,
    GroupSettings,
    Setting,
    bounds_of,
    changed_groups,
    in_force_at,
    over_time,
)

OWN_SETTINGS = {"g": {DELIVERY_COUNT_LIMIT: Setting(value="3", origin="dynamic_group_config")}}


def test_a_groups_own_setting_counts_before_the_brokers():
    settings = GroupSettings(groups=OWN_SETTINGS, broker={"group.share.delivery.count.limit": "7"})
    assert settings.of("g", DELIVERY_COUNT_LIMIT) == Setting(value="3", origin="dynamic_group_config")
    assert settings.of("h", DELIVERY_COUNT_LIMIT) == Setting(value="7", origin="broker_config")


def test_kafkas_default_counts_only_when_the_file_was_given_that_would_say_otherwise():
    assert GroupSettings(broker={}).of("h", DELIVERY_COUNT_LIMIT) == Setting(value="5", origin="kafka_default")
    assert GroupSettings(groups=OWN_SETTINGS).of("h", DELIVERY_COUNT_LIMIT) == Setting()
    assert GroupSettings(groups=OWN_SETTINGS).of("h", ISOLATION_LEVEL) == Setting(
        value="read_uncommitted", origin="kafka_default"
    )
    assert GroupSettings(broker={}).of("h", ISOLATION_LEVEL) == Setting()


def test_what_is_no_number_is_unknown():
    assert Setting(value="many", origin="x").number is None
    assert Setting().number is None
    assert Setting(value=str(2**31), origin="x").number is None
    assert Setting(value="9" * 5000, origin="x").number is None
    assert Setting(value=str(2**31 - 1), origin="x").number == 2**31 - 1
    assert Setting(value="12", origin="x").number == 12


def limits(**values: int) -> dict[str, dict[str, Setting]]:
    return {group: {DELIVERY_COUNT_LIMIT: Setting(value=str(value), origin="x")} for group, value in values.items()}


CHANGED = over_time({10: limits(g=3, h=4), 20: limits(g=5, h=4)}, {})


def test_bounds_are_those_of_all_times_and_the_limits_where_a_time_is_unknown():
    least, upper_bounds = bounds_of(CHANGED, DELIVERY_COUNT_LIMIT, ["h", "g", "new", "g"], (2, 10))
    assert least.tolist() == [4, 3, 2, 3]
    assert upper_bounds.tolist() == [4, 5, 10, 5]


def test_the_first_settings_count_from_the_beginning_and_each_until_the_next():
    times = np.array([0, 19, 20, 99, 5])
    places, in_force = in_force_at(CHANGED, np.array([0, 0, 0, 0, 1]), times)
    moments = [in_force[place] for place in places.tolist()]
    assert [number for number, _ in moments] == [0, 0, 0, 0, 1]
    assert [settings.of("gh"[number], DELIVERY_COUNT_LIMIT).number for number, settings in moments] == [3, 3, 5, 5, 4]


def test_no_moments_have_no_settings():
    places, in_force = in_force_at(CHANGED, np.array([], np.int64), np.array([], np.int64))
    assert (places.tolist(), in_force) == ([], [])


def test_a_timeline_has_the_changes_of_the_group_alone():
    assert [(at, limit.number) for at, (limit,) in CHANGED.timeline("g", [DELIVERY_COUNT_LIMIT])] == [(0, 3), (20, 5)]
    assert [(at, limit.number) for at, (limit,) in CHANGED.timeline("h", [DELIVERY_COUNT_LIMIT])] == [(0, 4)]


def test_changed_groups_are_those_whose_settings_or_times_differ():
    names = [DELIVERY_COUNT_LIMIT]
    assert changed_groups(CHANGED, CHANGED, "gh", names) == set()
    assert changed_groups(over_time({10: limits(g=3, h=4)}, {}), CHANGED, "gh", names) == {"g"}
    later = over_time({10: limits(g=3, h=4), 21: limits(g=5, h=4)}, {})
    assert changed_groups(CHANGED, later, "gh", names) == {"g"}
    assert changed_groups(CHANGED, CHANGED.in_force(0), "gh", [ISOLATION_LEVEL]) == set()
