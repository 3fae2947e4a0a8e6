"""Credentials of SCRAM users in the catalogue."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.broker.storage.scram_credentials import ITERATIONS_LIMIT, ScramCredential, added, from_json, to_json

CREDENTIALS = st.builds(
    ScramCredential,
    salt=st.binary(max_size=9),
    stored_key=st.binary(max_size=9),
    server_key=st.binary(max_size=9),
    iterations=st.integers(0, ITERATIONS_LIMIT),
)
MECHANISMS = st.sampled_from(["SCRAM-SHA-256", "SCRAM-SHA-512"])
USERS = st.dictionaries(st.text(max_size=5), st.dictionaries(MECHANISMS, CREDENTIALS, min_size=1), max_size=4)


@given(USERS)
def test_users_come_back_from_json(users):
    assert from_json(json.loads(json.dumps(to_json(users)))) == users


@given(USERS, USERS)
def test_of_two_credentials_for_the_same_the_first_stays(users, extra_users):
    merged_users = added(users, extra_users)
    assert set(merged_users) == set(users) | set(extra_users)
    for name, credentials in merged_users.items():
        assert credentials == {**extra_users.get(name, {}), **users.get(name, {})}
    assert added(merged_users, extra_users) == merged_users


@pytest.mark.parametrize(
    "change",
    [
        {"salt": 1},
        {"salt": "%"},
        {"iterations": "4096"},
        {"iterations": -1},
        {"iterations": True},
        {"stored_key": None},
    ],
)
def test_a_broken_credential_is_refused(change):
    entry = {"salt": "", "stored_key": "", "server_key": "", "iterations": 4096} | change
    with pytest.raises((ValueError, TypeError)):
        from_json({"carol": {"SCRAM-SHA-256": entry}})
    with pytest.raises(TypeError):
        from_json([])


def test_no_key_is_in_its_repr():
    credential = ScramCredential(salt=b"s1", stored_key=b"s2", server_key=b"s3", iterations=4096)
    assert repr(credential) == "ScramCredential(iterations=4096)"
