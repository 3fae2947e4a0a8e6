"""The scenario `consumer`: groups of the consumer protocol alone."""

from typing import Any, Final

from tools.record_groups.cluster import Cluster
from tools.record_groups.moments import Recorder

COMMON_SETTINGS: Final[dict[str, object]] = {
    "offsets.topic.num.partitions": 4,
    "transaction.state.log.num.partitions": 1,
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "group.consumer.heartbeat.interval.ms": 300,
    "group.consumer.min.session.timeout.ms": 1_000,
    "group.consumer.session.timeout.ms": 4_000,
}
CONSUMER_SETTINGS: Final = COMMON_SETTINGS
TOPICS: Final = {"orders": 6, "payments": 4, "log-a": 2, "log-b": 3}
REVOCATION_MS: Final = 3_000


def record_consumer(cluster: Cluster, recorder: Recorder) -> None:
    """Groups of the consumer protocol: scale out and in, topics that grow and go, a rolling bounce of static members, a
    killed member, one that keeps its partitions for too long, expressions, both assignors, transactions, deletions."""
    for topic, partitions in TOPICS.items():
        cluster.create_topic(topic, partitions)
        cluster.send(topic, 5 * partitions)
        recorder.note(f"created topic {topic} partitions={partitions}")
    _scale(cluster, recorder)
    _bounce(cluster, recorder)
    _kill(cluster, recorder)
    _keep(cluster, recorder)
    _express(cluster, recorder)
    _prefer(cluster, recorder)
    _commit(cluster, recorder)
    _restart(cluster, recorder)
    _delete(cluster, recorder)


def _scale(cluster: Cluster, recorder: Recorder) -> None:
    first = cluster.member("scaled", "orders", "payments", client_id="first")
    recorder.wait_until_stable("scaled", 1, 10)
    recorder.moment("first-member")
    second, third = (cluster.member("scaled", "orders", "payments", client_id=name) for name in ("second", "third"))
    recorder.wait_until_stable("scaled", 3, 10)
    recorder.moment("scaled-out")
    cluster.send("orders", 30)
    third.close()
    recorder.note("third leaves")
    recorder.wait_until_stable("scaled", 2, 10)
    recorder.moment("scaled-in")
    cluster.grow_topic("orders", 8)
    recorder.note("orders has 8 partitions")
    cluster.send("orders", 16)
    recorder.wait_until_stable("scaled", 2, 12)
    recorder.moment("partitions-added")
    epoch = recorder.described("scaled")["groupEpoch"]
    cluster.delete_topic("payments")
    recorder.note("payments is deleted")
    recorder.wait_until_stable("scaled", 2, 8)
    recorder.moment("topic-deleted")
    recorder.wait_until("scaled", lambda entry: entry["groupEpoch"] > epoch)
    recorder.wait_until_stable("scaled", 2, 8)
    recorder.moment("deletion-noticed")
    first.close()
    second.close()
    recorder.wait_until("scaled", lambda entry: entry["groupState"] == "Empty")
    recorder.moment("empty")


def _bounce(cluster: Cluster, recorder: Recorder) -> None:
    def start(number: int) -> Any:
        return cluster.member(
            "bounced", "orders", "log-b", group_instance_id=f"instance-{number}", group_remote_assignor="range",
            client_rack=f"rack-{number}", client_id=f"bounced-{number}",
        )  # fmt: skip

    members = [start(number) for number in range(3)]
    recorder.wait_until_stable("bounced", 3, 11)
    recorder.moment("static-members")
    for number, member in enumerate(members):
        member.close()
        if number == 0:
            recorder.moment("static-member-away")
        members[number] = start(number)
        recorder.wait_until_stable("bounced", 3, 11)
    recorder.moment("bounced")
    members[2].close()
    members[1].close("LEAVE_GROUP")
    recorder.note("instance-2 is away, instance-1 leaves for good")
    recorder.wait_until("bounced", lambda entry: len(entry["members"]) == 2)
    admin = cluster.jvm.org.apache.kafka.clients.admin
    away = admin.MemberToRemove("instance-2")
    removed = admin.RemoveMembersFromConsumerGroupOptions([away])
    cluster.wait_for(cluster.admin.removeMembersFromConsumerGroup("bounced", removed).all())
    recorder.note("instance-2 is removed")
    recorder.wait_until_stable("bounced", 1, 11)
    recorder.moment("static-members-removed")


def _kill(cluster: Cluster, recorder: Recorder) -> None:
    cluster.member("killed", "orders", client_id="alive")
    killed = cluster.killed_member("killed", "orders")
    recorder.wait_until_stable("killed", 2, 8)
    killed.close()
    recorder.note("a member is killed")
    recorder.moment("member-killed")
    recorder.wait_until_stable("killed", 1, 8)
    recorder.moment("session-timed-out")


def _keep(cluster: Cluster, recorder: Recorder) -> None:
    members = [cluster.scripted_member("assigned", name, "log-a") for name in ("stays", "leaves")]
    recorder.wait_until("assigned", lambda entry: entry["groupState"] == "Assigning")
    recorder.moment("assigning")

    def is_settled(entry: dict[str, Any]) -> bool:
        for member in members:
            member.beat(topic_partitions=member.assigned)
        return [each["memberEpoch"] for each in entry["members"]] == [entry["groupEpoch"]] * 2

    recorder.wait_until("assigned", is_settled)
    recorder.moment("assigned")
    members[1].beat(member_epoch=-1)
    joined = {"rebalance_timeout": REVOCATION_MS, "server_assignor": "uniform"}
    keeper = cluster.scripted_member("kept", "keeper", "log-b", **joined)
    cluster.member("kept", "log-b", client_id="waiting")

    def is_revoking(entry: dict[str, Any]) -> bool:
        epochs = {member["memberId"]: member["memberEpoch"] for member in entry["members"]}
        keeper.beat()
        return len(epochs) == 2 and epochs.pop("keeper") < max(epochs.values()) == entry["groupEpoch"]

    recorder.wait_until("kept", is_revoking)
    recorder.moment("partitions-kept")
    recorder.wait_until("kept", lambda entry: keeper.beat().error_code.value != 0)
    recorder.note("the member that keeps its partitions is fenced")
    recorder.wait_until_stable("kept", 1, 3)
    recorder.moment("revocation-timed-out")


def _express(cluster: Cluster, recorder: Recorder) -> None:
    cluster.member("expressed", pattern="log-.*", client_id="all-logs")
    recorder.wait_until_stable("expressed", 1, 5)
    recorder.moment("expression")
    second = cluster.member("expressed", pattern="log-(a|z)", client_id="some-logs")
    recorder.wait_until_stable("expressed", 2, 5)
    cluster.create_topic("log-c", 2)
    recorder.note("log-c is created")
    recorder.wait_until_stable("expressed", 2, 7)
    recorder.moment("expressions")
    second.close()
    recorder.wait_until_stable("expressed", 1, 7)
    recorder.moment("expression-without-member")


def _prefer(cluster: Cluster, recorder: Recorder) -> None:
    for number, (assignor, topics) in enumerate(
        [("range", ("orders",)), ("range", ("orders", "log-a")), ("uniform", ("log-a", "log-b"))]
    ):
        cluster.member("preferring", *topics, group_remote_assignor=assignor, client_id=f"preferring-{number}")
        recorder.wait_until_stable("preferring", number + 1)
    recorder.moment("range-preferred")
    for number in range(2):
        cluster.member("preferring", "log-b", group_remote_assignor="uniform", client_id=f"uniform-{number}")
        recorder.wait_until_stable("preferring", number + 4)
    recorder.moment("uniform-preferred")


def _commit(cluster: Cluster, recorder: Recorder) -> None:
    jvm = cluster.jvm
    member = cluster.member("transactional", "log-a", enable_auto_commit="false", client_id="transactional")
    recorder.wait_until_stable("transactional", 1, 2)
    properties = jvm.java.util.Properties()
    serializer = "org.apache.kafka.common.serialization.StringSerializer"
    for name, value in (
        ("bootstrap.servers", cluster.bootstrap), ("transactional.id", "t"),
        ("key.serializer", serializer), ("value.serializer", serializer),
    ):  # fmt: skip
        properties.put(name, value)
    producer = jvm.org.apache.kafka.clients.producer.KafkaProducer(properties)
    producer.initTransactions()

    def committed(offset: int, partition: int) -> dict[Any, Any]:
        topic_partition = jvm.org.apache.kafka.common.TopicPartition("log-a", partition)
        return {topic_partition: jvm.org.apache.kafka.clients.consumer.OffsetAndMetadata(offset, f"at {offset}")}

    producer.beginTransaction()
    member.commit_in_transaction(producer, committed(3, 0))
    recorder.moment("transaction-open")
    producer.commitTransaction()
    producer.beginTransaction()
    member.commit_in_transaction(producer, committed(4, 0) | committed(2, 1))
    producer.abortTransaction()
    producer.close()
    recorder.moment("transactions-ended")
    cluster.wait_for(cluster.admin.alterConsumerGroupOffsets("offsets-only", committed(1, 0) | committed(1, 1)).all())
    recorder.groups.add("offsets-only")
    recorder.moment("offsets-without-members")


def _restart(cluster: Cluster, recorder: Recorder) -> None:
    cluster.restart()
    recorder.note("the broker starts again")
    recorder.wait_until_stable("preferring", 5)
    recorder.wait_until_stable("killed", 1, 8)
    recorder.wait_until_stable("expressed", 1, 7)
    recorder.moment("restarted")


def _delete(cluster: Cluster, recorder: Recorder) -> None:
    partition = cluster.jvm.org.apache.kafka.common.TopicPartition
    deleted = cluster.admin.deleteConsumerGroupOffsets("scaled", {partition("orders", 0), partition("orders", 7)})
    cluster.wait_for(deleted.all())
    recorder.note("offsets of scaled are deleted")
    recorder.moment("offsets-deleted")
    cluster.wait_for(cluster.admin.deleteConsumerGroups(["scaled", "offsets-only"]).all())
    recorder.note("scaled and offsets-only are deleted")
    recorder.moment("groups-deleted")
    cluster.member("scaled", "log-a", client_id="again")
    recorder.wait_until_stable("scaled", 1, 2)
    recorder.moment("group-again")
    cluster.end_members()
    for group in ("bounced", "killed", "kept", "expressed", "preferring", "transactional", "scaled"):
        recorder.wait_until(group, _is_empty)
    recorder.moment("final")


def _is_empty(entry: dict[str, Any]) -> bool:
    return bool(entry["groupState"] == "Empty" or all(each["memberEpoch"] == -2 for each in entry["members"]))
