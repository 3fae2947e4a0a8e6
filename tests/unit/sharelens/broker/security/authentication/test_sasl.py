"""The exchange of SASL, against the answers of Kafka 4.3.1 to the same bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.broker.errors import FrameError
from sharelens.broker.protocol.messages import FRAME_SIZE
from sharelens.broker.protocol.registry import ANONYMOUS
from tests.processes.sasl_clients import (
    AUTHENTICATE,
    HANDSHAKE,
    METADATA,
    VERSIONS,
    Driven,
    bearer,
    plain_token,
    unsecured_token,
)

ALICE = plain_token("alice", "alice-secret")
ENABLED = ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"]
SHORT = {"mechanisms": ("PLAIN",), "max_reauth_ms": 3000}


def authenticated(**settings):
    driven = Driven(**settings)
    assert driven.handshake("PLAIN") == 0
    assert driven.token(ALICE)[0] == 0
    return driven


def test_a_client_authenticates_and_then_its_requests_reach_the_handlers():
    driven = Driven()
    assert driven.send(VERSIONS, 3, client_software_name="c", client_software_version="1") == "request"
    assert driven.send(HANDSHAKE, 1, mechanism="PLAIN") == {"error_code": 0, "mechanisms": ENABLED}
    assert not driven.authenticator.is_complete
    assert driven.principal == ANONYMOUS
    assert driven.token(ALICE) == (0, "", b"", 0)
    assert driven.principal == "User:alice"
    assert driven.authenticator.is_complete
    assert driven.send(METADATA, 12, topics=[]) == "request"
    assert driven.send(VERSIONS, 0) == "request"


@pytest.mark.parametrize("version", [0, 1, 2])
def test_each_version_of_authenticate_has_an_answer(version):
    driven = Driven()
    driven.handshake("PLAIN")
    code, message, token, lifetime_ms = driven.token(ALICE, version)
    assert (code, message, token, lifetime_ms) == (0, "", b"", None if version == 0 else 0)


def test_versions_are_asked_for_once_but_an_unknown_version_does_not_count():
    driven = Driven()
    assert driven.receive(b"\x00\x12\x00\x63\x00\x00\x00\x01") is None
    assert driven.send(VERSIONS, 0) == "request"
    assert driven.send(VERSIONS, 0) == "closed"


@pytest.mark.parametrize("key", [METADATA, AUTHENTICATE])
def test_any_other_request_before_the_handshake_closes_the_connection(key):
    fields = {"topics": []} if key == METADATA else {"auth_bytes": ALICE}
    assert Driven().send(key, 1, **fields) == "closed"


@pytest.mark.parametrize("version", [0, 1])
def test_an_unknown_mechanism_is_answered_with_those_there_are(version):
    driven = Driven()
    assert driven.send(HANDSHAKE, version, mechanism="GSSAPI") == {"error_code": 33, "mechanisms": ENABLED}
    assert driven.is_closed


def test_another_request_between_handshake_and_token_gets_its_own_error_answer():
    driven = Driven()
    driven.handshake("PLAIN")
    answer = driven.send(VERSIONS, 0)
    assert (answer["error_code"], answer["api_keys"]) == (34, [])
    assert driven.is_closed


def test_after_a_handshake_of_version_0_tokens_travel_bare():
    driven = Driven()
    driven.handshake("PLAIN", version=0)
    assert driven.receive(ALICE) == FRAME_SIZE.pack(0)
    assert driven.principal == "User:alice"
    assert driven.send(VERSIONS, 0) == "request"
    driven = Driven()
    driven.handshake("PLAIN", version=0)
    assert driven.receive(plain_token("alice", "x")) == b""
    assert driven.is_closed


def test_a_refused_client_is_closed_after_its_answer():
    driven = Driven()
    driven.handshake("PLAIN")
    code, message, _, _ = driven.token(plain_token("alice", "x"))
    assert (code, message) == (58, "Authentication failed: Invalid username or password")
    assert driven.is_closed
    assert driven.principal == ANONYMOUS


def test_without_sessions_a_handshake_after_authentication_goes_to_the_handlers():
    assert authenticated().handshake("PLAIN") == "request"


def test_a_session_ends_and_only_a_handshake_saves_the_connection():
    driven = authenticated(**SHORT)
    driven.now_s = 2.9
    assert driven.send(VERSIONS, 0) == "request"
    driven.now_s = 3.6
    assert driven.handshake("PLAIN") == 0
    assert driven.token(ALICE) == (0, "", b"", 3000)
    assert driven.send(VERSIONS, 0) == "request"
    driven.now_s = 6.6
    assert driven.send(METADATA, 12, topics=[]) == "closed"


def test_the_answer_of_version_0_says_nothing_of_the_session_which_ends_all_the_same():
    driven = Driven(**SHORT)
    driven.handshake("PLAIN")
    assert driven.token(ALICE, version=0) == (0, "", b"", None)
    driven.now_s = 3.6
    assert driven.send(VERSIONS, 0) == "closed"


def test_a_client_authenticates_again_at_most_once_a_second():
    driven = authenticated(**SHORT)
    driven.now_s = 0.2
    assert driven.handshake("PLAIN") == 0
    assert driven.token(ALICE)[0] == 0
    driven.now_s = 1.1
    assert driven.handshake("PLAIN") == "request"
    driven.now_s = 1.3
    assert driven.handshake("PLAIN") == 0


def test_authenticating_again_can_not_change_the_user():
    driven = authenticated(**SHORT)
    driven.handshake("PLAIN")
    code, message, _, _ = driven.token(plain_token("bob", "bob-secret"))
    expected = "Cannot change principals during re-authentication from User.alice: User.bob"
    assert (code, message, driven.is_closed) == (58, expected, True)
    assert driven.principal == "User:alice"


def test_a_user_with_the_name_of_unauthenticated_clients_is_authenticated():
    driven = Driven(**SHORT)
    driven.handshake("PLAIN")
    assert driven.token(plain_token("ANONYMOUS", "anonymous-secret"))[0] == 0
    assert driven.principal == ANONYMOUS
    assert driven.authenticator.is_complete
    driven.handshake("PLAIN")
    assert driven.token(ALICE)[0] == 58
    assert driven.is_closed


def test_authenticating_again_can_not_change_the_mechanism():
    driven = authenticated(mechanisms=("PLAIN", "SCRAM-SHA-256"), max_reauth_ms=3000)
    assert driven.handshake("SCRAM-SHA-256") == 0
    assert driven.token(b"n,,n=carol,r=abc") == "closed"


def test_a_failure_while_authenticating_again_says_so():
    driven = Driven(mechanisms=("SCRAM-SHA-256",), max_reauth_ms=3000)
    driven.handshake("SCRAM-SHA-256")
    expected = (
        "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
    )
    assert driven.token(b"hello")[:2] == (58, expected)


def test_a_session_ends_with_the_token_or_with_the_limit_whichever_is_first():
    for max_reauth_ms, expected_ms in ((0, 60_000), (5_000, 5_000), (90_000, 60_000)):
        driven = Driven(max_reauth_ms=max_reauth_ms)
        driven.handshake("OAUTHBEARER")
        token = unsecured_token(sub="olga", exp=driven.wall_ms() / 1000 + 60)
        assert driven.token(bearer(token)) == (0, "", b"", expected_ms)
        driven.now_s = expected_ms / 1000
        assert driven.send(VERSIONS, 0) == "closed"


@given(st.binary(max_size=64))
def test_whatever_comes_first_is_answered_passed_on_or_closed(frame):
    driven = Driven()
    try:
        driven.receive(frame)
    except FrameError:
        return
    assert driven.principal == ANONYMOUS


@given(st.sampled_from(ENABLED), st.sampled_from([0, 1]), st.lists(st.binary(max_size=40), min_size=1, max_size=4))
def test_garbage_in_place_of_tokens_never_authenticates(mechanism, version, tokens):
    driven = Driven()
    assert driven.handshake(mechanism, version) == 0
    for token in tokens:
        if driven.is_closed:
            break
        try:
            driven.receive(token) if version == 0 else driven.token(token)
        except FrameError:
            break
    assert driven.principal == ANONYMOUS
