"""The mechanisms of SASL, token by token, against the answers of Kafka 4.3.1."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.security.authentication.mechanism import Accepted, Challenge, Rejected, Unanswered
from broker.security.authentication.oauthbearer import OAuthBearer
from broker.security.authentication.plain import Plain
from broker.security.authentication.scram import Scram, credential_of_salted, salted_password
from broker.security.authentication.unsecured_tokens import UnsecuredValidator
from tests.sasl_clients import (
    PASSWORDS,
    SCRAM_PASSWORD,
    ScramClient,
    bearer,
    plain_token,
    scram_credential,
    unsecured_token,
)

OTHER_ID = "Authentication failed: Client requested an authorization id that is different from username"
WRONG = "Authentication failed: Invalid username or password"
NOW_S = 1_800_000_000
NAMES = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20)
PRINTABLE = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters=","), min_size=1, max_size=20)


class TestPlain:
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
    def test_tokens(self, token, expected):
        _, answer = Plain(passwords=PASSWORDS).step(None, token)
        assert answer == (Accepted(user="alice") if expected is None else Rejected(message=expected))

    def test_no_password_is_in_its_repr(self):
        assert "alice-secret" not in repr(Plain(passwords=PASSWORDS))


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


class TestScram:
    @pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
    @pytest.mark.parametrize("binding", ["biws", "eHh4", ""])
    def test_the_right_password_is_proven_and_the_server_proves_itself(self, mechanism, binding):
        client = ScramClient(SCRAM_PASSWORD, mechanism, binding)
        answer, signature = exchange(scram(mechanism=mechanism), client, "n,,n=carol,r=abcDEF123")
        assert answer == Accepted(user="carol", token=signature)

    def test_the_exchange_of_the_rfc(self):
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
    def test_what_is_refused_at_the_first_token(self, first):
        assert exchange(scram(), ScramClient(SCRAM_PASSWORD), first) == (Rejected(), None)

    @pytest.mark.parametrize("first", ["n,a=carol,n=carol,r=abc", "n,,n=carol,r=abc,foo=bar"])
    def test_its_own_authorization_id_and_unknown_extensions_are_accepted(self, first):
        assert isinstance(exchange(scram(), ScramClient(SCRAM_PASSWORD), first)[0], Accepted)

    def test_another_authorization_id_is_refused_by_its_text(self):
        assert exchange(scram(), ScramClient(SCRAM_PASSWORD), "n,a=bob,n=carol,r=abc")[0] == Rejected(message=OTHER_ID)

    def test_a_wrong_password_and_a_wrong_nonce_are_refused(self):
        first = "n,,n=carol,r=abc"
        assert exchange(scram(), ScramClient("x"), first)[0] == Rejected()
        assert exchange(scram(), ScramClient(SCRAM_PASSWORD), first, nonce_suffix="x")[0] == Rejected()

    @given(NAMES, PRINTABLE, st.text(min_size=1, max_size=20), st.binary(max_size=20))
    @settings(max_examples=20, deadline=None)
    def test_every_name_password_and_salt_works_and_no_other_password_does(self, user, nonce, password, salt):
        salted = salted_password("SCRAM-SHA-256", password, salt, 4096)
        server = scram({user: credential_of_salted("SCRAM-SHA-256", salted, salt, 4096)})
        first = f"n,,n={user.replace('=', '=3D').replace(',', '=2C')},r={nonce}"
        answer, signature = exchange(server, ScramClient(password), first)
        assert answer == Accepted(user=user, token=signature)
        assert exchange(server, ScramClient(password + "x"), first)[0] == Rejected()

    @given(st.binary(max_size=60))
    def test_no_second_token_without_the_password_is_accepted(self, token):
        server = scram()
        state, _ = server.step(None, b"n,,n=carol,r=abc")
        assert server.step(state, token) == (None, Rejected())


def oauth(**options):
    return OAuthBearer(validate=UnsecuredValidator(options=options, now_ms=lambda: NOW_S * 1000).validate)


def token_of(**claims):
    return unsecured_token(**({"sub": "olga", "exp": NOW_S + 60} | claims))


class TestOAuthBearer:
    @pytest.mark.parametrize(
        "token",
        [
            bearer(token_of(iat=NOW_S)),
            bearer(token_of()),
            bearer(token_of(), authorization_id="olga"),
            bearer(token_of(), extensions="foo=bar\1"),
            bearer(token_of(), scheme="bearer"),
        ],
    )
    def test_what_is_accepted(self, token):
        assert oauth().step(None, token)[1] == Accepted(user="olga", expires_at_ms=(NOW_S + 60) * 1000)

    @pytest.mark.parametrize(
        "token",
        [
            token_of(exp=NOW_S - 60), token_of(exp=NOW_S), token_of(exp=None), token_of(exp="x"), token_of(exp=True),
            token_of(sub=None), token_of(sub=""), token_of(sub=7), token_of(iat=NOW_S + 30), token_of(iat=NOW_S + 600),
            token_of(header={"alg": "HS256"}), token_of(header={"typ": "JWT"}), token_of(signature="AAAA"),
            "zzz", "a.b.", "a..b",
        ],
    )  # fmt: skip
    def test_a_bad_token_is_explained_and_its_acknowledgement_refused(self, token):
        state, answer = oauth().step(None, bearer(token))
        assert answer == Challenge(token=b'{"status":"invalid_token"}')
        assert oauth().step(state, b"\1")[1] == Rejected(message='{"status":"invalid_token"}')
        assert oauth().step(state, b"x")[1] == Rejected()

    def test_a_missing_scope_is_named(self):
        required = {"unsecuredValidatorRequiredScope": "read write"}
        assert isinstance(oauth(**required).step(None, bearer(token_of(scope="write read x")))[1], Accepted)
        assert isinstance(oauth(**required).step(None, bearer(token_of(scope=["write", "read"])))[1], Accepted)
        _, answer = oauth(**required).step(None, bearer(token_of(scope="read")))
        assert answer == Challenge(token=b'{"status":"insufficient_scope","scope":"read write"}')

    def test_the_options_name_the_claim_and_the_skew(self):
        options = {"unsecuredValidatorPrincipalClaimName": "upn", "unsecuredValidatorAllowableClockSkewMs": "5000"}
        _, answer = oauth(**options).step(None, bearer(token_of(upn="o@x", exp=NOW_S - 4, iat=NOW_S - 9)))
        assert answer == Accepted(user="o@x", expires_at_ms=(NOW_S - 4) * 1000)

    def test_another_authorization_id_and_another_scheme(self):
        _, answer = oauth().step(None, bearer(token_of(), authorization_id="bob"))
        assert answer == Rejected(
            message="Authentication failed: Client requested an authorization id (bob) that is different from the "
            "token's principal name (olga)"
        )
        assert oauth().step(None, bearer(token_of(), scheme="Basic"))[1] == Unanswered()

    @given(st.binary(max_size=80))
    def test_garbage_is_refused(self, token):
        assert oauth().step(None, token)[1] == Rejected()
