"""SASL SCRAM, token by token, against the answers of Kafka 4.3.1."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.broker.security.authentication.mechanism import Accepted, Challenge, Rejected
from sharelens.broker.security.authentication.scram import Scram, credential_of_salted, salted_password
from tests.depths import examples
from tests.processes.sasl_clients import OTHER_ID, SCRAM_PASSWORD, ScramClient, scram_credential

NAMES = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20)
PRINTABLE = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters=","), min_size=1, max_size=20)


def scram(users=None, mechanism="SCRAM-SHA-256"):
    users = {"carol": scram_credential(mechanism)} if users is None else users
    return Scram(name=mechanism, credential_of=users.get, make_nonce=lambda: "fromserver")


def exchange(server, client, first, nonce_suffix=""):
    """The answer to the second token and the signature that it has to have; or the answer to the first token."""
    state, answer = server.step(None, first.encode())
    if not isinstance(answer, Challenge):
        return answer, None
    token, signature = client.final(first, answer.token.decode(), nonce_suffix)
    return server.step(state, token)[1], signature


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("binding", ["biws", "eHh4", ""])
def test_the_right_password_is_proven_and_the_server_proves_itself(mechanism, binding):
    client = ScramClient(SCRAM_PASSWORD, mechanism, binding)
    answer, signature = exchange(scram(mechanism=mechanism), client, "n,,n=carol,r=abcDEF123")
    assert answer == Accepted(user="carol", token=signature)


def test_the_exchange_of_the_rfc():
    salt = b"W\x01"
    salted = salted_password("SCRAM-SHA-256", "pencil", salt, 4096)
    server = scram({"user": credential_of_salted("SCRAM-SHA-256", salted, salt, 4096)})
    answer, signature = exchange(server, ScramClient("pencil"), "n,,n=user,r=rOprNGfwEbeRWgbNEkqO")
    assert answer == Accepted(user="user", token=signature)


@pytest.mark.parametrize(
    "first",
    [
        "n,,n=ghost,r=abc", "y,,n=carol,r=abc", "p=tls-unique,,n=carol,r=abc", "hello", "",
        "n,,n=carol,r=abc,tokenauth=true", "n,,n=carol", "n,,r=abc", "n,,n=,r=abc", "n,,n=car=ol,r=abc",
    ],
)  # fmt: skip
def test_what_is_refused_at_the_first_token(first):
    assert exchange(scram(), ScramClient(SCRAM_PASSWORD), first) == (Rejected(), None)


@pytest.mark.parametrize("first", ["n,a=carol,n=carol,r=abc", "n,,n=carol,r=abc,foo=bar"])
def test_its_own_authorization_id_and_unknown_extensions_are_accepted(first):
    assert isinstance(exchange(scram(), ScramClient(SCRAM_PASSWORD), first)[0], Accepted)


def test_another_authorization_id_is_refused_by_its_text():
    assert exchange(scram(), ScramClient(SCRAM_PASSWORD), "n,a=bob,n=carol,r=abc")[0] == Rejected(message=OTHER_ID)


def test_a_wrong_password_and_a_wrong_nonce_are_refused():
    first = "n,,n=carol,r=abc"
    assert exchange(scram(), ScramClient("x"), first)[0] == Rejected()
    assert exchange(scram(), ScramClient(SCRAM_PASSWORD), first, nonce_suffix="x")[0] == Rejected()


@pytest.mark.slow
@given(NAMES, PRINTABLE, st.text(min_size=1, max_size=20), st.binary(max_size=20))
@examples("table")
def test_every_name_password_and_salt_works_and_no_other_password_does(user, nonce, password, salt):
    salted = salted_password("SCRAM-SHA-256", password, salt, 4096)
    server = scram({user: credential_of_salted("SCRAM-SHA-256", salted, salt, 4096)})
    first = f"n,,n={user.replace('=', '=3D').replace(',', '=2C')},r={nonce}"
    answer, signature = exchange(server, ScramClient(password), first)
    assert answer == Accepted(user=user, token=signature)
    assert exchange(server, ScramClient(password + "x"), first)[0] == Rejected()


@given(st.binary(max_size=60))
def test_no_second_token_without_the_password_is_accepted(token):
    server = scram()
    state, _ = server.step(None, b"n,,n=carol,r=abc")
    assert server.step(state, token) == (None, Rejected())
