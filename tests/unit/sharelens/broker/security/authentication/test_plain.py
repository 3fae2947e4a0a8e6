"""SASL PLAIN, token by token, against the answers of Kafka 4.3.1."""

import pytest

from sharelens.broker.security.authentication.mechanism import Accepted, Rejected
from sharelens.broker.security.authentication.plain import Plain
from tests.processes.sasl_clients import OTHER_ID, PASSWORDS, plain_token

WRONG = "Authentication failed: Invalid username or password"


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        (plain_token("alice", "alice-secret"), None),
        (plain_token("alice", "alice-secret", "alice"), None),
        (plain_token("alice", "x"), WRONG),
        (plain_token("zz", "x"), WRONG),
        (plain_token("", "x"), "Authentication failed: username not specified"),
        (plain_token("alice", ""), "Authentication failed: password not specified"),
        (plain_token("alice", "alice-secret", "bob"), OTHER_ID),
        (plain_token("alice", "x", "bob"), WRONG),
        (b"alice\0x", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"a\0b\0c\0d", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"a\0b\0c\0d\0e", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
    ],
)
def test_tokens(token, expected):
    _, answer = Plain(passwords=PASSWORDS).step(None, token)
    assert answer == (Accepted(user="alice") if expected is None else Rejected(message=expected))


def test_no_password_is_in_its_repr():
    assert "alice-secret" not in repr(Plain(passwords=PASSWORDS))
