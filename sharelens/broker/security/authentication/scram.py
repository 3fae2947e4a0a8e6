"""The server's half of SCRAM-SHA-256 and -512 (RFC 5802, RFC 7677), as Kafka's ScramSaslServer."""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sharelens.broker.security.authentication.mechanism import (
    DIFFERENT_AUTHORIZATION_ID,
    Accepted,
    Answer,
    Challenge,
    Rejected,
)
from sharelens.broker.storage.scram_credentials import ScramCredential

HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""The hash of each mechanism, as hashlib names it."""
ITERATIONS_MIN, ITERATIONS_MAX = 4096, 16_384

_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_EXTENSIONS = r"(?:,[A-Za-z]+=[^,\0]*)*"
_FIRST = re.compile(
    rf"n,(?:a=(?P<id>{_NAME}))?,n=(?P<name>{_NAME}),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)(?P<more>{_EXTENSIONS})"
)
_FINAL = re.compile(
    r"(?P<without_proof>c=(?P<binding>[A-Za-z0-9/+=]*),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)(?:,[^,]*)*),p=(?P<proof>[A-Za-z0-9/+=]+)"
)
_TOKEN_LOGIN = re.compile(r",tokenauth=true(,|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """An exchange whose first messages are sent. `first_messages`: client-first-bare and server-first, with a comma."""

    user: str
    credential: ScramCredential
    nonce: str
    first_messages: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scram:
    """One of the two mechanisms. `credential_of`: of a user, null for none; `make_nonce`: printable, without comma."""

    name: str
    credential_of: Callable[[str], ScramCredential | None]
    make_nonce: Callable[[], str]

    def step(self, state: Exchange | None, token: bytes) -> tuple[Exchange | None, Answer]:
        """The first token names the user, the second proves the password."""
        try:
            text = token.decode("ascii")
        except UnicodeDecodeError:
            return None, Rejected()
        return self._first(text) if state is None else (None, self._final(state, text))

    def _first(self, text: str) -> tuple[Exchange | None, Answer]:
        match = _FIRST.fullmatch(text)
        if match is None or _TOKEN_LOGIN.search(match["more"]):
            return None, Rejected()
        user = _unescaped(match["name"])
        credential = self.credential_of(user)
        if credential is None:
            return None, Rejected()
        if match["id"] is not None and _unescaped(match["id"]) != user:
            return None, Rejected(message=DIFFERENT_AUTHORIZATION_ID)
        nonce = match["nonce"] + self.make_nonce()
        salt = base64.b64encode(credential.salt).decode()
        server_first = f"r={nonce},s={salt},i={credential.iterations}"
        bare = f"n={match['name']},r={match['nonce']}{match['more']}"
        exchange = Exchange(user=user, credential=credential, nonce=nonce, first_messages=f"{bare},{server_first}")
        return exchange, Challenge(token=server_first.encode())

    def _final(self, exchange: Exchange, text: str) -> Answer:
        match = _FINAL.fullmatch(text)
        if match is None or match["nonce"] != exchange.nonce:
            return Rejected()
        try:
            # As in Kafka the channel binding must be base64; its content is not compared.
            base64.b64decode(match["binding"], validate=True)
            proof = base64.b64decode(match["proof"], validate=True)
        except binascii.Error:
            return Rejected()
        message = f"{exchange.first_messages},{match['without_proof']}".encode()
        algorithm, credential = HASHES[self.name], exchange.credential
        signature = hmac.digest(credential.stored_key, message, algorithm)
        if len(proof) != len(signature):
            return Rejected()
        client_key = bytes(proof_byte ^ right for proof_byte, right in zip(proof, signature, strict=True))
        if not hmac.compare_digest(hashlib.new(algorithm, client_key).digest(), credential.stored_key):
            return Rejected()
        verifier = base64.b64encode(hmac.digest(credential.server_key, message, algorithm))
        return Accepted(user=exchange.user, token=b"v=" + verifier)


def salted_password(mechanism: str, password: str, salt: bytes, iterations: int) -> bytes:
    """The key that all others come from (RFC 5802: SaltedPassword)."""
    return hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations)


def credential_of_salted(mechanism: str, salted: bytes, salt: bytes, iterations: int) -> ScramCredential:
    """The stored form of a salted password, from which the password can't be proven (ScramFormatter).

    Raises:
        ValueError: the salted password is empty.
    """
    if not salted:
        raise ValueError("a salted password is not empty")
    algorithm = HASHES[mechanism]
    client_key = hmac.digest(salted, b"Client Key", algorithm)
    return ScramCredential(
        salt=salt,
        stored_key=hashlib.new(algorithm, client_key).digest(),
        server_key=hmac.digest(salted, b"Server Key", algorithm),
        iterations=iterations,
    )


def _unescaped(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")
