"""Regular expressions over topic names as RE2 knows them."""

import pytest

from sharelens.broker.coordinators import topic_expressions
from sharelens.broker.coordinators.topic_expressions import expression_error, matching_topics

NAMES = ["orders", "orders-2", "Orders", "__consumer_offsets", "größe"]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("orders", {"orders"}),
        ("orders.*", {"orders", "orders-2"}),
        ("(?i)orders", {"orders", "Orders"}),
        ("ord", set()),
        ("^orders$", {"orders"}),
        ("orders|__.*", {"orders", "__consumer_offsets"}),
        (r"\p{L}+", {"orders", "Orders", "größe"}),
    ],
)
def test_the_whole_name_must_match(expression, expected):
    assert expression_error(expression) is None
    assert matching_topics(expression, NAMES, lambda name: True) == expected


def test_topics_that_the_member_may_not_describe_do_not_match():
    assert matching_topics(".*", NAMES, lambda name: name != "orders") == set(NAMES) - {"orders"}


@pytest.mark.parametrize("expression", ["(", "a{2000}", "(?=a)", r"(a)\1", "*", "[", "(?P<n"])
def test_what_re2_does_not_know_is_an_error_with_a_reason(expression):
    assert expression_error(expression)


def test_without_the_package_each_expression_is_an_error(monkeypatch):
    monkeypatch.setattr(topic_expressions, "find_spec", lambda name: None)
    assert "sharelens[regex]" in expression_error("a")
