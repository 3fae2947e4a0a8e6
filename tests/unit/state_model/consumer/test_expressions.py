"""When the regular expressions of a group are resolved again, as a table: one row a rule of Kafka's."""

import pytest

from state_model.consumer.expressions import expressions_to_resolve
from state_model.consumer.group_values import NO_MEMBER_METADATA, ConsumerGroup, ConsumerMember, ResolvedExpression
from state_model.key_map import KeyMap

RESOLVED_MS, VERSION = 1_000_000, 7
SOON_MS, LATER_MS, TOO_LATE_MS = RESOLVED_MS + 10_000, RESOLVED_MS + 10_001, RESOLVED_MS + 600_001
NEVER = 10**9


def group(*expressions, resolved=()):
    """A group with a member for each expression."""
    members = {
        f"m{number}": ConsumerMember(NO_MEMBER_METADATA._replace(subscribed_topic_regex=expression))
        for number, expression in enumerate(expressions)
    }
    return ConsumerGroup(
        members=KeyMap(members.items()),
        resolved=KeyMap((each, ResolvedExpression(frozenset(), VERSION, RESOLVED_MS)) for each in resolved),
    )


RESOLVED = group("a", resolved=["a"])


@pytest.mark.parametrize(
    ("before", "after", "topics_version", "now_ms", "expected"),
    [
        pytest.param(None, group("", ""), VERSION, 0, "", id="no expression"),
        pytest.param(None, group("a"), VERSION, 0, "a", id="the first expression of a new group"),
        pytest.param(group("a"), group("a", "b"), VERSION, 0, "ab", id="one is not resolved: all are together"),
        pytest.param(RESOLVED, RESOLVED, VERSION, LATER_MS, "", id="nothing changed"),
        pytest.param(RESOLVED, RESOLVED, VERSION + 1, SOON_MS, "", id="topics were created, too soon"),
        pytest.param(RESOLVED, RESOLVED, VERSION + 1, LATER_MS, "a", id="topics were created"),
        pytest.param(RESOLVED, RESOLVED, VERSION, TOO_LATE_MS - 1, "", id="just not too old"),
        pytest.param(RESOLVED, RESOLVED, VERSION, TOO_LATE_MS, "a", id="too old"),
        pytest.param(RESOLVED, group("b"), VERSION, SOON_MS, "", id="another expression, too soon"),
        pytest.param(RESOLVED, group("b"), VERSION, LATER_MS, "b", id="another expression"),
        pytest.param(group("b"), group("b"), VERSION, SOON_MS, "b", id="the resolved one went before"),
        pytest.param(group("a", "b", resolved="ab"), group("a", ""), VERSION, LATER_MS, "a", id="one left"),
        pytest.param(RESOLVED, group(""), NEVER, NEVER, "", id="the last one left"),
    ],
)
def test_expressions_are_resolved_together_when_it_is_due(before, after, topics_version, now_ms, expected):
    due = expressions_to_resolve(
        {} if before is None else before.resolved,
        set() if before is None else set(before.regex_subscribers),
        frozenset(after.regex_subscribers),
        topics_version=topics_version,
        refresh_interval_ms=600_000,
        now_ms=now_ms,
    )
    assert due == frozenset(expected)
