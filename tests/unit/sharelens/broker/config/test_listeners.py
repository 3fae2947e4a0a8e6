"""Where the broker listens."""

import pytest

from sharelens.broker.config.listeners import controller_listeners, is_loopback, listeners
from sharelens.broker.config.settings import Settings
from sharelens.broker.errors import ConfigError


def bound_listeners(values, listen=None, allow_remote=False):
    return [
        (listener.host, listener.port, listener.advertised)
        for listener in listeners(Settings(values), listen=listen, allow_remote=allow_remote)
    ]


def test_an_empty_host_is_the_loopback_address():
    assert bound_listeners({}) == [("127.0.0.1", 9092, None)]
    assert bound_listeners({}, listen=":0") == [("127.0.0.1", 0, None)]
    assert bound_listeners({"listeners": "PLAINTEXT://:9093"}) == [("127.0.0.1", 9093, None)]


def test_an_address_that_other_machines_reach_needs_the_option():
    for values, listen in (({}, "0.0.0.0:9092"), ({"listeners": "PLAINTEXT://broker1:9092"}, None), ({}, "[::]:1")):
        with pytest.raises(ConfigError, match="--allow-remote"):
            bound_listeners(values, listen)
    assert bound_listeners({}, "192.0.2.1:9092", allow_remote=True) == [("192.0.2.1", 9092, None)]


def test_a_listener_on_all_addresses_needs_one_to_tell_clients():
    with pytest.raises(ConfigError, match=r"set advertised\.listeners"):
        bound_listeners({}, "0.0.0.0:9092", allow_remote=True)
    output = {"advertised.listeners": "PLAINTEXT://broker1:9092"}
    assert bound_listeners(output, "0.0.0.0:1", allow_remote=True) == [("0.0.0.0", 1, ("broker1", 9092))]
    assert bound_listeners(output, "192.0.2.1:1", allow_remote=True) == [("192.0.2.1", 1, None)]
    values = {"listeners": "PLAINTEXT://0.0.0.0:9092", "advertised.listeners": "PLAINTEXT://broker1:9092"}
    assert bound_listeners(values, allow_remote=True) == [("0.0.0.0", 9092, ("broker1", 9092))]


def test_clients_of_a_loopback_listener_are_never_sent_to_another_machine():
    values = {"listeners": "PLAINTEXT://:9092", "advertised.listeners": "PLAINTEXT://broker1.example:9092"}
    assert bound_listeners(values) == [("127.0.0.1", 9092, None)]
    values["advertised.listeners"] = "PLAINTEXT://localhost:9093"
    assert bound_listeners(values) == [("127.0.0.1", 9092, ("localhost", 9093))]


def test_controller_listeners_are_not_served():
    values = {
        "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:SASL_SSL,PLAINTEXT:PLAINTEXT",
    }
    assert bound_listeners(values) == [("127.0.0.1", 9092, None)]
    assert controller_listeners(Settings(values)) == ["CONTROLLER://:9093"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"listeners": "SSL://:9093"}, ["SSL"]),
        ({"listeners": "PLAINTEXT://:9092,SASL_PLAINTEXT://:9093"}, ["PLAINTEXT", "SASL_PLAINTEXT"]),
        ({"listeners": "CLIENTS://:9093", "listener.security.protocol.map": "CLIENTS:sasl_ssl"}, ["SASL_SSL"]),
    ],
)
def test_the_protocol_of_a_listener_is_that_of_the_map_or_its_name(values, expected):
    bound = listeners(Settings(values), listen=None, allow_remote=False)
    assert [listener.protocol for listener in bound] == expected


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"listeners": "CLIENTS://:9093"}, "listener CLIENTS://:9093 has no protocol: add CLIENTS:PROTOCOL"),
        ({"listeners": "SSL://:9093", "listener.security.protocol.map": "A:SSL"}, "has no protocol"),
        ({"listeners": "SSL://:9093", "listener.security.protocol.map": "SSL:TLS"}, "names no protocol of PLAINTEXT"),
        ({"listeners": "SSL://:9093", "listener.security.protocol.map": "SSL"}, "is no NAME:PROTOCOL"),
    ],
)
def test_a_listener_without_a_protocol_is_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        bound_listeners(values)


@pytest.mark.parametrize(
    ("values", "is_allowed"),
    [
        ({"listeners": "SASL_PLAINTEXT://broker1:9093"}, True),
        ({"listeners": "SASL_SSL://broker1:9093"}, True),
        ({"listeners": "SSL://broker1:9093"}, False),
        ({"listeners": "SSL://broker1:9093", "ssl.client.auth": "requested"}, False),
        ({"listeners": "SSL://broker1:9093", "listener.name.ssl.ssl.client.auth": "required"}, True),
        ({"listeners": "PLAINTEXT://broker1:9093", "ssl.client.auth": "required"}, False),
    ],
)
def test_other_machines_reach_a_listener_only_where_all_clients_authenticate(values, is_allowed):
    if is_allowed:
        assert bound_listeners(values) == [("broker1", 9093, None)]
    else:
        with pytest.raises(ConfigError, match="has no authentication; give it SASL or"):
            bound_listeners(values)


@pytest.mark.parametrize("text", ["127.0.0.1", "127.0.0.1:x", "127.0.0.1:65536", "a:b:1", "::1:9092"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ConfigError):
        bound_listeners({}, text)


def test_which_hosts_are_this_machine():
    assert is_loopback("127.1.2.3")
    assert is_loopback("::1")
    assert is_loopback("localhost")
    assert not is_loopback("localhost.example")


def test_bracketed_addresses():
    assert bound_listeners({}, "[::1]:9092") == [("::1", 9092, None)]
