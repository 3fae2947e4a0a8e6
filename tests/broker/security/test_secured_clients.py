"""Unmodified clients against the light broker behind TLS and SASL: in Java, confluent-kafka and kafka-python."""

import time
import uuid
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from kafka import KafkaProducer

from tests.broker.java import java_machine
from tests.broker.kafka_tools import CONFIGS, CONSOLE_CONSUMER, CONSOLE_PRODUCER, TOPICS, kafka_process, kafka_tool
from tests.broker.security.certificates import authority
from tests.broker.security.secured import MODULE, PASSWORD, SCRAM_PASSWORD, SecuredBroker, secured_broker
from tests.processes.sasl_clients import unsecured_token

pytestmark = pytest.mark.components

TIMEOUT_S = 20


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("secured")
    with secured_broker(folder) as started:
        started.ca.issue(folder / "erin.pem", "Erin.ops.test")
        authority(folder / "other.pem")
        yield started


@pytest.fixture
def topic():
    return f"t-{uuid.uuid4().hex[:8]}"


def quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def java_jaas(module: str, user: str, password: str) -> str:
    return f'{MODULE}.{module}LoginModule required username="{user}" password="{quoted(password)}";'


def java_properties(secured: SecuredBroker, listener: str, mechanism: str = "") -> dict[str, object]:
    protocol = {"NAMED": "SASL_PLAINTEXT", "SHORT": "SASL_PLAINTEXT", "BOTH": "SASL_SSL"}.get(listener, "SSL")
    properties: dict[str, object] = {"security.protocol": protocol}
    if protocol.endswith("SSL"):
        properties |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": secured.folder / "ca.pem"}
    if listener == "MUTUAL":
        properties |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": secured.folder / "erin.pem"}
    if mechanism == "OAUTHBEARER":
        login = f'{MODULE}.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="olga";'
        properties |= {"sasl.mechanism": mechanism, "sasl.jaas.config": login}
    elif mechanism:
        user = ("plain.Plain", "alice", PASSWORD) if mechanism == "PLAIN" else ("scram.Scram", "carol", SCRAM_PASSWORD)
        properties |= {"sasl.mechanism": mechanism, "sasl.jaas.config": java_jaas(*user)}
    return properties


def command_config(path: Path, properties: dict[str, object]) -> str:
    lines = (f"{key}={str(value).replace(chr(92), chr(92) * 2)}\n" for key, value in properties.items())
    path.write_text("".join(lines))
    return str(path)


@pytest.mark.parametrize(
    ("listener", "mechanism"),
    [
        ("TLS", ""),
        ("MUTUAL", ""),
        ("NAMED", "PLAIN"),
        ("NAMED", "OAUTHBEARER"),
        ("BOTH", "SCRAM-SHA-256"),
        ("BOTH", "SCRAM-SHA-512"),
    ],
)
def test_the_tools_of_kafka_reach_each_listener(secured, listener, mechanism, topic, tmp_path):
    config = command_config(tmp_path / "client.properties", java_properties(secured, listener, mechanism))
    server = ("--bootstrap-server", secured.addresses[listener], "--command-config", config)
    kafka_tool(TOPICS, *server, "--create", "--topic", topic)
    assert topic in kafka_tool(TOPICS, *server, "--list").lines


def test_the_console_clients_of_kafka_write_and_read_encrypted(secured, topic, tmp_path):
    config = command_config(tmp_path / "client.properties", java_properties(secured, "BOTH", "SCRAM-SHA-512"))
    server = ("--bootstrap-server", secured.addresses["BOTH"], "--command-config", config)
    kafka_tool(TOPICS, *server, "--create", "--topic", topic)
    lines = [f"line {number}" for number in range(20)]
    kafka_process(CONSOLE_PRODUCER, *server, "--topic", topic, stdin="\n".join(lines))
    place = ("--topic", topic, "--partition", "0", "--offset", "0", "--max-messages", "20")
    assert kafka_process(CONSOLE_CONSUMER, *server, *place).lines == lines


def test_kafka_configs_adds_describes_and_removes_users(secured, tmp_path):
    config = command_config(tmp_path / "admin.properties", java_properties(secured, "NAMED", "PLAIN"))
    server = ("--bootstrap-server", secured.addresses["NAMED"], "--command-config", config)
    user = ("--entity-type", "users", "--entity-name", "newcomer")
    for added in ("SCRAM-SHA-256=[iterations=8192,password=pass-1]", "SCRAM-SHA-512=[password=pass-2]"):
        kafka_tool(CONFIGS, *server, *user, "--alter", "--add-config", added)
    described = kafka_tool(CONFIGS, *server, "--entity-type", "users", "--describe").out
    assert "SCRAM credential configs for user-principal 'newcomer' are" in described
    assert "SCRAM-SHA-256=iterations=8192" in described
    assert "SCRAM-SHA-512=iterations=4096" in described
    newcomer_properties = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.jaas.config": java_jaas("scram.Scram", "newcomer", "pass-1"),
    }
    as_newcomer = command_config(tmp_path / "own.properties", newcomer_properties)
    kafka_tool(TOPICS, *server[:2], "--command-config", as_newcomer, "--list")
    kafka_tool(CONFIGS, *server, *user, "--alter", "--delete-config", "SCRAM-SHA-256")
    described = kafka_tool(CONFIGS, *server, *user, "--describe").out
    assert "SCRAM-SHA-256" not in described
    assert "SCRAM-SHA-512=iterations=4096" in described


@pytest.mark.parametrize(
    ("listener", "changes", "message"),
    [
        ("NAMED", {"sasl.jaas.config": java_jaas("plain.Plain", "alice", "x")}, "Invalid username or password"),
        ("TLS", {"ssl.truststore.location": "other.pem"}, "SSL handshake failed"),
        (
            "MUTUAL",
            {"ssl.keystore.location": None, "ssl.keystore.type": None},
            "Failed to process post-handshake messages",
        ),
    ],
)
def test_java_clients_are_refused_for_good(secured, listener, changes, message, tmp_path):
    mechanism = "PLAIN" if listener == "NAMED" else ""
    properties = java_properties(secured, listener, mechanism) | changes
    if changes.get("ssl.truststore.location"):
        properties["ssl.truststore.location"] = secured.folder / "other.pem"
    config = command_config(
        tmp_path / "client.properties", {key: value for key, value in properties.items() if value is not None}
    )
    server = ("--bootstrap-server", secured.addresses[listener], "--command-config", config)
    done = kafka_tool(TOPICS, *server, "--list", code=None)
    assert done.code != 0
    assert message in done.out + done.err


def confluent(secured: SecuredBroker, listener: str, mechanism: str = "") -> dict[str, object]:
    settings: dict[str, object] = {
        "bootstrap.servers": secured.addresses[listener],
        "security.protocol": {"NAMED": "SASL_PLAINTEXT", "SHORT": "SASL_PLAINTEXT", "BOTH": "SASL_SSL"}.get(
            listener, "SSL"
        ),
        "ssl.ca.location": str(secured.folder / "ca.pem"),
    }
    if listener == "MUTUAL":
        certificate_path = str(secured.folder / "erin.pem")
        settings |= {"ssl.key.location": certificate_path, "ssl.certificate.location": certificate_path}
    if mechanism == "OAUTHBEARER":
        expires_s = time.time() + 60
        settings["oauth_cb"] = lambda _: (unsecured_token(sub="olga", exp=expires_s), expires_s)
        settings["sasl.mechanism"] = mechanism
    elif mechanism:
        user, password = ("alice", PASSWORD) if mechanism == "PLAIN" else ("carol", SCRAM_PASSWORD)
        settings |= {"sasl.mechanism": mechanism, "sasl.username": user, "sasl.password": password}
    return settings


@pytest.mark.parametrize(
    ("listener", "mechanism"),
    [
        ("TLS", ""),
        ("MUTUAL", ""),
        ("NAMED", "PLAIN"),
        ("NAMED", "SCRAM-SHA-512"),
        ("NAMED", "OAUTHBEARER"),
        ("BOTH", "PLAIN"),
        ("BOTH", "SCRAM-SHA-256"),
    ],
)
def test_confluent_clients_write_and_read_over_each_listener(secured, listener, mechanism, topic):
    settings = confluent(secured, listener, mechanism)
    producer = Producer(settings)
    for number in range(10):
        producer.produce(topic, str(number))
    assert producer.flush(TIMEOUT_S) == 0
    consumer = Consumer(settings | {"group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    try:
        values = [message.value() for message in consumer.consume(10, TIMEOUT_S)]
    finally:
        consumer.close()
    assert values == [str(number).encode() for number in range(10)]


def test_a_producer_lives_through_its_sessions(secured, topic):
    delivered = []
    producer = Producer(confluent(secured, "SHORT", "PLAIN"))
    for number in range(10):
        producer.produce(topic, str(number), on_delivery=lambda error, _: delivered.append(error))
        producer.flush(TIMEOUT_S)
        time.sleep(0.5)
    assert delivered == [None] * 10


def test_a_java_client_authenticates_again_before_its_session_ends(secured, topic):
    java = java_machine()
    properties = java.jvm.java.util.Properties()
    serializer = "org.apache.kafka.common.serialization.StringSerializer"
    settings = java_properties(secured, "SHORT", "PLAIN") | {
        "bootstrap.servers": secured.addresses["SHORT"], "key.serializer": serializer, "value.serializer": serializer,
    }  # fmt: skip
    for name, value in settings.items():
        properties.put(name, str(value))
    producer = java.jvm.org.apache.kafka.clients.producer.KafkaProducer(properties)
    try:
        for number in range(8):
            record = java.jvm.org.apache.kafka.clients.producer.ProducerRecord(topic, str(number))
            assert producer.send(record).get().offset() == number
            time.sleep(0.5)
        totals = {
            entry.getKey().name(): entry.getValue().metricValue()
            for entry in producer.metrics().entrySet()
            if entry.getKey().group() == "producer-metrics"
        }
    finally:
        producer.close()
    assert totals["successful-reauthentication-total"] >= 1
    assert totals["failed-reauthentication-total"] == 0


@pytest.mark.parametrize(
    ("listener", "changes", "code"),
    [
        ("NAMED", {"sasl.password": "x"}, KafkaError._AUTHENTICATION),
        ("TLS", {"ssl.ca.location": "other.pem"}, KafkaError._SSL),
        ("TLS", {"ssl.ca.location": None, "security.protocol": "PLAINTEXT"}, KafkaError._ALL_BROKERS_DOWN),
    ],
)
def test_confluent_clients_are_refused(secured, listener, changes, code):
    errors: list[KafkaError] = []
    settings = confluent(secured, listener, "PLAIN" if listener == "NAMED" else "") | changes
    if changes.get("ssl.ca.location"):
        settings["ssl.ca.location"] = str(secured.folder / "other.pem")
    present = {key: value for key, value in settings.items() if value is not None}
    admin = AdminClient(present | {"error_cb": errors.append})
    with pytest.raises(KafkaException):
        admin.list_topics(timeout=2)
    patience = time.monotonic() + 30
    while code not in {error.code() for error in errors} and time.monotonic() < patience:
        admin.poll(0.2)
    assert code in {error.code() for error in errors}


@pytest.mark.parametrize(("listener", "mechanism"), [("MUTUAL", None), ("BOTH", "PLAIN"), ("BOTH", "SCRAM-SHA-256")])
def test_kafka_python_writes_over_tls(secured, listener, mechanism, topic):
    user, password = ("alice", PASSWORD) if mechanism == "PLAIN" else ("carol", SCRAM_PASSWORD)
    certificate_path = str(secured.folder / "erin.pem")
    certificate = {"ssl_certfile": certificate_path, "ssl_keyfile": certificate_path} if mechanism is None else {}
    login = {"sasl_mechanism": mechanism, "sasl_plain_username": user, "sasl_plain_password": password}
    if mechanism == "SCRAM-SHA-256":
        login["sasl_plain_username"] = user
    producer = KafkaProducer(
        bootstrap_servers=secured.addresses[listener],
        security_protocol="SSL" if mechanism is None else "SASL_SSL",
        ssl_cafile=str(secured.folder / "ca.pem"),
        **certificate,
        **(login if mechanism else {}),
    )
    try:
        assert producer.send(topic, b"x").get(TIMEOUT_S).offset == 0
    finally:
        producer.close()


def test_names_of_certificates_are_those_of_java(secured):
    """The rules of RFC 2253 by their reference, X500Principal, for a certificate of many attributes."""
    from cryptography import x509
    from cryptography.x509.oid import NameOID

    from sharelens.broker.security.authentication.distinguished_name import name_text

    attributes = [
        (NameOID.COUNTRY_NAME, "FR"), (NameOID.ORGANIZATION_NAME, 'a,b+c="d"<e>;\\'), (NameOID.COMMON_NAME, " # x  y "),
        (NameOID.COMMON_NAME, "#x"), (NameOID.EMAIL_ADDRESS, "d@x.org"), (NameOID.STREET_ADDRESS, "é"),
        (NameOID.USER_ID, "u"), (NameOID.DOMAIN_COMPONENT, "test"), (NameOID.SERIAL_NUMBER, "7"),
        (NameOID.LOCALITY_NAME, "L"), (NameOID.STATE_OR_PROVINCE_NAME, "S"), (NameOID.ORGANIZATIONAL_UNIT_NAME, "O"),
    ]  # fmt: skip
    name = x509.Name([x509.NameAttribute(oid, value) for oid, value in attributes])
    principal = java_machine().jvm.javax.security.auth.x500.X500Principal(name.public_bytes())
    assert name_text(name) == principal.getName()
