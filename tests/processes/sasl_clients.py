"""The client's half of SASL for tests: tokens of each mechanism, and an authenticator without sockets."""

import base64
import hashlib
import hmac
import json

from kio.index import load_response_schema

import sharelens.broker.handlers.all  # noqa: F401  (registers the handlers)
from sharelens.broker.protocol.messages import FRAME_SIZE
from sharelens.broker.protocol.registry import registered
from sharelens.broker.security.authentication.oauthbearer import OAuthBearer
from sharelens.broker.security.authentication.plain import Plain
from sharelens.broker.security.authentication.sasl import SaslAuthenticator, SaslSettings
from sharelens.broker.security.authentication.scram import HASHES, Scram, credential_of_salted, salted_password
from sharelens.broker.security.authentication.unsecured_tokens import UnsecuredValidator
from sharelens.kafka_formats.messages.reader import read
from sharelens.workloads.wire import encode_request
from tests.broker_parts.broker_messages import plain

HANDSHAKE, VERSIONS, AUTHENTICATE, METADATA = 17, 18, 36, 3
PASSWORDS = {"alice": "alice-secret", "bob": "bob-secret", "ANONYMOUS": "anonymous-secret"}
SALT, ITERATIONS = b"salt of carol", 4096
SCRAM_PASSWORD = "carol-secret"
START_MS = 1_800_000_000_000
OTHER_ID = "Authentication failed: Client requested an authorization id that is different from username"


def plain_token(user, password, authorization_id=""):
    return f"{authorization_id}\0{user}\0{password}".encode()


def scram_credential(mechanism, password=SCRAM_PASSWORD):
    salted = salted_password(mechanism, password, SALT, ITERATIONS)
    return credential_of_salted(mechanism, salted, SALT, ITERATIONS)


class ScramClient:
    """Computes the proof as RFC 5802 says, apart from the server's code."""

    def __init__(self, password, mechanism="SCRAM-SHA-256", binding="biws"):
        self.password, self.hash, self.binding = password, HASHES[mechanism], binding

    def final(self, client_first, server_first, nonce_suffix=""):
        """The second token, and the signature that the server must answer."""
        fields = dict(part.split("=", 1) for part in server_first.split(","))
        salt, iterations = base64.b64decode(fields["s"]), int(fields["i"])
        salted = hashlib.pbkdf2_hmac(self.hash, self.password.encode(), salt, iterations)
        bare = client_first.split(",", 2)[2]
        without_proof = f"c={self.binding},r={fields['r']}{nonce_suffix}"
        message = f"{bare},{server_first},{without_proof}".encode()
        client_key = hmac.digest(salted, b"Client Key", self.hash)
        signature = hmac.digest(hashlib.new(self.hash, client_key).digest(), message, self.hash)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        server_signature = hmac.digest(hmac.digest(salted, b"Server Key", self.hash), message, self.hash)
        token = f"{without_proof},p={base64.b64encode(proof).decode()}".encode()
        return token, b"v=" + base64.b64encode(server_signature)


def unsecured_token(header=None, signature="", **claims):
    """An unsecured JWS: two parts of base64url and an empty signature."""
    parts = (json.dumps(part).encode() for part in (header or {"alg": "none"}, claims))
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts) + f".{signature}"


def bearer(token, authorization_id="", scheme="Bearer", extensions=""):
    header = f"n,a={authorization_id}," if authorization_id else "n,,"
    return f"{header}\1auth={scheme} {token}\1{extensions}\1".encode()


class Driven:
    """An authenticator with clocks of its own; `send` gives the answer's fields, "closed", or "request"."""

    def __init__(self, mechanisms=("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"), max_reauth_ms=0):
        self.now_s = 0.0
        users = {"carol": {"SCRAM-SHA-256": scram_credential("SCRAM-SHA-256")}}
        every = {
            "PLAIN": Plain(passwords=PASSWORDS),
            "OAUTHBEARER": OAuthBearer(validate=UnsecuredValidator(options={}, now_ms=self.wall_ms).validate),
        }
        for name in HASHES:
            every[name] = Scram(
                name=name,
                credential_of=lambda user, name=name: users.get(user, {}).get(name),
                make_nonce=lambda: "fromserver",
            )
        settings = SaslSettings(
            mechanisms={name: every[name] for name in mechanisms},
            max_reauth_ms=dict.fromkeys(mechanisms, max_reauth_ms),
            frame_bytes_max=1 << 19,
            failure_delay_s=0.1,
            wall_ms=self.wall_ms,
            monotonic_s=lambda: self.now_s,
        )
        self.authenticator = SaslAuthenticator(settings, registered())
        self.is_closed = False

    def wall_ms(self):
        return START_MS + round(self.now_s * 1000)

    @property
    def principal(self):
        return self.authenticator.principal

    def receive(self, frame):
        """The bytes of the answer; None for a request that goes on to the handlers."""
        assert not self.is_closed
        reply = self.authenticator.receive(frame)
        if reply is None:
            return None
        self.is_closed = reply.closes
        if reply.closes and reply.pieces:
            assert reply.delay_s == 0.1
        return b"".join(map(bytes, reply.pieces))

    def send(self, key, version, **fields):
        raw = self.receive(encode_request(key, version, fields))
        if raw is None:
            return "request"
        if not raw:
            assert self.is_closed
            return "closed"
        schema = load_response_schema(key, version)
        _, at = read(schema.__header_schema__, raw, FRAME_SIZE.size)
        body, end = read(schema, raw, at)
        assert end == len(raw)
        return plain(body)

    def handshake(self, mechanism, version=1):
        answer = self.send(HANDSHAKE, version, mechanism=mechanism)
        return answer if isinstance(answer, str) else int(answer["error_code"])

    def token(self, token, version=1):
        """(code, message, bytes of the answer, milliseconds of the session)."""
        answer = self.send(AUTHENTICATE, version, auth_bytes=token)
        if isinstance(answer, str):
            return answer
        lifetime = answer.get("session_lifetime")
        lifetime_ms = None if lifetime is None else round(lifetime.total_seconds() * 1000)
        return int(answer["error_code"]), answer["error_message"], answer["auth_bytes"], lifetime_ms
