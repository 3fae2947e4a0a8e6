"""Addresses of brokers as --bootstrap-server takes them."""

import re

import pytest

from sharelens.cli import main
from sharelens.kafka_formats.addresses import listeners
from state_model.errors import UsageError


def test_hosts_and_ports_of_a_list() -> None:
    assert listeners("localhost:9092, [::1]:1,h:65535") == [("localhost", 9092), ("::1", 1), ("h", 65535)]


@pytest.mark.parametrize("text", ["", "h", ":9092", "h:0", "h:65536", "h:9092,", "h:x"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match=f"--bootstrap-server {re.escape(text)}: '.*' is no HOST:PORT"):
        listeners(text)


@pytest.mark.parametrize("command", ["state", "doctor", "run --lake LAKE", "workload --profile poison --journal FILE"])
@pytest.mark.parametrize("name", ["PLAINTEXT", "SASL_SSL", "INTERNAL"])
def test_the_name_of_a_listener_is_no_part_of_an_address(
    command: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        raise SystemExit(main([*command.split(), "--bootstrap-server", f"{name}://host:9092"]))
    assert stop.value.code == 2
    assert capsys.readouterr().err == (
        f"sharelens: --bootstrap-server {name}://host:9092: the listener's name '{name}' is no part of an address; "
        "give host:9092 (TLS and SASL: --command-config FILE with security.protocol)\n"
    )
