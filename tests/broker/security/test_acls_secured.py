"""Users of SASL and owners of certificates have rights of their own; the same connection gets new ones at once."""

from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from tests.broker.security.secured import PASSWORD, SecuredBroker, secured_broker
from tests.broker.security.test_acls import AUTHORIZER
from tests.broker.share_clients import TIMEOUT_S

pytestmark = pytest.mark.broker


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    """Clients of the plaintext listener may do everything, users nothing without an entry."""
    rights = {"authorizer_class_name": AUTHORIZER, "super_users": "User:ANONYMOUS"}
    with secured_broker(tmp_path_factory.mktemp("acls"), **rights) as started:
        client = admin(started, "PLAIN")
        for created in client.create_topics([NewTopic("orders", 1, 1), NewTopic("other", 1, 1)]).values():
            created.result(TIMEOUT_S)
        yield started


def admin(secured: SecuredBroker, listener: str, **config: str) -> AdminClient:
    settings = {name.replace("_", "."): value for name, value in config.items()}
    return AdminClient({"bootstrap.servers": secured.addresses[listener], **settings})


def allow(secured: SecuredBroker, principal: str, topic: str, operation: AclOperation) -> None:
    pattern = ResourcePatternType.LITERAL
    binding = AclBinding(ResourceType.TOPIC, topic, pattern, principal, "*", operation, AclPermissionType.ALLOW)
    client = admin(secured, "PLAIN")
    for created in client.create_acls([binding]).values():
        created.result(TIMEOUT_S)


def visible(client: AdminClient) -> set[str]:
    return set(client.list_topics(timeout=TIMEOUT_S).topics)


def test_a_user_of_sasl_sees_what_entries_for_its_name_show(secured):
    named = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN"}
    alice = admin(secured, "NAMED", **named, sasl_username="alice", sasl_password=PASSWORD)
    bob = admin(secured, "NAMED", **named, sasl_username="bob", sasl_password="bob-secret")
    assert visible(alice) == visible(bob) == set()
    allow(secured, "User:alice", "orders", AclOperation.DESCRIBE)
    assert visible(alice) == {"orders"}
    assert visible(bob) == set()
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        alice.delete_topics(["orders"])["orders"].result(TIMEOUT_S)
    assert visible(admin(secured, "PLAIN")) == {"orders", "other"}


def test_the_owner_of_a_certificate_sees_what_entries_for_its_name_show(secured):
    secured.ca.issue(secured.folder / "carol.pem", "carol.ops.test")
    pem = str(secured.folder / "carol.pem")
    trust = {"security_protocol": "SSL", "ssl_ca_location": str(secured.folder / "ca.pem")}
    carol = admin(secured, "MUTUAL", **trust, ssl_certificate_location=pem, ssl_key_location=pem)
    assert visible(carol) == set()
    allow(secured, "User:carol", "other", AclOperation.READ)
    assert visible(carol) == {"other"}
