"""What a listener's configuration has to have, and what it protects connections with."""

import json
import ssl
import time
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from sharelens.broker.config.listeners import Listener, SecurityProtocol
from sharelens.broker.config.settings import Settings
from sharelens.broker.errors import ConfigError, FrameError
from sharelens.broker.protocol.registry import ANONYMOUS
from sharelens.broker.security.listener_security import SIGNED_TOKENS, ListenerSecurity, names_store
from sharelens.broker.storage.catalog import Catalog
from sharelens.broker.storage.scram_credentials import ScramCredential
from tests.broker.security.certificates import HOST, authority
from tests.broker_parts.broker_memory import ManualTimers
from tests.processes.sasl_clients import bearer, plain_token, scram_credential

MODULES = "org.apache.kafka.common.security"
PLAIN_USERS = f'{MODULES}.plain.PlainLoginModule required user_alice="alice-secret";'
SASL, TLS, SASL_TLS = SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SSL, SecurityProtocol.SASL_SSL


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with PEM files: ca, server, client, encrypted (password `key-secret`), stranger."""
    folder = tmp_path_factory.mktemp("stores")
    ca = authority(folder / "ca.pem")
    ca.issue(folder / "server.pem", HOST)
    ca.issue(folder / "client.pem", "Alice.ops.test")
    ca.issue(folder / "encrypted.pem", HOST, "key-secret")
    authority(folder / "other.pem").issue(folder / "stranger.pem", "Eve.ops.test")
    key = rsa.generate_private_key(65_537, 2048)
    text = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    certificate = (folder / "server.pem").read_text().partition("-----BEGIN CERTIFICATE-----")
    (folder / "pkcs1.pem").write_text(text.decode() + certificate[1] + certificate[2])
    (folder / "mismatch.pem").write_text(
        (folder / "client.pem").read_text().partition("-----BEGIN CERTIFICATE")[0] + certificate[1] + certificate[2]
    )
    (folder / "empty.pem").write_text("")
    return folder


def security(protocol, tmp_path, values, timers=None, users=None):
    catalog = Catalog(tmp_path)
    if users:
        catalog.set_scram_users(users)
    listener = Listener(name="EXT", host="127.0.0.1", port=0, protocol=protocol)
    return ListenerSecurity(listener, Settings(values), catalog, timers or ManualTimers(round(time.time() * 1000)))


def tls_values(folder, **changes):
    values = {
        "ssl.keystore.type": "PEM", "ssl.keystore.location": str(folder / "server.pem"),
        "ssl.truststore.type": "PEM", "ssl.truststore.location": str(folder / "ca.pem"),
    }  # fmt: skip
    changed = {name.replace("_", "."): value for name, value in changes.items()}
    return {name: value for name, value in (values | changed).items() if value is not None}


def test_a_plaintext_listener_has_neither(tmp_path):
    plain = security(SecurityProtocol.PLAINTEXT, tmp_path, {})
    assert plain.channel() is None
    assert plain.authenticator() is None
    plain.prepare_reload()()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "Kafka's default is GSSAPI"),
        ({"sasl.enabled.mechanisms": ""}, "this broker has PLAIN"),
        ({"sasl.enabled.mechanisms": "PLAIN,X"}, "sasl.enabled.mechanisms=PLAIN,X"),
        ({"sasl.enabled.mechanisms": "PLAIN"}, r"listener\.name\.ext\.plain\.sasl\.jaas\.config is missing"),
        (
            {"sasl.enabled.mechanisms": "OAUTHBEARER", "sasl.server.callback.handler.class": "com.example.Mine"},
            "com.example.Mine is not served",
        ),
        (
            {"sasl.enabled.mechanisms": "OAUTHBEARER", "sasl.server.callback.handler.class": SIGNED_TOKENS},
            r"jwks\.endpoint\.url is missing",
        ),
    ],
)
def test_sasl_that_lacks_something_is_refused(tmp_path, values, message):
    with pytest.raises(ConfigError, match=message):
        security(SASL, tmp_path, values)


def test_the_mechanisms_of_a_listener_check_its_users(tmp_path):
    users = {"carol": {"SCRAM-SHA-256": scram_credential("SCRAM-SHA-256")}}
    values = {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,OAUTHBEARER",
        "listener.name.ext.plain.sasl.jaas.config": PLAIN_USERS,
    }
    checked = security(SASL, tmp_path, values, users=users)
    mechanisms = checked._sasl.mechanisms
    assert mechanisms["PLAIN"].step(None, plain_token("alice", "alice-secret"))[1].user == "alice"
    state, _ = mechanisms["SCRAM-SHA-256"].step(None, b"n,,n=carol,r=abc")
    assert isinstance(state.credential, ScramCredential)
    assert len(state.nonce) > len("abc") + 20
    assert mechanisms["SCRAM-SHA-256"].step(None, b"n,,n=dave,r=abc")[0] is None


@pytest.mark.slow
def test_signed_tokens_are_checked_with_the_configured_keys(tmp_path):
    key = rsa.generate_private_key(65_537, 2048)
    document = {"keys": [jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True) | {"kid": "a"}]}
    (tmp_path / "keys.json").write_text(json.dumps(document))
    values = {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.ext.oauthbearer.sasl.server.callback.handler.class": SIGNED_TOKENS,
        "listener.name.ext.sasl.oauthbearer.jwks.endpoint.url": (tmp_path / "keys.json").as_uri(),
        "sasl.oauthbearer.expected.audience": "kafka,other",
    }
    mechanism = security(SASL, tmp_path, values)._sasl.mechanisms["OAUTHBEARER"]
    now_s = int(time.time())
    claims = {"sub": "olga", "iat": now_s, "exp": now_s + 60}
    token = jwt.encode(claims | {"aud": "kafka"}, key, "RS256", headers={"kid": "a"})
    assert mechanism.step(None, bearer(token))[1].user == "olga"
    token = jwt.encode(claims | {"aud": "else"}, key, "RS256", headers={"kid": "a"})
    assert mechanism.step(None, bearer(token))[1].token == b'{"status":"invalid_token"}'


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ssl_keystore_type": None}, r"ssl\.keystore\.type=JKS is not served"),
        ({"ssl_truststore_type": "PKCS12"}, r"ssl\.truststore\.type=PKCS12 is not served"),
        ({"ssl_keystore_location": None}, "exactly one private key"),
        ({"ssl_keystore_location": "missing.pem"}, r"missing\.pem can't be read: No such file"),
        ({"ssl_keystore_location": "empty.pem"}, "it has 0 keys and 0 certificates"),
        ({"ssl_keystore_location": "ca.pem"}, "it has 0 keys and 1 certificates"),
        ({"ssl_keystore_location": "pkcs1.pem"}, "exactly one private key"),
        ({"ssl_keystore_location": "mismatch.pem"}, "check that the key belongs to the first certificate"),
        ({"ssl_keystore_location": "encrypted.pem"}, "if the key is encrypted"),
        ({"ssl_keystore_location": "encrypted.pem", "ssl_key_password": "wr0ng"}, "if the key is encrypted"),
        ({"ssl_keystore_password": "wr0ng"}, r"PEM has no ssl\.keystore\.password"),
        ({"ssl_truststore_password": "wr0ng"}, r"PEM has no ssl\.truststore\.password"),
        ({"ssl_keystore_key": "x"}, "belong together: give both"),
        ({"ssl_truststore_certificates": "x"}, "exclude each other"),
        ({"ssl_truststore_location": None, "ssl_client_auth": "required"}, "needs the CAs of clients"),
        ({"ssl_truststore_location": "empty.pem", "ssl_client_auth": "requested"}, "needs the CAs of clients"),
        ({"ssl_principal_mapping_rules": "RULE:x"}, "is no DEFAULT and no RULE"),
    ],
)
def test_tls_that_can_not_be_served_is_refused_in_one_line(stores, tmp_path, changes, message):
    located = {
        name: str(stores / value) if name.endswith("location") and value else value for name, value in changes.items()
    }
    with pytest.raises(ConfigError, match=message) as caught:
        security(TLS, tmp_path, tls_values(stores, **located))
    assert "\n" not in str(caught.value)
    assert "wr0ng" not in str(caught.value)


def exchanged(channel, context):
    """The client's half of a TLS connection after the handshake with a channel; it has sent b"hello"."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname=HOST)
    for _ in range(4):
        try:
            client.do_handshake()
            break
        except ssl.SSLWantReadError:
            if sent := outgoing.read():
                assert channel.receive(sent) == b""
            incoming.write(channel.pending())
    client.write(b"hello")
    return client, incoming, channel.receive(outgoing.read())


def client_context(stores, certificate_file=None):
    context = ssl.create_default_context(cafile=stores / "ca.pem")
    if certificate_file:
        context.load_cert_chain(stores / certificate_file)
    return context


@pytest.mark.parametrize(
    ("protocol", "auth", "certificate_file", "rules", "principal"),
    [
        (TLS, "none", "client.pem", "DEFAULT", ANONYMOUS),
        (TLS, "requested", None, "DEFAULT", ANONYMOUS),
        (TLS, "requested", "client.pem", "DEFAULT", "User:CN=Alice.ops.test"),
        (TLS, "required", "client.pem", "DEFAULT", "User:CN=Alice.ops.test"),
        (TLS, "required", "client.pem", r"RULE:^CN=([^.]+)\.ops.*$/$1/L,DEFAULT", "User:alice"),
        (SASL_TLS, "required", "client.pem", "DEFAULT", ANONYMOUS),
    ],
)
def test_the_principal_is_the_name_of_the_certificate(
    stores, tmp_path, protocol, auth, certificate_file, rules, principal
):
    values = tls_values(stores, ssl_client_auth=auth, ssl_principal_mapping_rules=rules)
    values |= {"sasl.enabled.mechanisms": "SCRAM-SHA-256"}
    channel = security(protocol, tmp_path, values).channel()
    client, incoming, plaintext = exchanged(channel, client_context(stores, certificate_file))
    assert plaintext == b"hello"
    assert channel.is_open
    assert channel.principal == principal
    channel.encrypt(b"answer" * 10_000)
    incoming.write(channel.pending())
    answer = b""
    while len(answer) < 60_000:
        answer += client.read(1 << 16)
    assert answer == b"answer" * 10_000


@pytest.mark.parametrize(
    ("certificate_file", "rules"), [(None, "DEFAULT"), ("stranger.pem", "DEFAULT"), ("client.pem", "RULE:^UID=.*$/x/")]
)
def test_a_client_without_an_accepted_name_is_refused(stores, tmp_path, certificate_file, rules):
    values = tls_values(stores, ssl_client_auth="required", ssl_principal_mapping_rules=rules)
    channel = security(TLS, tmp_path, values).channel()
    with pytest.raises(FrameError):
        exchanged(channel, client_context(stores, certificate_file))
    assert channel.principal == ANONYMOUS


def test_keys_may_be_inline_and_encrypted(stores, tmp_path):
    key, begin, chain = (stores / "encrypted.pem").read_text().partition("-----BEGIN CERTIFICATE-----")
    values = {
        "ssl.keystore.type": "PEM", "ssl.keystore.key": key, "ssl.keystore.certificate.chain": begin + chain,
        "listener.name.ext.ssl.key.password": "key-secret", "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": (stores / "ca.pem").read_text(), "ssl.client.auth": "required",
    }  # fmt: skip
    channel = security(TLS, tmp_path, values).channel()
    assert exchanged(channel, client_context(stores, "client.pem"))[2] == b"hello"


def test_which_keys_are_those_of_a_listeners_stores():
    assert names_store("listener.name.ext.ssl.keystore.location", "EXT")
    assert names_store("listener.name.ext.ssl.truststore.certificates", "Ext")
    assert names_store("listener.name.ext.ssl.key.password", "ext")
    assert not names_store("listener.name.other.ssl.keystore.location", "ext")
    assert not names_store("ssl.keystore.location", "ext")
    assert not names_store("listener.name.ext.ssl.client.auth", "ext")
