"""SASL OAUTHBEARER, token by token, against the answers of Kafka 4.3.1."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.broker.security.authentication.mechanism import Accepted, Challenge, Rejected, Unanswered
from sharelens.broker.security.authentication.oauthbearer import OAuthBearer
from sharelens.broker.security.authentication.unsecured_tokens import UnsecuredValidator
from tests.processes.sasl_clients import bearer, unsecured_token

NOW_S = 1_800_000_000


def oauth(**options):
    return OAuthBearer(validate=UnsecuredValidator(options=options, now_ms=lambda: NOW_S * 1000).validate)


def token_of(**claims):
    return unsecured_token(**({"sub": "olga", "exp": NOW_S + 60} | claims))


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
def test_what_is_accepted(token):
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
def test_a_bad_token_is_explained_and_its_acknowledgement_refused(token):
    state, answer = oauth().step(None, bearer(token))
    assert answer == Challenge(token=b'{"status":"invalid_token"}')
    assert oauth().step(state, b"\1")[1] == Rejected(message='{"status":"invalid_token"}')
    assert oauth().step(state, b"x")[1] == Rejected()


def test_a_missing_scope_is_named():
    required = {"unsecuredValidatorRequiredScope": "read write"}
    assert isinstance(oauth(**required).step(None, bearer(token_of(scope="write read x")))[1], Accepted)
    assert isinstance(oauth(**required).step(None, bearer(token_of(scope=["write", "read"])))[1], Accepted)
    _, answer = oauth(**required).step(None, bearer(token_of(scope="read")))
    assert answer == Challenge(token=b'{"status":"insufficient_scope","scope":"read write"}')


def test_the_options_name_the_claim_and_the_skew():
    options = {"unsecuredValidatorPrincipalClaimName": "upn", "unsecuredValidatorAllowableClockSkewMs": "5000"}
    _, answer = oauth(**options).step(None, bearer(token_of(upn="o@x", exp=NOW_S - 4, iat=NOW_S - 9)))
    assert answer == Accepted(user="o@x", expires_at_ms=(NOW_S - 4) * 1000)


def test_another_authorization_id_and_another_scheme():
    _, answer = oauth().step(None, bearer(token_of(), authorization_id="bob"))
    assert answer == Rejected(
        message="Authentication failed: Client requested an authorization id (bob) that is different from the "
        "token's principal name (olga)"
    )
    assert oauth().step(None, bearer(token_of(), scheme="Basic"))[1] == Unanswered()


@given(st.binary(max_size=80))
def test_garbage_is_refused(token):
    assert oauth().step(None, token)[1] == Rejected()
