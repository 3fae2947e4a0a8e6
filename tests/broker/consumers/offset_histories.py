"""Histories of consumer groups and their offsets, transactions, administration and configurations.

`HISTORIES` has them together with those of members.
"""

from sharelens.kafka_formats.messages.api_keys import ApiKey
from tests.broker.consumers.consumer_histories import HISTORIES, history, joined
from tests.broker.consumers.consumer_script import Script

__all__ = ["HISTORIES"]

# Offsets.


@history
def commits_by_epoch(script: Script) -> None:
    topic = joined(script, "a")
    other = script.topic("u", 1)
    epoch = script.epoch("a")
    for label, member, sent in (
        ("own", "a", epoch), ("older", "a", epoch - 1), ("newer", "a", epoch + 1), ("no epoch", "a", -1),
        ("unknown member", "x", epoch), ("no member", "", -1), ("no member with an epoch", "", epoch),
    ):  # fmt: skip
        for version in (8, 9, 10):
            script.commit(f"{label} {version}", member, sent, topic, 0, version=version)
    script.commit("not subscribed", "a", epoch, other, 0)
    script.commit("missing topic", "a", epoch, "none", 0)
    script.commit("missing id", "a", epoch, "none", 0, version=10)
    script.commit("missing partition", "a", epoch, topic, 99)
    script.fetch("all", None, -1)


@history
def commits_in_an_older_epoch(script: Script) -> None:
    topic = joined(script, "a")
    epoch = script.epoch("a")
    script.join("b", topic)
    script.settle("a", "b")
    first, moved = script.partitions("a")[0], script.partitions("b")[0]
    script.commit("kept, older", "a", epoch, topic, first)
    script.commit("kept, before its assignment", "a", epoch - 1, topic, first)
    script.commit("moved, older", "a", epoch, topic, moved)
    script.commit("moved, own", "a", script.epoch("a"), topic, moved)
    script.commit("taken, older", "b", script.epoch("b") - 1, topic, moved)
    script.commit("taken, own", "b", script.epoch("b"), topic, moved)


@history
def commits_of_an_empty_group(script: Script) -> None:
    topic = joined(script, "a")
    script.send("a", -1)
    script.commit("no member", "", -1, topic, 0)
    script.commit("no member, old version", "", -1, topic, 0, version=2)
    script.commit("member that left", "a", 2, topic, 0)
    script.fetch("no member", None, -1)
    script.delete_group()


@history
def commits_without_a_group(script: Script) -> None:
    topic = script.topic("t", 2)
    script.commit("with an epoch", "a", 3, topic, 0)
    script.commit("without", "", -1, topic, 1)
    script.describe()
    script.describe_classic()
    script.list_entry()
    script.join("a", topic)
    script.list_entry()
    script.settle("a")
    script.fetch("of the member", "a", script.epoch("a"))


@history
def fetches_by_epoch(script: Script) -> None:
    topic = joined(script, "a")
    epoch = script.epoch("a")
    script.commit("own", "a", epoch, topic, 0)
    for version in (8, 9, 10):
        for label, member, sent in (
            ("own", "a", epoch), ("older", "a", epoch - 1), ("newer", "a", epoch + 1), ("unknown member", "x", epoch),
            ("tool", None, -1), ("no member", "", -1),
        ):  # fmt: skip
            script.fetch(f"{label} {version}", member, sent, version=version)
        script.fetch(f"topic {version}", "a", epoch, version=version, topic=topic)
        script.fetch(f"missing topic {version}", "a", epoch, version=version, topic="none")


@history
def offsets_are_deleted(script: Script) -> None:
    topic, other = joined(script, "a"), script.topic("u", 1)
    script.commit("own", "a", script.epoch("a"), topic, 0)
    for name in (topic, other, "none"):
        script.request(
            f"delete {name}", ApiKey.OFFSET_DELETE, 0, group_id=script.group,
            topics=[{"name": name, "partitions": [{"partition_index": 0}]}],
        )  # fmt: skip
    script.send("a", -1)
    script.request(
        "delete of an empty group", ApiKey.OFFSET_DELETE, 0, group_id=script.group,
        topics=[{"name": topic, "partitions": [{"partition_index": 0}]}],
    )  # fmt: skip
    script.fetch("all", None, -1)


# Administration.


@history
def group_is_described_and_deleted(script: Script) -> None:
    script.describe("before")
    script.describe_classic()
    script.list_entry()
    joined(script, "a")
    script.describe()
    script.describe_classic()
    for states, types in (
        ((), ()), (("Stable",), ()), (("stable",), ("consumer",)), (("Empty",), ()), ((), ("Classic",)), ((), ("no",)),
    ):  # fmt: skip
        script.list_entry(states, types)
    script.delete_group()
    script.send("a", -1)
    script.list_entry()
    script.describe("empty")
    script.delete_group()
    script.delete_group()
    script.describe("deleted")
    script.list_entry()
    joined(script, "b")


@history
def other_versions_describe(script: Script) -> None:
    joined(script, "a")
    body = {"group_ids": [script.group], "include_authorized_operations": True}
    script.request("describe 0", ApiKey.CONSUMER_GROUP_DESCRIBE, 0, **body)
    script.request("share", ApiKey.SHARE_GROUP_DESCRIBE, 1, **body)
    script.request("streams", ApiKey.STREAMS_GROUP_DESCRIBE, 0, **body)
    for version in (0, 5):
        body = {"groups": [script.group], "include_authorized_operations": True}
        script.request(f"describe classic {version}", ApiKey.DESCRIBE_GROUPS, version, **body)


@history
def other_kinds_of_members(script: Script) -> None:
    joined(script, "a")
    script.request(
        "share", ApiKey.SHARE_GROUP_HEARTBEAT, 1, group_id=script.group, member_id="s", member_epoch=0,
        rack_id=None, subscribed_topic_names=["t"],
    )  # fmt: skip
    script.request(
        "heartbeat", ApiKey.HEARTBEAT, 4, group_id=script.group, generation_id=1, member_id="x", group_instance_id=None
    )
    script.request(
        "sync", ApiKey.SYNC_GROUP, 5, group_id=script.group, generation_id=1, member_id="x", group_instance_id=None,
        protocol_type="consumer", protocol_name="range", assignments=[],
    )  # fmt: skip
    script.request(
        "heartbeat of a", ApiKey.HEARTBEAT, 4, group_id=script.group, generation_id=2, member_id="a",
        group_instance_id=None,
    )  # fmt: skip


@history
def share_group_first(script: Script) -> None:
    topic = script.topic("t", 2)
    script.request(
        "share", ApiKey.SHARE_GROUP_HEARTBEAT, 1, group_id=script.group, member_id="s", member_epoch=0,
        rack_id=None, subscribed_topic_names=[topic],
    )  # fmt: skip
    script.join("a", topic)
    script.send("a", 1)
    script.send("a", -1)


# Transactions.


@history
def commits_in_a_transaction(script: Script) -> None:
    topic = joined(script, "a")
    epoch = script.epoch("a")
    script.begin_transaction("t")
    for label, member, sent in (
        ("own", "a", epoch), ("older", "a", epoch - 1), ("newer", "a", epoch + 1), ("no epoch", "a", -1),
        ("unknown member", "x", epoch), ("no member", "", -1),
    ):  # fmt: skip
        script.commit_in_transaction(label, member, sent, topic, 1)
    script.fetch("while it is open", None, -1)
    script.fetch("stable", None, -1, require_stable=True)
    script.end_transaction()
    script.fetch("when it has ended", None, -1)
    script.send("a", -1)
    script.delete_group()


# Configurations.


@history
def configurations_with_their_bounds(script: Script) -> None:
    for name, texts in {
        "session.timeout.ms": ("999", "1000", "60000", "60001", "200", "x"),
        "heartbeat.interval.ms": ("199", "200", "15000", "15001", "-1"),
        "assignment.interval.ms": ("-1", "0", "15000", "15001"),
        "assignor": ("range",),
    }.items():
        for text in texts:
            script.alter_config(f"consumer.{name}", text)
    topic = script.topic("t", 1)
    script.describe_configs("consumer.")
    script.join("a", topic)
    script.alter_config("consumer.heartbeat.interval.ms", None)
    script.topic("barrier", 1)
    script.beat("a")
    script.describe_configs("consumer.")
