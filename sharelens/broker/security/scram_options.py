"""Users of SCRAM that a start adds, in the form of `kafka-storage format --add-scram` (ScramParser)."""

import base64
import binascii
import re
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from sharelens.broker.errors import ConfigError, OptionError
from sharelens.broker.security.authentication.scram import (
    HASHES,
    ITERATIONS_MAX,
    ITERATIONS_MIN,
    credential_of_salted,
    salted_password,
)
from sharelens.broker.storage.scram_credentials import ScramCredential, ScramUsers, added

SALT_BYTES: Final = 24
FORM: Final = "SCRAM-SHA-256=[name=NAME,password=PASSWORD]"
_OPTION = re.compile(r"(?P<mechanism>[A-Z0-9-]+)=\[(?P<fields>.*)\]", re.DOTALL)
_FIELD = re.compile(r'(?P<name>[a-z]+)=(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<bare>[^,]*))(?:,|$)', re.DOTALL)
_NAMES: Final = frozenset({"name", "password", "salt", "iterations", "saltedpassword"})


def read_scram_users(texts: Sequence[str], file: Path | None) -> ScramUsers:
    """The credentials of options and of a file with one option a line; empty lines and those that begin with # are not.

    Raises:
        ConfigError: the file can't be read, or a text has another form; the message has no password.
    """
    users: ScramUsers = {}
    for number, text in enumerate(texts, 1):
        users = _with_user(users, text, f"--add-scram {number}")
    for number, line in enumerate(_lines(file) if file is not None else (), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            users = _with_user(users, line.strip(), f"{file}:{number}")
    return users


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} can't be read: {getattr(error, 'strerror', None) or 'it is no text'}") from None


def _with_user(users: ScramUsers, text: str, where: str) -> ScramUsers:
    match = _OPTION.fullmatch(text)
    if match is None or match["mechanism"] not in HASHES:
        raise OptionError(f"{where} is no {FORM}; mechanisms are {', '.join(HASHES)}")
    mechanism, fields = match["mechanism"], _fields(match["fields"], where)
    if not fields.get("name"):
        raise OptionError(f"{where} names no user; give {FORM}")
    return added({fields["name"]: {mechanism: _credential(mechanism, fields, where)}}, users)


def _credential(mechanism: str, fields: dict[str, str], where: str) -> ScramCredential:
    text = fields.get("iterations", str(ITERATIONS_MIN))
    if not re.fullmatch(r"[0-9]{1,9}", text) or not ITERATIONS_MIN <= int(text) <= ITERATIONS_MAX:
        raise OptionError(f"{where}: iterations takes an integer from {ITERATIONS_MIN} to {ITERATIONS_MAX}")
    iterations = int(text)
    if ("password" in fields) == ("saltedpassword" in fields) or ("saltedpassword" in fields and "salt" not in fields):
        raise OptionError(f"{where} needs a password, or a saltedpassword with its salt")
    try:
        salt = base64.b64decode(fields["salt"], validate=True) if "salt" in fields else secrets.token_bytes(SALT_BYTES)
        if "password" in fields:
            salted = salted_password(mechanism, fields["password"], salt, iterations)
        else:
            salted = base64.b64decode(fields["saltedpassword"], validate=True)
        return credential_of_salted(mechanism, salted, salt, iterations)
    except (binascii.Error, ValueError):
        raise OptionError(f"{where}: salt and saltedpassword are base64, and not empty") from None


def _fields(text: str, where: str) -> dict[str, str]:
    fields, at = {}, 0
    while at < len(text):
        match = _FIELD.match(text, at)
        if match is None or match["name"] not in _NAMES or match["name"] in fields:
            raise OptionError(f"{where} has other fields than {', '.join(sorted(_NAMES))}, each once")
        quoted = match["quoted"]
        fields[match["name"]] = match["bare"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL)
        at = match.end()
    return fields
