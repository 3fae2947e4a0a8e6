"""Decisions equal those of a reference that looks at all entries, rule by rule."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.broker.security.authorization.authorizer import SUPPORTED_OPERATIONS, Authorizer
from sharelens.broker.security.authorization.entries import AclEntry, Operation, PatternType, Permission, ResourceType

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
ALLOW, DENY = Permission.ALLOW, Permission.DENY
HOST = "10.0.0.1"
OPERATIONS = [operation for operation in Operation if operation is not Operation.ANY]
IMPLIED = {
    Operation.DESCRIBE: {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER},
    Operation.DESCRIBE_CONFIGS: {Operation.ALTER_CONFIGS},
}
names = st.sampled_from(["a", "ab", "abc", "b", "*", "*a", "hardcode", "hard"])
principals = st.sampled_from(["User:x", "User:y", "User:*", "Group:x"])
entries = st.lists(
    st.builds(
        AclEntry,
        st.sampled_from([TOPIC, GROUP]),
        names,
        st.sampled_from([LITERAL, PREFIXED]),
        principals,
        st.sampled_from(["*", HOST, "10.0.0.2"]),
        st.sampled_from(OPERATIONS[:8]),
        st.sampled_from([ALLOW, DENY]),
    ),
    max_size=6,
)
users = st.sampled_from(["User:x", "User:y", "User:z"])


def allow(operation, name="orders", pattern=LITERAL, principal="User:x", host="*", permission=ALLOW):
    return AclEntry(TOPIC, name, pattern, principal, host, operation, permission)


def is_allowed(given_entries, operation, name="orders", principal="User:x", **options):
    return Authorizer(given_entries, **options).is_allowed(principal, HOST, operation, TOPIC, name)


def covers(entry, resource_type, name):
    if entry.resource_type is not resource_type:
        return False
    return name.startswith(entry.name) if entry.pattern_type is PREFIXED else entry.name in ("*", name)


def concerns(entry, principal):
    return entry.principal in (principal, "User:*") and entry.host in ("*", HOST)


def by_the_rules(given_entries, principal, operation, name, *, super_users, allow_everyone):
    if principal in super_users:
        return True
    covering = [entry for entry in given_entries if covers(entry, TOPIC, name)]
    if not covering:
        return allow_everyone
    principal_entries = [entry for entry in covering if concerns(entry, principal)]
    if any(each.permission is DENY and each.operation in (Operation.ALL, operation) for each in principal_entries):
        return False
    granting = {Operation.ALL, operation, *IMPLIED.get(operation, ())}
    return any(each.permission is ALLOW and each.operation in granting for each in principal_entries)


@given(entries, users, st.sampled_from(OPERATIONS), names, st.sets(users, max_size=1), st.booleans(), st.randoms())
def test_a_decision_follows_the_rules_in_any_order_of_the_entries(
    acl_entries, user, operation, name, super_users, allow_everyone, dice
):
    expected = by_the_rules(acl_entries, user, operation, name, super_users=super_users, allow_everyone=allow_everyone)
    shuffled = dice.sample(acl_entries, len(acl_entries))
    authorizer = Authorizer(shuffled, super_users=super_users, allow_everyone=allow_everyone)
    assert authorizer.is_allowed(user, HOST, operation, TOPIC, name) is expected


def some_by_the_rules(given_entries, principal, operation, **options):
    if by_the_rules(given_entries, principal, operation, "hardcode", **options):
        return True
    principal_entries = [
        entry
        for entry in given_entries
        if entry.resource_type is TOPIC and concerns(entry, principal) and entry.operation in (Operation.ALL, operation)
    ]
    denying = [entry for entry in principal_entries if entry.permission is DENY]
    if any(entry.name == "*" and entry.pattern_type is LITERAL for entry in denying):
        return False

    def is_denied(entry):
        if entry.name == "*" and entry.pattern_type is LITERAL:
            return False
        return any(
            entry.name.startswith(other.name)
            if other.pattern_type is PREFIXED
            else entry.pattern_type is LITERAL and entry.name == other.name
            for other in denying
        )

    return any(entry.permission is ALLOW and not is_denied(entry) for entry in principal_entries)


@given(entries, users, st.sampled_from([Operation.WRITE, Operation.READ]), st.booleans())
def test_a_right_to_some_topic_follows_the_rules(acl_entries, user, operation, allow_everyone):
    expected = some_by_the_rules(acl_entries, user, operation, super_users=(), allow_everyone=allow_everyone)
    authorizer = Authorizer(acl_entries, allow_everyone=allow_everyone)
    assert authorizer.is_allowed_for_some(user, HOST, operation, TOPIC) is expected


@given(entries, users, names)
def test_the_bits_are_the_decisions(acl_entries, user, name):
    authorizer = Authorizer(acl_entries)
    bits = authorizer.authorized_operations(user, HOST, GROUP, name)
    assert bits == sum(
        1 << operation
        for operation in SUPPORTED_OPERATIONS[GROUP]
        if authorizer.is_allowed(user, HOST, operation, GROUP, name)
    )


@pytest.mark.parametrize(
    ("given_entries", "operation", "expected"),
    [
        ([], Operation.READ, False),
        ([allow(Operation.READ)], Operation.DESCRIBE, True),
        ([allow(Operation.DESCRIBE)], Operation.READ, False),
        ([allow(Operation.ALTER_CONFIGS)], Operation.DESCRIBE_CONFIGS, True),
        ([allow(Operation.ALL, "*")], Operation.WRITE, True),
        ([allow(Operation.READ, "ord", PREFIXED)], Operation.READ, True),
        # A prefix of an asterisk means names that begin with one.
        ([allow(Operation.READ, "*", PREFIXED)], Operation.READ, False),
        # A denied READ leaves the DESCRIBE that an allowed READ implies.
        ([allow(Operation.READ), allow(Operation.READ, permission=DENY)], Operation.DESCRIBE, True),
        ([allow(Operation.READ), allow(Operation.READ, permission=DENY)], Operation.READ, False),
        ([allow(Operation.ALL), allow(Operation.ALL, principal="User:*", permission=DENY)], Operation.READ, False),
        # Principals of other types never match.
        ([allow(Operation.ALL, principal="Group:x")], Operation.READ, False),
        ([allow(Operation.ALL, host="10.0.0.2")], Operation.READ, False),
        ([allow(Operation.ALL, host=HOST)], Operation.READ, True),
    ],
)
def test_entries_that_kafka_documents(given_entries, operation, expected):
    assert is_allowed(given_entries, operation) is expected


def test_super_users_are_exact_texts_and_stronger_than_denying_entries():
    denied = [allow(Operation.ALL, principal="User:*", permission=DENY)]
    assert is_allowed(denied, Operation.READ, super_users=["User:x"])
    assert not is_allowed([], Operation.READ, super_users=["User:*", "User:X"])


def test_a_resource_with_an_entry_of_another_user_is_not_open_to_everyone():
    other = [allow(Operation.READ, principal="User:y")]
    assert is_allowed([], Operation.READ, allow_everyone=True)
    assert not is_allowed(other, Operation.READ, allow_everyone=True)
    assert is_allowed(other, Operation.READ, "payments", allow_everyone=True)


def test_an_entry_that_is_given_twice_counts_once():
    assert Authorizer([allow(Operation.READ)] * 2).entries == (allow(Operation.READ),)
