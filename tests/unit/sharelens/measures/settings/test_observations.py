"""Observations of settings: what is new, and what holds when."""

from sharelens.measures.settings.observations import news, overlaid, settings_of
from sharelens.measures.settings.over_time import DEAD_LETTER_TOPIC, DELIVERY_COUNT_LIMIT
from tests.settings_in_files import broker_config, dead_letter_topics, end_offsets, group_configs


def test_only_what_says_something_else_of_its_time_is_new():
    stored = [group_configs(10, g=3), group_configs(20, g=5)]
    assert news(stored, [group_configs(15, g=3), group_configs(30, g=5), group_configs(5, g=3)]) == []
    new_observations = [group_configs(15, g=4), group_configs(20, g=6), broker_config(7)]
    assert news(stored, new_observations) == sorted(new_observations, key=lambda observation: observation.from_ms)


def test_of_equal_files_only_the_first_is_new():
    assert news([], [group_configs(20, g=3), group_configs(10, g=3)]) == [group_configs(10, g=3)]


def test_older_end_offsets_are_not_new():
    assert news([end_offsets(10, orders=5)], [end_offsets(9, orders=4)]) == []
    newer = end_offsets(11, orders=4)
    assert news([end_offsets(10, orders=5)], [newer]) == [newer]


def test_a_chosen_kind_replaces_the_stored_one_for_all_time():
    stored = [group_configs(10, g=3), group_configs(20, g=5), broker_config(7)]
    groups = settings_of(overlaid(stored, [group_configs(99, g=4)])).groups
    assert [groups.of("g", DELIVERY_COUNT_LIMIT, at_ms).number for at_ms in (0, 15, 25, 100)] == [4, 4, 4, 4]
    assert groups.of("h", DELIVERY_COUNT_LIMIT).number == 7


def test_a_group_that_a_later_file_lacks_has_the_brokers_setting():
    groups = settings_of([group_configs(10, g=3), group_configs(20, h=5), broker_config(7)]).groups
    assert [groups.of("g", DELIVERY_COUNT_LIMIT, at_ms).number for at_ms in (15, 25)] == [3, 7]


def test_topics_of_all_times_are_searched_for_dead_letters():
    files = [dead_letter_topics("parked"), *(group_configs(at, DEAD_LETTER_TOPIC, g=f"t{at}") for at in (10, 20))]
    assert settings_of(files).dead_letter_topics == {"parked", "t10", "t20"}


def test_the_newest_end_offsets_count():
    assert settings_of([end_offsets(10, orders=5, old=1), end_offsets(20, orders=6)]).end_offsets == {("orders", 0): 6}
