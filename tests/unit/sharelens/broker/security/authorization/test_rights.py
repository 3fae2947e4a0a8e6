"""The rights of one client: its address as Java writes it, and every right without an authorizer."""

import pytest

from sharelens.broker.security.authorization.authorizer import Authorizer
from sharelens.broker.security.authorization.entries import AclEntry, Operation, PatternType, Permission, ResourceType
from sharelens.broker.security.authorization.rights import EVERY_RIGHT, Rights, host_text


@pytest.mark.parametrize(
    ("client_host", "expected"),
    [
        ("/127.0.0.1", "127.0.0.1"),
        ("/::1", "0:0:0:0:0:0:0:1"),
        ("/fe80::1%eth0", "fe80:0:0:0:0:0:0:1"),
        ("/::ffff:10.0.0.1", "10.0.0.1"),
        ("/unknown", "unknown"),
    ],
)
def test_an_address_is_the_text_that_entries_have(client_host, expected):
    assert host_text(client_host) == expected


def test_without_an_authorizer_a_client_has_every_right():
    assert EVERY_RIGHT.topic(Operation.WRITE, "orders")
    assert EVERY_RIGHT.some_topic(Operation.WRITE)
    assert EVERY_RIGHT.may_create_topic("orders")
    assert EVERY_RIGHT.bits(ResourceType.TOPIC, "orders") == 3576
    assert EVERY_RIGHT.bits(ResourceType.GROUP, "g") == 3400
    assert EVERY_RIGHT.cluster_bits() == 8096


def test_the_operations_on_the_cluster_are_shown_to_those_who_may_describe_it():
    def cluster_bits(operation):
        entry = AclEntry(
            ResourceType.CLUSTER, "kafka-cluster", PatternType.LITERAL, "User:x", "*", operation, Permission.ALLOW
        )
        return Rights(Authorizer([entry]), "User:x", "127.0.0.1").cluster_bits()

    assert cluster_bits(Operation.DESCRIBE_CONFIGS) == 0
    assert cluster_bits(Operation.DESCRIBE) == 1 << Operation.DESCRIBE
    assert cluster_bits(Operation.ALTER) == 1 << Operation.ALTER | 1 << Operation.DESCRIBE
