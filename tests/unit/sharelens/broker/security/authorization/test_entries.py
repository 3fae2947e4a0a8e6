"""Filters of ACL entries: null and ANY are no condition, MATCH is every entry that applies to a name."""

import pytest

from sharelens.broker.security.authorization.entries import (
    AclEntry,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)

ANY = 1


def entry(name, pattern=PatternType.LITERAL):
    return AclEntry(ResourceType.TOPIC, name, pattern, "User:m", "*", Operation.READ, Permission.ALLOW)


ENTRIES = [entry("foobar"), entry("foo", PatternType.PREFIXED), entry("*"), entry("bar")]


@pytest.mark.parametrize(
    ("name", "pattern", "expected"),
    [
        ("foobar", PatternType.LITERAL, ["foobar"]),
        ("foobar", PatternType.PREFIXED, []),
        ("foo", PatternType.PREFIXED, ["foo"]),
        ("foo", PatternType.ANY, ["foo"]),
        ("foobar", PatternType.MATCH, ["foobar", "foo", "*"]),
        ("*", PatternType.MATCH, ["*"]),
        (None, PatternType.MATCH, ["foobar", "foo", "*", "bar"]),
        (None, PatternType.PREFIXED, ["foo"]),
        (None, 99, []),
    ],
)
def test_names_and_patterns(name, pattern, expected):
    condition = AclFilter(ANY, name, pattern, None, None, ANY, ANY)
    assert [each.name for each in ENTRIES if condition.matches(each)] == expected


@pytest.mark.parametrize(
    ("field", "value", "is_met"),
    [
        ("resource_type", ResourceType.TOPIC, True),
        ("resource_type", ResourceType.GROUP, False),
        ("principal", "User:m", True),
        ("principal", "User:*", False),
        ("host", "*", True),
        ("host", "10.0.0.1", False),
        ("operation", Operation.READ, True),
        ("operation", Operation.ALL, False),
        ("permission", Permission.DENY, False),
    ],
)
def test_the_other_fields_are_compared_as_they_are(field, value, is_met):
    condition = AclFilter(ANY, None, ANY, None, None, ANY, ANY)._replace(**{field: value})
    assert condition.matches(ENTRIES[0]) is is_met
