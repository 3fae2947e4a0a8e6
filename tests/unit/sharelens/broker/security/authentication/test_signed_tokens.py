"""Signed tokens against keys of a JWKS document."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from sharelens.broker.errors import ConfigError
from sharelens.broker.security.authentication.oauthbearer import InvalidTokenError
from sharelens.broker.security.authentication.signed_tokens import JwksKeys, SignedValidator, read_keys
from tests.broker_parts.broker_memory import ManualTimers

RSA_KEY = rsa.generate_private_key(65_537, 2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())
OTHER_KEY = rsa.generate_private_key(65_537, 2048)
PATIENCE_S = 10


def entry(key_id, key=RSA_KEY, **extra_fields):
    algorithm = jwt.algorithms.RSAAlgorithm if key is not EC_KEY else jwt.algorithms.ECAlgorithm
    return algorithm.to_jwk(key.public_key(), as_dict=True) | {"kid": key_id} | extra_fields


def write(path, *entries):
    path.write_text(json.dumps({"keys": list(entries)}))
    return path.as_uri()


def signed(key=RSA_KEY, algorithm="RS256", key_id="a", **claims):
    now_s = int(time.time())
    every = {"sub": "olga", "iat": now_s, "exp": now_s + 60} | claims
    present = {name: value for name, value in every.items() if value is not None}
    return jwt.encode(present, key, algorithm, headers={} if key_id is None else {"kid": key_id})


def loaded(url, timers=None):
    return JwksKeys(url, timers or ManualTimers(0), refresh_ms=1000, backoff_ms=10, backoff_max_ms=100)


def validator(tmp_path, **settings):
    url = write(
        tmp_path / "keys.json", entry("a"), entry("b", EC_KEY, use="sig"), entry("e", use="enc"), {"kty": "oct"}
    )
    return SignedValidator(key_of=loaded(url).key, **settings)


@pytest.mark.parametrize(
    "arguments", [{}, {"algorithm": "PS512"}, {"key": EC_KEY, "algorithm": "ES256", "key_id": "b"}]
)
def test_a_signed_token_names_its_user_and_its_end(tmp_path, arguments):
    token = validator(tmp_path).validate(signed(**arguments))
    assert token.user == "olga"
    assert 0 < token.expires_at_ms / 1000 - time.time() <= 60


@pytest.mark.parametrize(
    "arguments",
    [
        {"key": OTHER_KEY}, {"key_id": "unknown"}, {"key_id": None}, {"key_id": "e"},
        {"key": EC_KEY, "algorithm": "ES256"},
        {"exp": None}, {"iat": None}, {"sub": None}, {"sub": ""}, {"sub": 7}, {"exp": 1}, {"exp": "x"},
        {"iat": 4_000_000_000}, {"nbf": 4_000_000_000},
    ],
)  # fmt: skip
def test_what_is_refused(tmp_path, arguments):
    with pytest.raises(InvalidTokenError):
        validator(tmp_path).validate(signed(**arguments))


@pytest.mark.parametrize("text", ["", "x", "a.b.c", "..", "a.b.", jwt.encode({"sub": "olga"}, "", "none")])
def test_a_token_without_signature_is_refused(tmp_path, text):
    with pytest.raises(InvalidTokenError):
        validator(tmp_path).validate(text)


@pytest.mark.filterwarnings("ignore::jwt.warnings.InsecureKeyLengthWarning")
def test_the_public_key_is_no_secret_to_sign_with(tmp_path):
    with pytest.raises(InvalidTokenError):
        validator(tmp_path).validate(signed("n" * 64, "HS256"))


def test_the_algorithm_of_a_key_is_the_only_one_for_it(tmp_path):
    checked = SignedValidator(key_of=loaded(write(tmp_path / "keys.json", entry("a", alg="RS512"))).key)
    assert checked.validate(signed(algorithm="RS512")).user == "olga"
    with pytest.raises(InvalidTokenError):
        checked.validate(signed(algorithm="RS256"))


def test_a_token_without_key_id_is_checked_with_the_only_key(tmp_path):
    checked = SignedValidator(key_of=loaded(write(tmp_path / "keys.json", entry("a"))).key)
    assert checked.validate(signed(key_id=None)).user == "olga"


def test_audience_issuer_skew_and_the_claim_of_the_user(tmp_path):
    strict = validator(tmp_path, audiences=("x", "y"), issuer="i", skew_s=30, user_claim="upn")
    late = int(time.time()) - 10
    assert strict.validate(signed(aud=["y", "z"], iss="i", upn="o@x", exp=late, iat=late - 5)).user == "o@x"
    for wrong in ({"aud": "z", "iss": "i"}, {"iss": "i"}, {"aud": "x", "iss": "j"}, {"aud": "x"}):
        with pytest.raises(InvalidTokenError):
            strict.validate(signed(upn="o@x", **wrong))
    with pytest.raises(InvalidTokenError, match="no upn"):
        strict.validate(signed(aud="x", iss="i"))


def until(condition):
    end_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end_s
        time.sleep(0.01)


def test_keys_are_read_again_at_the_interval_and_for_an_unknown_id(tmp_path):
    path, timers = tmp_path / "keys.json", ManualTimers(0)
    keys = loaded(write(path, entry("a")), timers)
    write(path, entry("b"))
    assert keys.key("b") is None, "the first backoff is not over"
    timers.advance(10)
    assert keys.key("b") is None, "it is read in a thread"
    until(lambda: keys.key("b") is not None)
    assert keys.key("a") is None
    write(path, entry("c"))
    timers.advance(1000)
    until(lambda: keys.key("c") is not None)


def test_keys_that_can_not_be_read_again_stay(tmp_path, caplog):
    path, timers = tmp_path / "keys.json", ManualTimers(0)
    keys = loaded(write(path, entry("a")), timers)
    path.write_text("{")
    timers.advance(1000)
    until(lambda: "is no JWKS document" in caplog.text)
    assert keys.key("a") is not None


@pytest.mark.slow
def test_keys_are_read_over_http(tmp_path):
    document = json.dumps({"keys": [entry("a")]}).encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(document)

        def log_message(self, *_):
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        assert set(read_keys(f"http://127.0.0.1:{server.server_port}/keys")) == {"a"}
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "can't be read"), ("{", "is no JWKS document"), ("[]", "is no JWKS document"),
        ('{"keys": [1]}', "is no JWKS document"), ('{"keys": []}', "has no public key"),
        ('{"keys": [{"kty": "RSA"}, {"kty": "oct", "k": "c2VjcmV0"}]}', "has no public key"),
        (" " * ((1 << 20) + 1), "has more than 1048576 bytes"),
    ],
)  # fmt: skip
def test_a_document_without_keys_is_refused_in_one_line(tmp_path, content, message):
    path = tmp_path / "keys.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigError, match=message) as caught:
        read_keys(path.as_uri())
    assert "\n" not in str(caught.value)


def test_another_scheme_is_refused():
    with pytest.raises(ConfigError, match="is no https, http, file URL"):
        read_keys("ftp://x/keys")
