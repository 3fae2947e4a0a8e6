"""Values of sasl.jaas.config on the broker's side."""

import pytest

from sharelens.broker.errors import ConfigError
from sharelens.broker.security.authentication.jaas import jaas_options, plain_users

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
KEY = "listener.name.a.plain.sasl.jaas.config"


def test_users_of_plain_are_the_options_of_the_server():
    text = f' {PLAIN}\n required username="admin" password="p" user_alice="a;\\"b\\\\c" user_bob=\'x y\' ; '
    options = jaas_options(text, "PLAIN", KEY)
    assert options["username"] == "admin"
    assert plain_users(options) == {"alice": 'a;"b\\c', "bob": "x y"}


def test_a_module_may_have_no_options():
    assert jaas_options(f"{SCRAM} required;", "SCRAM-SHA-256", KEY) == {}
    assert jaas_options(f"{SCRAM} REQUIRED ;", "SCRAM-SHA-512", KEY) == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not one login module"),
        (f'{PLAIN} required user_a="secret"', "is not one login module"),
        (f'{PLAIN} user_a="secret";', "is not one login module"),
        (f'{SCRAM} required user_a="secret";', "names another login module"),
        (f'{PLAIN} required user_a="secret"; {PLAIN} required;', "has options that are not"),
        (f'{PLAIN} required user_a="secret" b;', "has options that are not"),
        (f'{PLAIN} required user_a="secret;', "has options that are not"),
    ],
)
def test_another_value_is_refused_without_showing_it(text, message):
    with pytest.raises(ConfigError, match=message) as caught:
        jaas_options(text, "PLAIN", KEY)
    assert KEY in str(caught.value)
    assert "secret" not in str(caught.value)
