"""Credentials of SCRAM users as the catalogue keeps them: never a password, nor what could be one (KIP-900)."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from sharelens.broker.storage.json_values import mapping, number, text

ITERATIONS_LIMIT: Final = (1 << 31) - 1

ScramUsers = Mapping[str, Mapping[str, "ScramCredential"]]
"""Credentials by user and mechanism; never changed in place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramCredential:
    """What a server keeps of a password (UserScramCredentialRecord)."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    server_key: bytes = field(repr=False)
    iterations: int


def added(users: ScramUsers, extra_users: ScramUsers) -> ScramUsers:
    """Both; where both have a credential for a user and a mechanism, that of `users`."""
    return {name: {**extra_users.get(name, {}), **users.get(name, {})} for name in (*users, *extra_users)}


def to_json(users: ScramUsers) -> dict[str, dict[str, dict[str, str | int]]]:
    """The credentials as a JSON document."""
    return {
        user: {
            mechanism: {
                "salt": _base64(credential.salt),
                "stored_key": _base64(credential.stored_key),
                "server_key": _base64(credential.server_key),
                "iterations": credential.iterations,
            }
            for mechanism, credential in credentials.items()
        }
        for user, credentials in users.items()
    }


def from_json(document: object) -> ScramUsers:
    """The credentials of a JSON document. Raises ValueError, KeyError, TypeError for what `to_json` did not write."""
    return {
        user: {mechanism: _credential(entry) for mechanism, entry in mapping(credentials).items()}
        for user, credentials in mapping(document).items()
    }


def _credential(value: object) -> ScramCredential:
    entry = mapping(value)
    salt, stored_key, server_key = (
        base64.b64decode(text(entry[name]), validate=True) for name in ("salt", "stored_key", "server_key")
    )
    iterations = number(entry["iterations"], ITERATIONS_LIMIT)
    return ScramCredential(salt=salt, stored_key=stored_key, server_key=server_key, iterations=iterations)


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
