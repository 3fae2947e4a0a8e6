"""Who a client is, seen by its rights: users of SASL, names of certificates, and clients without a name."""

import pytest

from sharelens.broker.config.broker_keys import STANDARD_AUTHORIZER
from tests.broker.security.secured import PASSWORD, SCRAM_PASSWORD, RawClient, secured_broker, trusting
from tests.processes.sasl_clients import ScramClient, plain_token

HANDSHAKE, AUTHENTICATE, METADATA, CREATE_TOPICS, CREATE_ACLS, DESCRIBE_USERS = 17, 36, 3, 19, 30, 50
TOPIC_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED = 29, 31
DESCRIBE, ALLOW, LITERAL, TOPIC = 8, 3, 3, 2


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("secured")
    rights = {"authorizer_class_name": STANDARD_AUTHORIZER, "super_users": "User:alice"}
    with secured_broker(folder, **rights) as started:
        started.ca.issue(folder / "erin.pem", "Erin.ops.test")
        started.ca.issue(folder / "frank.pem", "frank.dev.test")
        with RawClient(started.address("NAMED")) as admin:
            as_alice(admin)
            topic = {"name": "orders", "num_partitions": 1, "replication_factor": 1}
            (created,) = admin.send(CREATE_TOPICS, 7, topics=[topic])["topics"]
            assert created["error_code"] == 0
            entries = [entry(name) for name in ("User:carol", "User:erin", "User:CN=frank.dev.test")]
            results = admin.send(CREATE_ACLS, 3, creations=entries)["results"]
            assert [result["error_code"] for result in results] == [0, 0, 0]
        yield started


def entry(principal):
    return {
        "resource_type": TOPIC, "resource_name": "orders", "resource_pattern_type": LITERAL, "principal": principal,
        "host": "*", "operation": DESCRIBE, "permission_type": ALLOW,
    }  # fmt: skip


def as_alice(raw):
    assert raw.send(HANDSHAKE, 1, mechanism="PLAIN")["error_code"] == 0
    assert raw.send(AUTHENTICATE, 1, auth_bytes=plain_token("alice", PASSWORD))["error_code"] == 0


def as_bob(raw):
    assert raw.send(HANDSHAKE, 1, mechanism="PLAIN")["error_code"] == 0
    assert raw.send(AUTHENTICATE, 1, auth_bytes=plain_token("bob", "bob-secret"))["error_code"] == 0


def as_carol(raw):
    assert raw.send(HANDSHAKE, 1, mechanism="SCRAM-SHA-256")["error_code"] == 0
    first = "n,,n=carol,r=abc"
    server_first = raw.send(AUTHENTICATE, 1, auth_bytes=first.encode())["auth_bytes"].decode()
    token, _ = ScramClient(SCRAM_PASSWORD).final(first, server_first)
    assert raw.send(AUTHENTICATE, 1, auth_bytes=token)["error_code"] == 0


def code_of_topic(raw):
    (topic,) = raw.send(METADATA, 9, topics=[{"name": "orders"}], allow_auto_topic_creation=False)["topics"]
    return topic["error_code"]


@pytest.mark.parametrize(("authenticate", "code"), [(as_alice, 0), (as_carol, 0), (as_bob, TOPIC_AUTHORIZATION_FAILED)])
def test_users_of_sasl_have_their_rights(secured, authenticate, code):
    with RawClient(secured.address("NAMED")) as raw:
        authenticate(raw)
        assert code_of_topic(raw) == code


@pytest.mark.parametrize(
    ("certificate_file", "code"), [("erin.pem", 0), ("frank.pem", 0), ("server.pem", TOPIC_AUTHORIZATION_FAILED)]
)
def test_clients_with_certificates_have_the_rights_of_their_names(secured, certificate_file, code):
    with RawClient(secured.address("MUTUAL"), trusting(secured.folder, certificate_file)) as raw:
        assert code_of_topic(raw) == code


def test_the_certificate_of_a_sasl_client_is_not_its_name(secured):
    with RawClient(secured.address("BOTH"), trusting(secured.folder, "erin.pem")) as raw:
        as_bob(raw)
        assert code_of_topic(raw) == TOPIC_AUTHORIZATION_FAILED


def test_a_client_without_a_name_has_the_rights_of_anonymous(secured):
    for listener, tls in (("PLAIN", None), ("TLS", trusting(secured.folder))):
        with RawClient(secured.address(listener), tls) as raw:
            assert code_of_topic(raw) == TOPIC_AUTHORIZATION_FAILED


def test_users_are_described_with_a_right_only(secured):
    with RawClient(secured.address("NAMED")) as raw:
        as_alice(raw)
        assert [each["user"] for each in raw.send(DESCRIBE_USERS, 0, users=None)["results"]] == ["carol"]
    with RawClient(secured.address("NAMED")) as raw:
        as_carol(raw)
        assert raw.send(DESCRIBE_USERS, 0, users=None)["error_code"] == CLUSTER_AUTHORIZATION_FAILED
