"""AlterConfigs and IncrementalAlterConfigs: the codes of Kafka 4.3.1 for the same requests."""

import pytest

from tests.broker_parts.dispatched_broker import DispatchedBroker

DESCRIBE, REPLACE, CHANGE = 32, 33, 44
TOPIC, BROKER, LOGGER, GROUP = 2, 4, 8, 32
OWN_SOURCES = {TOPIC: {1}, BROKER: {2, 3}, GROUP: {8}}
"""Sources of values that were set on the resource itself."""
UNKNOWN_TOPIC, INVALID_CONFIG, INVALID_REQUEST = 3, 40, 42
SET, DELETE = 0, 1
JAAS_KEY = "listener.name.named.plain.sasl.jaas.config"


@pytest.fixture
def broker(tmp_path):
    """Has two topics."""
    served = DispatchedBroker(tmp_path / "log")
    served.create("orders", 1)
    served.create("mail", 1)
    yield served
    served.close()


def replace(broker, *resources, version=2, validate_only=False):
    """The error code of each resource (type, name, configs) of an AlterConfigs."""
    fields = [
        {
            "resource_type": kind,
            "resource_name": name,
            "configs": [{"name": key, "value": text} for key, text in configs],
        }
        for kind, name, configs in resources
    ]
    responses = broker.call(REPLACE, version, resources=fields, validate_only=validate_only)["responses"]
    assert [(each["resource_type"], each["resource_name"]) for each in responses] == [(k, n) for k, n, _ in resources]
    return [int(each["error_code"]) for each in responses]


def change(broker, kind, name, *operations):
    configs = [{"name": key, "config_operation": operation, "value": text} for key, operation, text in operations]
    resource = {"resource_type": kind, "resource_name": name, "configs": configs}
    (answer,) = broker.call(CHANGE, 1, resources=[resource])["responses"]
    return int(answer["error_code"])


def own_configs(broker, kind, name):
    """The values that were set on the resource itself."""
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": None}
    (answer,) = broker.call(DESCRIBE, 4, resources=[resource])["results"]
    return {
        each["name"]: each["value"] for each in answer["configs"] if int(each["config_source"]) in OWN_SOURCES[kind]
    }


@pytest.mark.parametrize("version", [0, 1, 2])
def test_all_configurations_of_a_topic_are_replaced(broker, version):
    assert change(broker, TOPIC, "orders", ("retention.ms", SET, "1000")) == 0
    configs = [("cleanup.policy", "compact"), ("max.message.bytes", "5000")]
    assert replace(broker, (TOPIC, "orders", configs), version=version) == [0]
    assert own_configs(broker, TOPIC, "orders") == dict(configs)
    assert replace(broker, (TOPIC, "orders", []), version=version) == [0]
    assert own_configs(broker, TOPIC, "orders") == {}


def test_all_configurations_of_a_group_are_replaced(broker):
    assert replace(broker, (GROUP, "g", [("share.session.timeout.ms", "50000")])) == [0]
    assert replace(broker, (GROUP, "g", [("share.heartbeat.interval.ms", "6000")])) == [0]
    assert own_configs(broker, GROUP, "g") == {"share.heartbeat.interval.ms": "6000"}


def test_configurations_of_the_node_and_of_all_brokers_are_apart(broker):
    assert replace(broker, (BROKER, "", [("message.max.bytes", "1000000"), ("log.retention.ms", "8000")])) == [0]
    assert replace(broker, (BROKER, "1", [("log.retention.ms", "7000")])) == [0]
    assert own_configs(broker, BROKER, "1") == {"message.max.bytes": "1000000", "log.retention.ms": "7000"}
    assert replace(broker, (BROKER, "1", [("log.segment.bytes", "2000000")])) == [0]
    assert own_configs(broker, BROKER, "") == {"message.max.bytes": "1000000", "log.retention.ms": "8000"}
    assert own_configs(broker, BROKER, "1") == own_configs(broker, BROKER, "") | {"log.segment.bytes": "2000000"}


def test_replaced_configurations_stay_after_a_restart(broker):
    configs = [("retention.ms", "1000")]
    assert replace(broker, (TOPIC, "orders", configs), (BROKER, "1", [("log.retention.ms", "7000")])) == [0, 0]
    broker.restart()
    assert own_configs(broker, TOPIC, "orders") == dict(configs)
    assert own_configs(broker, BROKER, "1") == {"log.retention.ms": "7000"}


def test_a_validated_request_changes_nothing(broker):
    requests = (
        (TOPIC, "orders", [("retention.ms", "1000")]),
        (BROKER, "1", [("log.retention.ms", "7000")]),
        (GROUP, "g", [("share.heartbeat.interval.ms", "6000")]),
        (TOPIC, "orders2", [("retention.ms", "1000")]),
    )
    assert replace(broker, *requests, validate_only=True) == [0, 0, 0, UNKNOWN_TOPIC]
    assert [own_configs(broker, kind, name) for kind, name, _ in requests[:3]] == [{}, {}, {}]


def test_a_refused_resource_keeps_its_configurations_and_others_are_altered(broker):
    assert replace(broker, (TOPIC, "orders", [("retention.ms", "1000")])) == [0]
    bad = [("retention.ms", "soon"), ("max.message.bytes", "5000")]
    assert replace(broker, (TOPIC, "orders", bad), (TOPIC, "mail", [("retention.ms", "77")])) == [INVALID_CONFIG, 0]
    assert own_configs(broker, TOPIC, "orders") == {"retention.ms": "1000"}
    assert own_configs(broker, TOPIC, "mail") == {"retention.ms": "77"}


@pytest.mark.parametrize(
    ("kind", "name", "configs", "code"),
    [
        (TOPIC, "orders", [("no.such.key", "1")], INVALID_CONFIG),
        (TOPIC, "orders", [("retention.ms", None)], INVALID_REQUEST),
        (TOPIC, "orders", [("retention.ms", "1"), ("retention.ms", "2")], INVALID_REQUEST),
        (TOPIC, "no-such-topic", [("retention.ms", "1")], UNKNOWN_TOPIC),
        (BROKER, "2", [("log.retention.ms", "1")], INVALID_REQUEST),
        (BROKER, "x", [("log.retention.ms", "1")], INVALID_REQUEST),
        (BROKER, "1", [("log.retention.ms", "soon")], INVALID_REQUEST),
        (BROKER, "1", [("log.retention.check.interval.ms", "5000")], INVALID_REQUEST),
        (BROKER, "1", [("sasl.jaas.config", "any")], INVALID_REQUEST),
        (BROKER, "", [(JAAS_KEY, "any")], INVALID_REQUEST),
        (GROUP, "g", [("no.such.key", "1")], INVALID_CONFIG),
        (GROUP, "g", [("share.heartbeat.interval.ms", "60000000")], INVALID_CONFIG),
        (GROUP, "", [("share.heartbeat.interval.ms", "6000")], INVALID_REQUEST),
        (LOGGER, "1", [("root", "INFO")], INVALID_REQUEST),
        (77, "1", [("root", "INFO")], INVALID_REQUEST),
    ],
)
def test_both_requests_refuse_with_the_code_of_kafka(broker, kind, name, configs, code):
    assert replace(broker, (kind, name, configs)) == [code]
    assert change(broker, kind, name, *((key, SET, text) for key, text in configs)) == code


def test_a_resource_that_is_named_twice_is_refused(broker):
    orders = (TOPIC, "orders", [("retention.ms", "1000")])
    assert replace(broker, orders, (TOPIC, "mail", []), orders) == [INVALID_REQUEST, 0, INVALID_REQUEST]
    assert own_configs(broker, TOPIC, "orders") == {}


def test_a_deleted_key_needs_no_value(broker):
    assert change(broker, TOPIC, "orders", ("retention.ms", SET, "1000")) == 0
    assert change(broker, TOPIC, "orders", ("retention.ms", DELETE, None)) == 0
    assert own_configs(broker, TOPIC, "orders") == {}


def test_a_login_module_of_a_listener_is_stored_and_described_without_its_text(broker):
    def described():
        resource = {"resource_type": BROKER, "resource_name": "1", "configuration_keys": [JAAS_KEY]}
        (answer,) = broker.call(DESCRIBE, 4, resources=[resource], include_synonyms=True)["results"]
        return [(each["value"], int(each["config_source"]), each["is_sensitive"]) for each in answer["configs"]]

    assert described() == []
    assert change(broker, BROKER, "1", (JAAS_KEY, SET, "no login module")) == 0
    broker.restart()
    assert described() == [(None, 2, True)]
    assert change(broker, BROKER, "1", (JAAS_KEY, DELETE, None)) == 0
    assert described() == []
