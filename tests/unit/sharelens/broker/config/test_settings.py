"""The configuration in force."""

import pytest

from sharelens.broker.config.broker_keys import BROKER
from sharelens.broker.config.known_keys import is_ignored
from sharelens.broker.config.settings import Settings, Source, parse_all, parse_overrides
from sharelens.broker.config.topic_keys import TOPIC
from sharelens.broker.errors import ConfigError


def test_defaults_are_kafkas():
    settings = Settings()
    assert settings.integer("group.share.partition.max.record.locks") == 2000
    assert settings.integer("share.coordinator.snapshot.update.records.per.snapshot") == 500
    assert settings.flag("auto.create.topics.enable")
    assert settings.names("log.cleanup.policy") == ("delete",)
    assert settings.text("log.dirs") == ""


def test_every_default_is_a_value_that_its_own_key_takes():
    default_count = 0
    for definition in (*BROKER.values(), *TOPIC.values()):
        text = definition.text(definition.default)
        if text is not None:
            default_count += 1
            assert definition.parse(text) == definition.default, definition.name
    assert default_count > 80


def test_no_key_is_both_used_and_ignored():
    assert [
        key
        for key in BROKER
        if is_ignored(key)
        and not key.startswith(("transaction.state.log.", "replica.", "controller.", "ssl.", "sasl."))
    ] == []


@pytest.mark.parametrize(
    ("key", "text", "message"),
    [
        (
            "group.share.delivery.count.limit",
            "11",
            "group.share.delivery.count.limit='11': takes an integer from 2 to 10",
        ),
        ("group.share.delivery.count.limit", "x", "takes an integer from 2 to 10"),
        ("group.share.max.size", "", "takes an integer from 1 to 1000"),
        ("auto.create.topics.enable", "yes", "takes true or false"),
        ("log.message.timestamp.type", "Never", "takes CreateTime, LogAppendTime"),
        ("log.cleanup.policy", "delete,shred", "takes compact, delete"),
        ("log.retention.ms", str(2**63), "takes an integer"),
        ("share.coordinator.snapshot.update.records.per.snapshot", "501", "from 0 to 500"),
        ("group.share.assignors", "range", "takes simple"),
        ("group.consumer.assignors", "sticky", "takes uniform, range, org.apache.kafka"),
        ("group.consumer.assignors", "range,range", "takes each assignor once"),
        ("group.consumer.assignors", "", "at least one"),
        ("group.consumer.migration.policy", "maybe", "takes bidirectional, upgrade, downgrade, disabled"),
        ("group.consumer.regex.refresh.interval.ms", "9999", "takes an integer of at least 10000"),
        ("group.consumer.max.size", "0", "takes an integer of at least 1"),
    ],
)
def test_a_bad_value_stops_with_key_and_range(key, text, message):
    with pytest.raises(ConfigError) as caught:
        Settings({key: text})
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "values",
    [
        {"group.share.record.lock.duration.ms": "10000"},
        {"group.share.max.record.lock.duration.ms": "30000", "group.share.record.lock.duration.ms": "31000"},
        {"group.share.session.timeout.ms": "61000"},
        {"group.consumer.session.timeout.ms": "44999"},
        {"group.consumer.heartbeat.interval.ms": "15001"},
        {"group.consumer.assignment.interval.ms": "15001"},
        {"group.consumer.min.assignment.interval.ms": "2000"},
        {
            "group.consumer.min.session.timeout.ms": "5000",
            "group.consumer.session.timeout.ms": "5000",
        },
        {"group.min.session.timeout.ms": "10", "group.max.session.timeout.ms": "9"},
    ],
)
def test_values_that_contradict_each_other_are_refused(values):
    with pytest.raises(ConfigError, match="must be"):
        Settings(values)


def test_keys_of_a_real_broker_are_ignored_and_listed_apart_from_unknown_ones():
    settings = Settings({"num.network.threads": "3", "ssl.provider": "x", "no.such.key": "3"})
    assert settings.given_keys.ignored == ("num.network.threads", "ssl.provider")
    assert settings.given_keys.unknown == ("no.such.key",)


def test_changes_come_before_what_was_given_and_defaults_come_last():
    settings = Settings({"message.max.bytes": "2000"})
    settings.change({"message.max.bytes": ("3000", Source.DYNAMIC_BROKER)})
    assert settings.integer("message.max.bytes") == 3000
    chain = [(setting.text, setting.source) for setting in settings.chain("message.max.bytes")]
    assert chain == [("3000", Source.DYNAMIC_BROKER), ("2000", Source.STATIC_BROKER), ("1048588", Source.DEFAULT)]


def test_a_change_that_can_not_be_used_leaves_everything_as_it_was():
    settings = Settings()
    with pytest.raises(ConfigError):
        settings.change({"message.max.bytes": ("-1", Source.DYNAMIC_BROKER)})
    assert settings.integer("message.max.bytes") == 1_048_588


def test_topics_take_the_brokers_values_in_the_finest_unit_that_is_given():
    assert Settings().topic_config({})["retention.ms"] == "604800000"
    assert Settings({"log.retention.hours": "1"}).topic_config({})["retention.ms"] == "3600000"
    settings = Settings({"log.retention.hours": "1", "log.retention.minutes": "5"})
    assert settings.topic_config({})["retention.ms"] == "300000"
    assert settings.topic_config({"retention.ms": "7"})["retention.ms"] == "7"
    assert Settings({"log.retention.minutes": "-1"}).topic_config({})["retention.ms"] == "-1"


def test_a_topics_chain_names_the_brokers_key():
    chain = Settings({"log.segment.bytes": "2000000"}).layers(
        TOPIC["segment.bytes"], {"segment.bytes": "1048576"}, Source.TOPIC
    )
    assert [(setting.name, setting.text, setting.source) for setting in chain] == [
        ("segment.bytes", "1048576", Source.TOPIC),
        ("log.segment.bytes", "2000000", Source.STATIC_BROKER),
        ("log.segment.bytes", "1073741824", Source.DEFAULT),
    ]


def test_unknown_keys_of_a_topic_are_refused():
    with pytest.raises(ConfigError, match=r"unknown configuration retention\.msec"):
        parse_all(TOPIC, {"retention.msec": "1"})


def test_overrides_are_keys_and_values():
    assert parse_overrides(["a=b=c", " d = "]) == {"a": "b=c", "d": " "}
    with pytest.raises(ConfigError, match="'a' is no key=value"):
        parse_overrides(["a"])


def test_a_listener_overrides_a_key_and_a_mechanism_overrides_both():
    settings = Settings(
        {
            "connections.max.reauth.ms": "1",
            "listener.name.ext.connections.max.reauth.ms": "2",
            "listener.name.ext.scram-sha-256.connections.max.reauth.ms": "3",
            "listener.name.ext.ssl.enabled.protocols": "TLSv1.3",
        }
    )
    name = "connections.max.reauth.ms"
    assert settings.listener_integer("EXT", name, "SCRAM-SHA-256") == 3
    assert settings.listener_integer("EXT", name, "PLAIN") == 2
    assert settings.listener_integer("OTHER", name) == 1
    assert settings.listener_names("Ext", "ssl.enabled.protocols") == ("TLSv1.3",)
    assert settings.listener_names("OTHER", "ssl.enabled.protocols") == ("TLSv1.2", "TLSv1.3")
    assert settings.given_keys.unknown == settings.given_keys.ignored == ()
    with pytest.raises(ConfigError, match=r"listener\.name\.ext\.ssl\.client\.auth='maybe'"):
        Settings({"listener.name.ext.ssl.client.auth": "maybe"})


def test_a_changed_login_module_is_stored_and_never_in_force():
    key = "listener.name.ext.plain.sasl.jaas.config"
    settings = Settings({key: "first"})
    settings.change({key: ("second", Source.DYNAMIC_BROKER)})
    assert settings.listener_text("EXT", "sasl.jaas.config", "PLAIN") == "first"
    assert [(each.text, each.source) for each in settings.chain(key)] == [
        ("second", Source.DYNAMIC_BROKER),
        ("first", Source.STATIC_BROKER),
    ]
    other_key = "listener.name.other.plain.sasl.jaas.config"
    settings.change({other_key: ("third", Source.DYNAMIC_BROKER)})
    assert settings.listener_value("OTHER", "sasl.jaas.config", "PLAIN") is None
    assert settings.listener_keys() == [key, other_key]


@pytest.mark.parametrize(
    ("key", "text", "problem"),
    [
        ("authorizer.class.name", "com.example.Mine", "takes org.apache.kafka.metadata.authorizer.StandardAuthorizer"),
        ("super.users", "User:a,b;c", "write User:c"),
        ("allow.everyone.if.no.acl.found", "perhaps", "takes true or false"),
    ],
)
def test_an_authorizer_that_would_not_protect_is_refused(key, text, problem):
    with pytest.raises(ConfigError, match=problem):
        Settings({key: text})
