"""The light broker behind TLS and SASL: what raw clients see, and what survives."""

import socket
import ssl
import time

import pytest

from tests.broker import running
from tests.broker.security.certificates import DAY, HOST, authority
from tests.broker.security.secured import (
    PASSWORD,
    SCRAM_PASSWORD,
    RawClient,
    SecuredBroker,
    secured_broker,
    trusting,
)
from tests.processes.sasl_clients import ScramClient, bearer, plain_token, unsecured_token

HANDSHAKE, VERSIONS, AUTHENTICATE, METADATA, ALTER_CONFIGS, DESCRIBE_CONFIGS = 17, 18, 36, 3, 44, 32
ALTER_USERS, DESCRIBE_USERS = 51, 50
SET, DELETE = 0, 1
ALICE = plain_token("alice", PASSWORD)
INTERNAL_ERROR_ALERT = bytes.fromhex("15030300020250")


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("secured")
    with secured_broker(folder) as started:
        authority(folder / "other.pem").issue(folder / "stranger.pem", "stranger.ops.test")
        started.ca.issue(folder / "erin.pem", "Erin.ops.test")
        started.ca.issue(folder / "frank.pem", "frank.dev.test")
        started.ca.issue(folder / "expired.pem", "grace.ops.test", ends=-DAY)
        yield started


def client(secured: SecuredBroker, listener: str, tls: ssl.SSLContext | None = None) -> RawClient:
    return RawClient(secured.address(listener), tls)


def authenticate(raw: RawClient, token: bytes, mechanism: str = "PLAIN") -> tuple[int, str]:
    assert raw.send(HANDSHAKE, 1, mechanism=mechanism)["error_code"] == 0
    answer = raw.send(AUTHENTICATE, 2, auth_bytes=token)
    return answer["error_code"], answer["error_message"]


def is_served(raw: RawClient) -> bool:
    return raw.send(METADATA, 12, topics=[])["brokers"][0]["node_id"] == 1


def test_clients_of_each_listener_learn_its_own_address(secured):
    tls = trusting(secured.folder)
    with client(secured, "TLS", tls) as raw:
        (node,) = raw.send(METADATA, 12, topics=[])["brokers"]
    assert (node["host"], node["port"]) == secured.address("TLS")
    with client(secured, "BOTH", tls) as raw:
        assert authenticate(raw, ALICE) == (0, "")
        (node,) = raw.send(METADATA, 12, topics=[])["brokers"]
    assert (node["host"], node["port"]) == secured.address("BOTH")


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_user_of_scram_and_the_server_prove_themselves(secured, mechanism):
    with client(secured, "NAMED") as raw:
        assert raw.send(HANDSHAKE, 1, mechanism=mechanism)["error_code"] == 0
        first = "n,,n=carol,r=abc"
        server_first = raw.send(AUTHENTICATE, 1, auth_bytes=first.encode())["auth_bytes"].decode()
        token, signature = ScramClient(SCRAM_PASSWORD, mechanism).final(first, server_first)
        assert raw.send(AUTHENTICATE, 1, auth_bytes=token)["auth_bytes"] == signature
        assert is_served(raw)


def test_a_token_without_signature_is_accepted_where_no_validator_is_configured(secured):
    with client(secured, "NAMED") as raw:
        token = unsecured_token(sub="olga", exp=time.time() + 60)
        assert raw.send(HANDSHAKE, 1, mechanism="OAUTHBEARER")["error_code"] == 0
        answer = raw.send(AUTHENTICATE, 1, auth_bytes=bearer(token))
        assert answer["error_code"] == 0
        assert 0 < answer["session_lifetime"].total_seconds() <= 60
        assert is_served(raw)


def test_a_failure_is_answered_after_a_delay_and_then_the_connection_is_closed(secured):
    with client(secured, "NAMED") as raw:
        begun_s = time.monotonic()
        assert authenticate(raw, plain_token("alice", "x")) == (
            58,
            "Authentication failed: Invalid username or password",
        )
        assert time.monotonic() - begun_s >= 0.1
        assert raw.rest() == b""


@pytest.mark.parametrize("listener", ["NAMED", "BOTH"])
def test_nothing_is_served_before_authentication(secured, listener):
    tls = trusting(secured.folder) if listener == "BOTH" else None
    with client(secured, listener, tls) as raw:
        assert raw.send(VERSIONS, 0)["error_code"] == 0
        with pytest.raises(EOFError):
            raw.send(METADATA, 12, topics=[])


def test_a_frame_above_the_limit_before_authentication_closes_the_connection(secured):
    with client(secured, "NAMED") as raw:
        raw.socket.sendall((524_289).to_bytes(4, "big"))
        assert raw.rest() == b""


def test_a_session_ends_unless_the_client_authenticates_again(secured):
    with client(secured, "SHORT") as raw, client(secured, "SHORT") as idle:
        assert authenticate(raw, ALICE)[0] == authenticate(idle, ALICE)[0] == 0
        time.sleep(1.2)
        assert authenticate(raw, ALICE)[0] == 0
        time.sleep(1.0)
        assert is_served(raw)
        with pytest.raises(EOFError):
            is_served(idle)


class TestTls:
    def test_a_request_without_tls_gets_the_alert_of_kafka(self, secured):
        with client(secured, "TLS") as raw:
            raw.socket.sendall(bytes.fromhex("0000000d0012000000000001") + b"\0\3raw")
            assert raw.rest() == INTERNAL_ERROR_ALERT

    @pytest.mark.parametrize("listener", ["PLAIN", "NAMED"])
    def test_a_tls_client_of_a_listener_without_tls_is_closed_without_a_byte(self, secured, listener):
        context, incoming, outgoing = trusting(secured.folder), ssl.MemoryBIO(), ssl.MemoryBIO()
        with pytest.raises(ssl.SSLWantReadError):
            context.wrap_bio(incoming, outgoing, server_hostname=HOST).do_handshake()
        with client(secured, listener) as raw:
            raw.socket.sendall(outgoing.read())
            assert raw.rest() == b""

    @pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
    def test_the_versions_of_tls_that_are_enabled(self, secured, version):
        context = trusting(secured.folder)
        context.minimum_version = context.maximum_version = version
        with client(secured, "TLS", context) as raw:
            assert raw.socket.version() == {771: "TLSv1.2", 772: "TLSv1.3"}[version]
            assert is_served(raw)

    def test_an_older_version_is_refused(self, secured):
        context = trusting(secured.folder)
        context.set_ciphers("ALL:@SECLEVEL=0")
        with pytest.warns(DeprecationWarning, match="TLSv1_1 is deprecated"):
            context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises(ssl.SSLError, match=r"(?i)protocol.version|unsupported.protocol"):
            client(secured, "TLS", context)

    @pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
    @pytest.mark.parametrize("certificate_file", [None, "stranger.pem", "expired.pem"])
    def test_a_certificate_that_is_required_has_to_be_trusted_and_valid(self, secured, certificate_file, version):
        context = trusting(secured.folder, certificate_file)
        context.minimum_version = context.maximum_version = version
        # With TLS 1.3 the client's handshake is over before the server has seen its certificate.
        with pytest.raises((ssl.SSLError, ConnectionError, EOFError)), client(secured, "MUTUAL", context) as raw:
            is_served(raw)

    def test_a_certificate_that_is_requested_may_be_missing_but_not_untrusted(self, secured):
        with client(secured, "ASKING", trusting(secured.folder)) as raw:
            assert is_served(raw)
        with client(secured, "ASKING", trusting(secured.folder, "erin.pem")) as raw:
            assert is_served(raw)
        context = trusting(secured.folder, "stranger.pem")
        with pytest.raises((ssl.SSLError, ConnectionError, EOFError)), client(secured, "ASKING", context) as raw:
            is_served(raw)

    def test_large_answers_and_requests_pass(self, secured):
        with client(secured, "TLS", trusting(secured.folder)) as raw:
            names = [{"name": f"topic-{number:06}"} for number in range(20_000)]
            answer = raw.send(METADATA, 8, topics=names, allow_auto_topic_creation=False)
        assert len(answer["topics"]) == len(names)


def test_garbage_and_half_open_clients_leave_the_broker_alone(secured):
    before_bytes = secured.broker.memory_bytes()
    clients = [client(secured, listener) for listener in ("TLS", "NAMED") for _ in range(400)]
    for number, raw in enumerate(clients):
        raw.socket.sendall(b"\x16\x03\x01\x02\x00\x01" if number % 2 else b"\x00\x00\x10\x00half a frame")
    with client(secured, "BOTH", trusting(secured.folder)) as raw:
        assert authenticate(raw, ALICE)[0] == 0
        assert is_served(raw)
    assert secured.broker.memory_bytes() - before_bytes < 100 << 20
    for raw in clients:
        raw.socket.close()


def test_users_that_were_added_while_it_ran_survive_a_kill(tmp_path):
    with secured_broker(tmp_path) as secured:
        with client(secured, "PLAIN") as raw:
            change = {"name": "dave", "mechanism": 1, "iterations": 4096, "salt": b"salt", "salted_password": b"pw"}
            removal = {"name": "carol", "mechanism": 2}
            results = raw.send(ALTER_USERS, 0, deletions=[removal], upsertions=[change])["results"]
            assert [result["error_code"] for result in results] == [0, 0]
        secured.broker.kill()
        options = ("--config", str(tmp_path / "server.properties"))
        secured.broker = running.start(tmp_path / "log", *options, listen=None)
        with client(secured, "PLAIN") as raw:
            results = raw.send(DESCRIBE_USERS, 0, users=None)["results"]
        mechanisms = {each["user"]: [info["mechanism"] for info in each["credential_infos"]] for each in results}
        assert mechanisms == {"carol": [1], "dave": [1]}


def alter_broker(raw: RawClient, name: str, value: object, operation: int = SET) -> tuple[int, str | None]:
    config = {"name": name, "config_operation": operation, "value": str(value)}
    resource = {"resource_type": 4, "resource_name": "1", "configs": [config]}
    (answer,) = raw.send(ALTER_CONFIGS, 1, resources=[resource], validate_only=False)["responses"]
    return answer["error_code"], answer["error_message"]


def serial_of(secured: SecuredBroker) -> str:
    with client(secured, "TLS", trusting(secured.folder)) as raw:
        assert isinstance(raw.socket, ssl.SSLSocket)
        return str(dict(raw.socket.getpeercert() or {})["serialNumber"])


def test_a_certificate_is_replaced_while_clients_are_connected(tmp_path):
    key = "listener.name.tls.ssl.keystore.location"
    with secured_broker(tmp_path) as secured, client(secured, "TLS", trusting(tmp_path)) as open_before:
        first = serial_of(secured)
        # The same file with a new certificate: a change that names the key reads it, though its value is the same.
        secured.ca.issue(tmp_path / "server.pem", HOST)
        with client(secured, "PLAIN") as raw:
            assert alter_broker(raw, key, tmp_path / "server.pem") == (0, None)
            second = serial_of(secured)
            assert second != first
            secured.ca.issue(tmp_path / "other-name.pem", "other.test", host=HOST)
            code, message = alter_broker(raw, key, tmp_path / "other-name.pem")
            assert code == 42
            assert message is not None
            assert "ssl.allow.dn.changes" in message
            secured.ca.issue(tmp_path / "other-host.pem", HOST, host="other.test")
            code, message = alter_broker(raw, key, tmp_path / "other-host.pem")
            assert code == 42
            assert message is not None
            assert "ssl.allow.san.changes" in message
            assert alter_broker(raw, key, tmp_path / "missing.pem")[0] == 42
            resource = {"resource_type": 4, "resource_name": "1", "configuration_keys": [key]}
            (described,) = raw.send(DESCRIBE_CONFIGS, 4, resources=[resource])["results"]
            assert [each["value"] for each in described["configs"]] == [str(tmp_path / "server.pem")]
        assert serial_of(secured) == second
        assert is_served(open_before)


def test_a_changed_login_module_is_taken_and_users_stay_those_of_the_start(secured):
    key = "listener.name.named.plain.sasl.jaas.config"
    with client(secured, "PLAIN") as raw:
        assert alter_broker(raw, key, 'org.example.Module required user_mallory="m";') == (0, None)
        try:
            with client(secured, "NAMED") as named:
                assert authenticate(named, ALICE) == (0, "")
            with client(secured, "NAMED") as named:
                assert authenticate(named, plain_token("mallory", "m"))[0] == 58
        finally:
            assert alter_broker(raw, key, "", operation=DELETE) == (0, None)


def test_no_secret_is_described(secured):
    with client(secured, "PLAIN") as raw:
        resource = {"resource_type": 4, "resource_name": "1", "configuration_keys": None}
        (described,) = raw.send(DESCRIBE_CONFIGS, 4, resources=[resource], include_synonyms=True)["results"]
    secrets = [each for each in described["configs"] if each["name"].endswith("jaas.config")]
    assert len(secrets) == 4
    assert all(each["value"] is None and each["is_sensitive"] for each in secrets)
    assert PASSWORD not in str(described)


def test_a_port_scanner_is_no_problem(secured):
    for listener in secured.addresses:
        socket.create_connection(secured.address(listener)).close()
    with client(secured, "NAMED") as raw:
        assert authenticate(raw, ALICE)[0] == 0
