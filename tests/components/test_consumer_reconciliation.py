"""Members of consumer groups reconciled as Kafka's own class does: CurrentAssignmentBuilder of 4.3.1, case by case.

Members, targets and results go to and from Kafka as the records that it writes of them.
"""

import random
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest
from py4j.protocol import Py4JJavaError

from state_model.consumer.reconciliation import (
    MemberAssignment,
    MemberState,
    Partition,
    Partitions,
    Subscription,
    reconcile,
    subscribed_topic_names,
)
from state_model.group_reconciliation import FencedError
from state_model.group_records import GroupRecord, decode_record, encode_record
from state_model.schema import Tree
from tests.broker.java import JavaMachine

pytestmark = pytest.mark.components

CASES = 1000
TOPIC_IDS = {"a": "AAECAwQFBgcICQoLDA0ODw", "b": "AAECAwQFBgcICQoLDA0OEA", "gone": "AAECAwQFBgcICQoLDA0OEQ"}
TOPICS = {TOPIC_IDS[name]: name for name in "ab"}
PARTITIONS = [Partition(topic_id, number) for topic_id in TOPIC_IDS.values() for number in range(3)]
RESOLVED = {"b.*": frozenset({"b"}), "nothing": frozenset[str]()}


class Case(NamedTuple):
    """A heartbeat: the member before, and all that its next assignment depends on."""

    member: MemberAssignment
    names: tuple[str, ...]
    regex: str | None
    is_changed: bool
    target: Partitions
    target_epoch: int
    owned: Partitions | None
    epochs: Mapping[Partition, int]


def drawn_case(dice: random.Random) -> Case:
    """A case in which each partition is assigned, pending revocation, another member's or free."""
    epoch = dice.randint(1, 9)
    state = dice.choice([*MemberState, *MemberState, MemberState.STABLE, 99])
    places: dict[Partition, str] = {part: dice.choice(["assigned", "pending", "other", "free"]) for part in PARTITIONS}
    empty = dice.choice(["assigned", "pending", "none of them"])
    places = {part: place for part, place in places.items() if place != empty}
    assigned = {part: dice.randint(0, epoch) for part, place in places.items() if place == "assigned"}
    pending = {part: dice.randint(0, epoch) for part, place in places.items() if place == "pending"}
    if state != MemberState.UNREVOKED_PARTITIONS and dice.random() < 0.9:
        pending = {}
    recorded = [*assigned, *pending]
    owned = dice.choice([None, [], recorded, list(assigned), dice.sample(recorded, dice.randint(0, len(recorded)))])
    return Case(
        member=MemberAssignment(state, epoch, epoch - dice.randint(0, 2), assigned, pending),
        names=dice.choice([(), (), ("a",), ("a", "b"), ("a", "b"), ("a", "gone"), ("unknown",)]),
        regex=dice.choice([None, "", "b.*", "nothing", "unresolved"]),
        is_changed=dice.random() < 0.4,
        target=frozenset(part for part in PARTITIONS if dice.random() < 0.5),
        target_epoch=epoch + dice.choice([0, 0, 1, 3]),
        owned=None if owned is None else frozenset(owned),
        epochs=dict.fromkeys(recorded, epoch)
        | {part: dice.choice([-2, epoch]) for part, place in places.items() if place == "other"},
    )


def expected(case: Case) -> MemberAssignment | None:
    """By our rules; None: the member is fenced."""
    names = subscribed_topic_names(case.names, case.regex, RESOLVED)
    subscription = Subscription(names, TOPICS, case.is_changed)
    try:
        return reconcile(case.member, case.target, case.target_epoch, case.owned, subscription, case.epochs)
    except FencedError:
        return None


class Epochs:
    """The epochs of partitions for Kafka, which asks with a topic id and a number."""

    def __init__(self, epochs: Mapping[Partition, int]) -> None:
        self._epochs = epochs

    def apply(self, topic_id: Any, partition: int) -> int:
        return self._epochs.get(Partition(topic_id.toString(), partition), -1)

    class Java:
        implements = ["java.util.function.BiFunction"]


class Kafka:
    """Kafka's class, in a JVM."""

    def __init__(self, machine: JavaMachine) -> None:
        self._java = machine.jvm.java
        self._kafka = machine.jvm.org.apache.kafka
        self._group = self._kafka.coordinator.group
        self._consumer = self._group.modern.consumer
        self._serde = self._group.GroupCoordinatorRecordSerde()
        self._log = machine.jvm.org.slf4j.LoggerFactory.getLogger("reconciliation")
        self._image = self._image_of_topics()
        self._resolved = {
            regex: self._consumer.ResolvedRegularExpression(set(names), 1, 1) for regex, names in RESOLVED.items()
        }

    def _image_of_topics(self) -> Any:
        delta = getattr(self._kafka.image, "MetadataDelta$Builder")().build()
        record = self._kafka.common.metadata.TopicRecord
        for topic_id, name in TOPICS.items():
            delta.replay(record().setName(name).setTopicId(self._uuid(topic_id)))
        image = delta.apply(self._kafka.image.MetadataProvenance.EMPTY)
        return self._kafka.coordinator.common.runtime.KRaftCoordinatorMetadataImage(image)

    def _uuid(self, text: str) -> Any:
        return self._kafka.common.Uuid.fromString(text)

    def _value(self, record_type: int, tree: Tree) -> Any:
        """A record's value as Kafka reads it."""
        record = GroupRecord(
            record_type=record_type, name="", key={"group_id": "g", "member_id": "m"}, version=0, value=tree
        )
        key, value = map(self._java.nio.ByteBuffer.wrap, encode_record(record))
        return self._serde.deserialize(key, value).value().message()

    def reconcile(self, case: Case) -> MemberAssignment | None:
        """The member after the heartbeat; None: it is fenced."""
        member = (
            getattr(self._consumer, "ConsumerGroupMember$Builder")("m")
            .updateWith(self._value(5, metadata_tree(case)))
            .updateWith(self._log, "g", self._value(8, assignment_tree(case.member)))
            .build()
        )
        target = self._group.modern.Assignment.fromRecord(
            self._value(7, {"topic_partitions": topic_trees(case.target)})
        )
        builder = (
            self._consumer.CurrentAssignmentBuilder(member)
            .withMetadataImage(self._image)
            .withTargetAssignment(case.target_epoch, target)
            .withHasSubscriptionChanged(case.is_changed)
            .withResolvedRegularExpressions(self._resolved)
            .withCurrentPartitionEpoch(Epochs(case.epochs))
            .withOwnedTopicPartitions(None if case.owned is None else self._owned(case.owned))
        )
        try:
            after = builder.build()
        except Py4JJavaError as error:
            if error.java_exception.getClass().getSimpleName() != "FencedMemberEpochException":
                raise
            return None
        record = self._group.GroupCoordinatorRecordHelpers.newConsumerGroupCurrentAssignmentRecord("g", after)
        return assignment_of(decode_record(bytes(self._serde.serializeKey(record)), self._serde.serializeValue(record)))

    def _owned(self, partitions: Partitions) -> list[Any]:
        request = getattr(self._kafka.common.message, "ConsumerGroupHeartbeatRequestData$TopicPartitions")
        return [
            request().setTopicId(self._uuid(tree["topic_id"])).setPartitions(list(tree["partitions"]))
            for tree in topic_trees(partitions)
        ]


def metadata_tree(case: Case) -> dict[str, Any]:
    """The value of record type 5."""
    return {
        "instance_id": None,
        "rack_id": None,
        "client_id": "c",
        "client_host": "h",
        "subscribed_topic_names": case.names,
        "subscribed_topic_regex": case.regex,
        "rebalance_timeout_ms": 1,
        "server_assignor": None,
        "classic_member_metadata": None,
    }


def assignment_tree(member: MemberAssignment) -> dict[str, Any]:
    """The value of record type 8."""
    return {
        "member_epoch": member.member_epoch,
        "previous_member_epoch": member.previous_member_epoch,
        "state": member.state,
        "assigned_partitions": topic_trees(member.assigned, has_epochs=True),
        "partitions_pending_revocation": topic_trees(member.pending, has_epochs=True),
    }


def topic_trees(partitions: Any, *, has_epochs: bool = False) -> tuple[dict[str, Any], ...]:
    """Partitions by topic; `has_epochs`: they are a mapping to their assignment epochs."""
    numbers: dict[str, list[int]] = {}
    for part in sorted(partitions):
        numbers.setdefault(part.topic_id, []).append(part.partition)
    return tuple(
        {"topic_id": topic_id, "partitions": tuple(topic_numbers)}
        | (
            {"assignment_epochs": tuple(partitions[Partition(topic_id, number)] for number in topic_numbers)}
            if has_epochs
            else {}
        )
        for topic_id, topic_numbers in numbers.items()
    )


def assignment_of(record: Any) -> MemberAssignment:
    """The member of a record of type 8, whose partitions all have epochs."""
    tree = record.value
    return MemberAssignment(
        tree["state"],
        tree["member_epoch"],
        tree["previous_member_epoch"],
        *(
            {
                Partition(topic["topic_id"], number): epoch
                for topic in tree[name]
                for number, epoch in zip(topic["partitions"], topic["assignment_epochs"], strict=True)
            }
            for name in ("assigned_partitions", "partitions_pending_revocation")
        ),
    )


@pytest.fixture(scope="module")
def kafka(machine: JavaMachine) -> Kafka:
    return Kafka(machine)


def test_members_come_out_as_kafka_reconciles_them(kafka):
    dice = random.Random(848)
    cases = [drawn_case(dice) for _ in range(CASES)]
    answers = [(case, expected(case), kafka.reconcile(case)) for case in cases]
    assert [answer for answer in answers if answer[1] != answer[2]] == []
