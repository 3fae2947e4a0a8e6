"""Values of sasl.jaas.config, as clients and brokers write them."""

import pytest

from sharelens.kafka_formats.jaas import MODULES, JaasError, module_options

PLAIN = MODULES["PLAIN"]
SCRAM = MODULES["SCRAM-SHA-256"]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (f"{PLAIN} required;", {}),
        (f"{PLAIN} REQUIRED ;", {}),
        (f"\n {PLAIN} sufficient\n  a=b\n  c='d' ; ", {"a": "b", "c": "d"}),
        (f'{PLAIN} required a="b;=\\"\\\\ c" "d"="e";', {"a": 'b;="\\ c', "d": "e"}),
        (f"{PLAIN} required a='b\"' a=c;", {"a": "c"}),
    ],
)
def test_options_are_read_without_their_quotes(text, options):
    assert module_options(text, "PLAIN") == options


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not one login module"),
        (f'{PLAIN} required a="secret"', "with a ; at its end$"),
        (f'{PLAIN} a="secret";', "is not one login module"),
        (f'{SCRAM} required a="secret";', "names another login module than that of PLAIN$"),
        (f'{PLAIN} required a="secret"; {PLAIN} required;', "has options that are not"),
        (f'{PLAIN} required a="secret" b;', "has options that are not"),
        (f'{PLAIN} required a="secret;', "has options that are not"),
        (f'{PLAIN} required a="secret"b="c";', "has options that are not"),
    ],
)
def test_another_value_is_refused_without_showing_it(text, message):
    with pytest.raises(JaasError, match=message) as caught:
        module_options(text, "PLAIN")
    assert "secret" not in str(caught.value)
