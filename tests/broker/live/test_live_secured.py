"""A cluster behind TLS and SASL: what answers over each listener, and what each refusal says.

The light broker and a real Kafka have the same configuration and give the same answers.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from bench.brokers import HOST, Listener, free_ports, kafka_broker, light_broker
from sharelens.cli import main
from sharelens.spark.java import JavaError
from tests.broker.live.test_live import answer
from tests.broker.security.certificates import DAY, authority
from tests.broker.share_clients import TIMEOUT_S, new_share_group, share_consumer
from tests.broker.test_overview import RECORDS, accept, filled
from tools.kept_jars import ToolUnavailableError

pytestmark = pytest.mark.components

USER, SCRAM_USER, PASSWORD, KEY_PASSWORD = "watcher", "watch=er,1", 'se"cr\\et 1', "key-secret"
MODULE = "org.apache.kafka.common.security"
MECHANISMS = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
PROTOCOLS = {"NAMED": "SASL_PLAINTEXT", "TLS": "SSL", "MUTUAL": "SSL", "BOTH": "SASL_SSL", "MISNAMED": "SSL"}
PROTOCOLS |= {"EXPIRED": "SSL", "WEAK": "SASL_SSL"}
TIMEOUT_MS = 3_000
Properties = Mapping[str, object]


class Secured(NamedTuple):
    """A broker: its addresses by the names of listeners, the folder of PEM files, and a group with lag 0."""

    listeners: Mapping[str, str]
    folder: Path
    group: str


class Bootstrap(NamedTuple):
    """What clients of tests need to know of a broker."""

    bootstrap: str


@pytest.fixture(scope="module", params=["light", "kafka"])
def kafka(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """Kafka is skipped, with the reason in a line, where Java or its jars can't be had."""
    folder = tmp_path_factory.mktemp("secured")
    start = {"light": light_broker, "kafka": kafka_broker}[request.param]
    ca = authority(folder / "ca.pem")
    authority(folder / "other.pem")
    ca.issue(folder / "server.pem", HOST)
    ca.issue(folder / "misnamed.pem", "broker.test")
    ca.issue(folder / "expired.pem", HOST, ends=-DAY)
    ca.issue(folder / "client.pem", "client.test", KEY_PASSWORD)
    ports = free_ports(len(PROTOCOLS))
    listeners = {name: Listener(*each) for name, *each in zip(PROTOCOLS, PROTOCOLS.values(), ports, strict=True)}
    try:
        with start(folder / "log", server_settings(folder), listeners) as started:
            broker = Bootstrap(started.bootstrap)
            add_scram_user(broker)
            group = new_share_group(broker)
            with share_consumer(broker, group, filled(broker)) as consumer:
                accept(consumer, RECORDS)
            addresses = {name: f"{HOST}:{listener.port}" for name, listener in listeners.items()}
            yield Secured({"PLAINTEXT": started.bootstrap} | addresses, folder, group)
    except (ToolUnavailableError, JavaError) as error:
        pytest.skip(f"Kafka's broker: {error}")


def server_settings(folder: Path) -> dict[str, object]:
    plain = escaped(f'{MODULE}.plain.PlainLoginModule required user_{USER}="{quoted(PASSWORD)}";')
    scram = f"{MODULE}.scram.ScramLoginModule required;"
    settings: dict[str, object] = {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": folder / "ca.pem",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": folder / "server.pem",
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.misnamed.ssl.keystore.location": folder / "misnamed.pem",
        "listener.name.misnamed.ssl.keystore.type": "PEM",
        "listener.name.expired.ssl.keystore.location": folder / "expired.pem",
        "listener.name.expired.ssl.keystore.type": "PEM",
        "sasl.enabled.mechanisms": MECHANISMS,
        "listener.name.weak.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.weak.plain.sasl.jaas.config": plain,
        "share.coordinator.state.topic.num.partitions": 2,
        "offsets.topic.num.partitions": 2,
    }
    for name in ("named", "both"):
        settings[f"listener.name.{name}.plain.sasl.jaas.config"] = plain
        for mechanism in ("scram-sha-256", "scram-sha-512"):
            settings[f"listener.name.{name}.{mechanism}.sasl.jaas.config"] = scram
    return settings


def add_scram_user(broker: Bootstrap) -> None:
    """The user, known by both mechanisms once the broker has read the change."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512):
        change = UserScramCredentialUpsertion(
            SCRAM_USER, ScramCredentialInfo(mechanism, 4096), PASSWORD.encode(), b"salt"
        )
        admin.alter_user_scram_credentials([change])[SCRAM_USER].result(TIMEOUT_S)


def quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def escaped(text: str) -> str:
    """As a value in a file of properties."""
    return text.replace("\\", "\\\\")


def jaas(mechanism: str, password: str = PASSWORD) -> dict[str, object]:
    user, module = (USER, "plain.Plain") if mechanism == "PLAIN" else (SCRAM_USER, "scram.Scram")
    value = f'{MODULE}.{module}LoginModule required username="{user}" password="{quoted(password)}";'
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": escaped(value)}


def words_for(kafka: Secured, listener: str, properties: Properties, tmp_path: Path) -> list[str]:
    """The options of a listener; `{folder}` in a value is where the PEM files are."""
    path = tmp_path / "client.properties"
    lines = {"request.timeout.ms": TIMEOUT_MS, **properties}
    text = "".join(f"{key}={value}\n" for key, value in lines.items())
    path.write_text(text.replace("{folder}", str(kafka.folder)))
    return ["--bootstrap-server", kafka.listeners[listener], "--command-config", str(path)]


TRUST = {"ssl.truststore.type": "PEM", "ssl.truststore.location": "{folder}/ca.pem"}
TLS = {"security.protocol": "SSL", **TRUST}
OWN_CERTIFICATE = {
    "ssl.keystore.type": "PEM",
    "ssl.keystore.location": "{folder}/client.pem",
    "ssl.key.password": KEY_PASSWORD,
}
NAMED = {"security.protocol": "SASL_PLAINTEXT"}
BOTH_MECHANISMS = {"security.protocol": "SASL_SSL", **TRUST}
UNKNOWN_CA = {"security.protocol": "SSL", "ssl.truststore.type": "PEM", "ssl.truststore.location": "{folder}/other.pem"}
ANY_NAME = {"ssl.endpoint.identification.algorithm": ""}


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("listener", "properties"),
    [
        ("PLAINTEXT", {}),
        ("TLS", TLS),
        ("MUTUAL", TLS | OWN_CERTIFICATE),
        ("MISNAMED", TLS | ANY_NAME),
        ("NAMED", NAMED | jaas("PLAIN")),
        ("NAMED", NAMED | jaas("SCRAM-SHA-256")),
        ("BOTH", BOTH_MECHANISMS | jaas("PLAIN")),
        ("BOTH", BOTH_MECHANISMS | jaas("SCRAM-SHA-512")),
    ],
)
def test_a_cluster_answers_over_each_listener(kafka, listener, properties, tmp_path, capsys):
    words = words_for(kafka, listener, properties, tmp_path)
    (row,) = answer(capsys, "lag", *words)
    assert (row["group_id"], row["lag"]) == (kafka.group, 0)


def test_a_run_reads_a_secured_listener_and_keeps_no_secret(kafka, tmp_path, capsys):
    lake = tmp_path / "lake"
    words = words_for(kafka, "BOTH", BOTH_MECHANISMS | jaas("PLAIN"), tmp_path)
    assert main(["run", "--lake", str(lake), *words]) == 0, capsys.readouterr().err
    capsys.readouterr()
    assert answer(capsys, "state", "--lake", str(lake)) != []
    secret = PASSWORD.partition("\\")[0].encode()
    assert [path for path in lake.rglob("*") if path.is_file() and secret in path.read_bytes()] == []


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("listener", "properties", "text"),
    [
        ("NAMED", NAMED | jaas("PLAIN", "wr0ng"), "refuses the user or the password"),
        ("NAMED", NAMED | jaas("SCRAM-SHA-256", "wr0ng"), "refuses the user or the password"),
        ("NAMED", {}, "may require TLS or SASL"),
        ("PLAINTEXT", NAMED | jaas("PLAIN"), "has no SASL"),
        ("TLS", {}, "TLS"),
        ("PLAINTEXT", TLS, "does not answer in TLS"),
        ("TLS", UNKNOWN_CA, "from an unknown CA"),
        ("MISNAMED", TLS, "is for another host name"),
        ("EXPIRED", TLS, "is not valid now"),
        ("WEAK", BOTH_MECHANISMS | jaas("SCRAM-SHA-512"), "SCRAM-SHA-512"),
        ("BOTH", NAMED | jaas("PLAIN"), "TLS"),
        ("MUTUAL", TLS, "give a certificate that it accepts"),
        ("MUTUAL", TLS | OWN_CERTIFICATE | {"ssl.key.password": "wr0ng"}, "its content or its password"),
    ],
)
def test_a_refusal_is_one_line_that_says_why(kafka, listener, properties, text, tmp_path, capsys):
    assert main(["state", *words_for(kafka, listener, properties, tmp_path)]) == (2 if "its content" in text else 1)
    message = capsys.readouterr().err
    assert text in message
    assert message.count("\n") == 1
    assert "wr0ng" not in message
