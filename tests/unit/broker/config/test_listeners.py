"""Where the broker listens."""

import pytest

from broker.config.listeners import controller_listeners, is_loopback, listeners
from broker.config.settings import Settings
from broker.errors import ConfigError


def found(given, listen=None, allow_remote=False):
    return [
        (listener.host, listener.port, listener.advertised)
        for listener in listeners(Settings(given), listen=listen, allow_remote=allow_remote)
    ]


def test_an_empty_host_is_the_loopback_address():
    assert found({}) == [("127.0.0.1", 9092, None)]
    assert found({}, listen=":0") == [("127.0.0.1", 0, None)]
    assert found({"listeners": "PLAINTEXT://:9093"}) == [("127.0.0.1", 9093, None)]


def test_an_address_that_other_machines_reach_needs_to_be_asked_for():
    for given, listen in (({}, "0.0.0.0:9092"), ({"listeners": "PLAINTEXT://broker1:9092"}, None), ({}, "[::]:1")):
        with pytest.raises(ConfigError, match="--allow-remote"):
            found(given, listen)
    assert found({}, "192.0.2.1:9092", allow_remote=True) == [("192.0.2.1", 9092, None)]


def test_a_listener_on_all_addresses_needs_one_to_tell_clients():
    with pytest.raises(ConfigError, match=r"set advertised\.listeners"):
        found({}, "0.0.0.0:9092", allow_remote=True)
    told = {"advertised.listeners": "PLAINTEXT://broker1:9092"}
    assert found(told, "0.0.0.0:1", allow_remote=True) == [("0.0.0.0", 1, ("broker1", 9092))]
    assert found(told, "192.0.2.1:1", allow_remote=True) == [("192.0.2.1", 1, None)]
    given = {"listeners": "PLAINTEXT://0.0.0.0:9092", "advertised.listeners": "PLAINTEXT://broker1:9092"}
    assert found(given, allow_remote=True) == [("0.0.0.0", 9092, ("broker1", 9092))]


def test_clients_of_a_loopback_listener_are_never_sent_to_another_machine():
    given = {"listeners": "PLAINTEXT://:9092", "advertised.listeners": "PLAINTEXT://broker1.example:9092"}
    assert found(given) == [("127.0.0.1", 9092, None)]
    given["advertised.listeners"] = "PLAINTEXT://localhost:9093"
    assert found(given) == [("127.0.0.1", 9092, ("localhost", 9093))]


def test_controller_listeners_are_not_served():
    given = {
        "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:SASL_SSL,PLAINTEXT:PLAINTEXT",
    }
    assert found(given) == [("127.0.0.1", 9092, None)]
    assert controller_listeners(Settings(given)) == ["CONTROLLER://:9093"]


@pytest.mark.parametrize(
    "given",
    [
        {"listeners": "SSL://:9093"},
        {"listeners": "PLAINTEXT://:9092,SASL_PLAINTEXT://:9093"},
        {"listeners": "CLIENTS://:9093", "listener.security.protocol.map": "CLIENTS:SASL_SSL"},
        {"listeners": "CLIENTS://:9093"},
    ],
)
def test_a_listener_of_another_protocol_is_refused_by_name(given):
    with pytest.raises(ConfigError, match=r"listener \w+://:909\d asks for \w+"):
        found(given)


@pytest.mark.parametrize("text", ["127.0.0.1", "127.0.0.1:x", "127.0.0.1:65536", "a:b:1", "::1:9092"])
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ConfigError):
        found({}, text)


def test_which_hosts_are_this_machine():
    assert is_loopback("127.1.2.3")
    assert is_loopback("::1")
    assert is_loopback("localhost")
    assert not is_loopback("localhost.example")


def test_bracketed_addresses():
    assert found({}, "[::1]:9092") == [("::1", 9092, None)]
