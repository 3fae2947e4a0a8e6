"""Configurations of groups."""

import pytest

from sharelens.broker.config.groups import PerGroup, ShareGroups, check_group, consumer_group_settings
from sharelens.broker.config.settings import Settings, Source
from sharelens.broker.errors import ConfigError
from sharelens.broker.ports import ShareGroupSettings


def settings_of(group_configs, values=None, share_version=1):
    return ShareGroups(Settings(values), lambda group_id: group_configs, lambda: share_version)("g")


def test_without_anything_set_the_defaults_are_those_of_kafka():
    assert settings_of({}) == ShareGroupSettings()


def test_a_groups_own_values_come_before_the_brokers():
    values = {"group.share.record.lock.duration.ms": "20000", "group.share.delivery.count.limit": "3"}
    settings = settings_of(
        {"share.record.lock.duration.ms": "15000", "share.isolation.level": "read_committed"}, values
    )
    assert settings.record_lock_duration_ms == 15_000
    assert settings.delivery_count_limit == 3
    assert settings.isolation_level == "read_committed"


def test_a_value_that_the_broker_no_longer_allows_is_brought_within_its_bounds():
    values = {"group.share.max.delivery.count.limit": "6"}
    assert settings_of({"share.delivery.count.limit": "9"}, values).delivery_count_limit == 6


@pytest.mark.parametrize(
    ("text", "reset"),
    [
        ("earliest", "earliest"),
        ("latest", "latest"),
        ("by_duration:PT1H30M", 5_400_000),
        ("by_duration:P2DT0.5S", 172_800_500),
    ],
)
def test_where_a_share_partition_begins(text, reset):
    assert settings_of({"share.auto.offset.reset": text}).auto_offset_reset == reset


def test_dead_letters_need_share_version_2():
    group_configs = {"errors.deadletterqueue.topic.name": "dlq.t", "errors.deadletterqueue.copy.record.enable": "true"}
    assert settings_of(group_configs, share_version=1).dead_letter_topic is None
    settings = settings_of(group_configs, share_version=2)
    assert (settings.dead_letter_topic, settings.dead_letter_copy_record) == ("dlq.t", True)


@pytest.mark.parametrize(
    ("group_configs", "message"),
    [
        ({"share.delivery.count.limit": "11"}, "from 2 to 10"),
        ({"share.delivery.count.limit": "1"}, "of at least 2"),
        ({"share.record.lock.duration.ms": "14999"}, "from 15000 to 60000"),
        ({"share.partition.max.record.locks": "4001"}, "from 100 to 4000"),
        ({"share.session.timeout.ms": "44999"}, "from 45000 to 60000"),
        ({"share.assignment.interval.ms": "15001"}, "from 0 to 15000"),
        ({"consumer.session.timeout.ms": "60001"}, "from 45000 to 60000"),
        ({"consumer.heartbeat.interval.ms": "4999"}, "from 5000 to 15000"),
        ({"consumer.assignment.interval.ms": "15001"}, "from 0 to 15000"),
        ({"consumer.max.size": "3"}, "unknown configuration consumer.max.size"),
        ({"share.auto.offset.reset": "none"}, "takes earliest, latest or by_duration"),
        ({"share.auto.offset.reset": "by_duration:-PT1H"}, "with a positive duration"),
        ({"share.auto.offset.reset": "by_duration:P"}, "with a positive duration"),
        ({"share.isolation.level": "READ_COMMITTED"}, "takes read_committed, read_uncommitted"),
        ({"share.renew.acknowledge.enable": "1"}, "takes true or false"),
        ({"group.share.isolation.level": "read_committed"}, "unknown configuration group.share.isolation.level"),
    ],
)
def test_what_kafka_refuses_is_refused_with_the_range(group_configs, message):
    with pytest.raises(ConfigError) as caught:
        check_group(Settings(), group_configs)
    assert message in str(caught.value)


def test_the_session_must_outlast_the_heartbeat():
    values = {
        "group.share.min.session.timeout.ms": "100",
        "group.share.min.heartbeat.interval.ms": "100",
        "group.share.heartbeat.interval.ms": "5000",
    }
    with pytest.raises(ConfigError, match=r"must be above share\.heartbeat\.interval\.ms=5000"):
        check_group(Settings(values), {"share.session.timeout.ms": "5000"})


def test_a_consumer_group_has_its_own_values_within_the_brokers_bounds():
    values = {
        "group.consumer.assignors": "org.apache.kafka.coordinator.group.assignor.RangeAssignor,uniform",
        "group.consumer.max.size": "7",
        "group.consumer.max.session.timeout.ms": "50000",
    }
    group_configs = {"consumer.session.timeout.ms": "60000", "consumer.assignment.interval.ms": "0"}
    settings = consumer_group_settings(Settings(values), group_configs, lambda expression: None)
    machine = settings.machine
    assert (settings.session_timeout_ms, settings.regex_refresh_interval_ms) == (50_000, 600_000)
    assert (machine.heartbeat_interval_ms, machine.assignment_interval_ms, machine.max_size) == (5_000, 0, 7)
    assert list(machine.assignors) == ["range", "uniform"]


def test_settings_of_a_kind_are_computed_once_for_each_configuration():
    broker, configs_by_group, computed = Settings(), {"g": {}, "h": {}}, []
    groups = PerGroup(broker, configs_by_group.__getitem__, lambda configs: computed.append(dict(configs)) or computed)
    for group_id in ("g", "g", "h", "g"):
        groups(group_id)
    assert computed == [{}, {}]
    configs_by_group["g"] = {"consumer.heartbeat.interval.ms": "6000"}
    groups("g")
    broker.change({"group.consumer.assignment.interval.ms": ("0", Source.DYNAMIC_BROKER)})
    groups("g")
    assert computed[2:] == [configs_by_group["g"]] * 2


def test_settings_follow_every_change_of_what_they_are_made_of():
    broker, configs_by_group, level = Settings(), {"g": {"share.delivery.count.limit": "4"}}, [1]
    groups = ShareGroups(broker, lambda group_id: configs_by_group[group_id], lambda: level[0])
    assert groups("g").delivery_count_limit == 4
    configs_by_group["g"] = {"share.delivery.count.limit": "6", "errors.deadletterqueue.topic.name": "dlq.t"}
    assert groups("g").delivery_count_limit == 6
    assert groups("g").dead_letter_topic is None
    level[0] = 2
    assert groups("g").dead_letter_topic == "dlq.t"
    broker.change({"group.share.record.lock.duration.ms": ("20000", Source.DYNAMIC_BROKER)})
    assert groups("g").record_lock_duration_ms == 20_000
    assert groups("g") is groups("g")
