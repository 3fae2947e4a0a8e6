"""Properties of Kafka's tools: what they mean, what is refused, and that no secret shows."""

import gc
import socket

import pytest

from sharelens.kafka_formats.properties import numbered, parse
from sharelens.kafka_live.command_config import CommandConfig, command_config, unknown_lines
from sharelens.kafka_live.connection import Connection
from sharelens.kafka_live.errors import ClusterError
from sharelens.live.cluster import Address, LiveCluster, UserTopics
from sharelens.questions.answers.command_lines import command
from sharelens.source.request import Source
from state_model.errors import UsageError

MODULE = "org.apache.kafka.common.security"
SASL = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "SCRAM-SHA-256"}
SCRAM = f"{MODULE}.scram.ScramLoginModule"
WORKING = f'{SCRAM} required username="a" password="s3cret";'


def test_an_empty_file_is_a_listener_without_security():
    assert command_config({}, "file") == CommandConfig()


@pytest.mark.parametrize(
    ("jaas", "user", "password"),
    [
        (WORKING, "a", "s3cret"),
        (f'{SCRAM} required\n  username="a"\n  password="s ;=\\"\\\\ x";', "a", 's ;="\\ x'),
        (f"{SCRAM} required password='p\"' username=plain ;", "plain", 'p"'),
    ],
)
def test_name_and_password_stand_in_the_login_module(jaas, user, password):
    config = command_config(SASL | {"sasl.jaas.config": jaas}, "file")
    assert (config.user, config.password) == (user, password)


def test_values_are_read_as_kafka_reads_a_file():
    text = (
        "security.protocol = sasl_plaintext\nsasl.mechanism:PLAIN\n"
        f'sasl.jaas.config={MODULE}.plain.PlainLoginModule required \\\n  username="a" \\\n  password="b";\n'
        "request.timeout.ms=1234\n"
    )
    config = command_config(parse(text), "file")
    assert (config.user, config.password, config.timeout_ms) == ("a", "b", 1234)


def test_names_are_escaped_for_scram_alone():
    for mechanism, module, name in (
        ("SCRAM-SHA-512", SCRAM, "a=3Db=2Cc"),
        ("PLAIN", f"{MODULE}.plain.PlainLoginModule", "a=b,c"),
    ):
        properties = {
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": f'{module} required username="a=b,c" password="x";',
        }
        config = command_config({"security.protocol": "SASL_PLAINTEXT", **properties}, "file")
        assert config.client_configs()["sasl_plain_username"] == name


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ({"security.protocol": "TLS"}, "give PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism='GSSAPI' (Kafka's default) is not supported"),
        (SASL | {"sasl.mechanism": "GSSAPI"}, "'GSSAPI' is not supported"),
        (SASL, "sasl.jaas.config is missing"),
        (SASL | {"sasl.jaas.config": WORKING[:-1]}, "a ; at its end"),
        (SASL | {"sasl.jaas.config": WORKING * 2}, "one module"),
        (SASL | {"sasl.jaas.config": WORKING.replace("scram.Scram", "plain.Plain")}, "another login module"),
        (SASL | {"sasl.jaas.config": f'{SCRAM} required username="a";'}, "lacks username or password"),
        (SASL | {"sasl.jaas.config": WORKING.replace(";", ' tokenauth="true";')}, "other options"),
        ({"ssl.truststore.location": "a.jks"}, "give ssl.truststore.type=PEM"),
        ({"ssl.keystore.location": "a", "ssl.keystore.type": "PKCS12"}, "ssl.keystore.type='PKCS12'"),
        ({"ssl.keystore.key": "s3cret"}, "ssl.keystore.key is not supported; write the PEM text into a file"),
        ({"ssl.keystore.password": "s3cret"}, "PEM files have no such password"),
        ({"sasl.oauthbearer.assertion.file": "x"}, "sasl.oauthbearer.assertion.file is not supported; tokens come by"),
        ({"ssl.endpoint.identification.algorithm": "ldaps"}, "takes https"),
        ({"request.timeout.ms": "0"}, "no number of milliseconds"),
    ],
)  # fmt: skip
def test_what_is_not_supported_is_named_without_its_secret(properties, text):
    with pytest.raises(UsageError) as refused:
        command_config(properties, "file")
    message = str(refused.value)
    assert text in message
    assert "\n" not in message
    assert "s3cret" not in message


@pytest.mark.parametrize(
    ("store", "content"), [("truststore", None), ("truststore", "no PEM"), ("keystore", None), ("keystore", "no PEM")]
)
def test_stores_that_can_not_be_used_are_named(tmp_path, store, content):
    path = tmp_path / "store.pem"
    if content is not None:
        path.write_text(content)
    properties = {"security.protocol": "SSL", f"ssl.{store}.location": str(path), f"ssl.{store}.type": "PEM"}
    with pytest.raises(UsageError, match=f"ssl.{store}.location: can't use "):
        command_config(properties, "file").client_configs()


def test_unknown_keys_are_named_and_harmless_ones_are_not():
    keys = ["client.id", "ssl.trustore.location", "ssl.key.password", "key.deserializer", "client.rack"]
    assert unknown_lines((number, key, "v") for number, key in enumerate(keys, 1)) == ["ssl.trustore.location"]


@pytest.mark.parametrize("stray", ["s3cret", "s3cret word", "s3.cret=x", "ssl.s3cret", "S3CRET: x", "sasl.s3cret"])
def test_a_line_that_may_be_a_password_is_numbered_alone(stray):
    assert unknown_lines(numbered(f"client.id=a\n{stray}\n")) == ["line 2"]


def test_no_secret_is_in_a_repr():
    config = command_config(SASL | {"sasl.jaas.config": WORKING, "ssl.key.password": "s3cret"}, "file")
    assert "s3cret" not in repr(config)


def test_commands_name_the_file():
    address = Address(bootstrap_server="a:1", config_file="admin.properties")
    live = LiveCluster(address, UserTopics.NONE, most_bytes=1)
    assert command(Source(live=live), "lag", []) == (
        "sharelens lag --bootstrap-server a:1 --command-config=admin.properties"
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_listener_that_never_answers_tls_is_given_up():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        config = CommandConfig(protocol="SSL", timeout_ms=300)
        with pytest.raises(ClusterError, match="the cluster does not answer"):
            Connection(f"127.0.0.1:{silent.getsockname()[1]}", config)
    gc.collect()  # the library's socket
