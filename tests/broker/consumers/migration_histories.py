"""Histories of groups with members of both protocols: classic members in a consumer group, and groups that migrate.

`HISTORIES` has them together with those of consumer members alone.
"""

from tests.broker.consumers.classic_member import ClassicMember
from tests.broker.consumers.consumer_histories import history, joined
from tests.broker.consumers.consumer_script import Script
from tests.broker.consumers.offset_histories import HISTORIES

__all__ = ["HISTORIES"]


@history
def classic_member_joins(script: Script) -> None:
    topic = joined(script, "a")
    member = ClassicMember(script, "c", topic)
    member.join()
    member.sync()
    member.follow("a")
    script.describe()
    script.describe_classic()
    script.list_entry()
    member.leave()
    script.settle("a")


@history
def consumer_member_upgrades_a_classic_group(script: Script) -> None:
    topic = script.topic("t", 6)
    member = ClassicMember(script, "c", topic)
    member.join()
    member.sync({topic: range(6)})
    member.beat()
    script.list_entry()
    script.join("a", topic)
    script.describe()
    member.follow("a")
    script.describe()
    script.list_entry()


@history
def last_consumer_member_downgrades_the_group(script: Script) -> None:
    topic = joined(script, "a")
    member = ClassicMember(script, "c", topic)
    member.join()
    member.sync()
    member.follow("a")
    script.send("a", -1)
    script.describe()
    script.list_entry()
    member.beat()
    member.join()
    member.sync({topic: range(6)})
    member.beat()
    script.send("a", 2)
    script.join("a", topic)
    member.follow("a")


@history
def static_member_changes_its_protocol(script: Script) -> None:
    topic = script.topic("t", 4)
    script.join("b", topic)
    member = ClassicMember(script, "c", topic, instance_id="i")
    member.join()
    member.sync()
    member.follow("b")
    script.join("a", topic, instance_id="i")
    script.send("c", -2, instance_id="i")
    script.join("a", topic, instance_id="i")
    member.beat()
    script.settle("a", "b")
    script.send("a", -2, instance_id="i")
    again = ClassicMember(script, "d", topic, instance_id="i")
    again.join()
    again.sync()
    again.follow("b")
    script.describe()


@history
def last_static_consumer_member_becomes_classic(script: Script) -> None:
    topic = script.topic("t", 4)
    script.join("a", topic, instance_id="i")
    script.settle("a")
    script.send("a", -2, instance_id="i")
    member = ClassicMember(script, "c", topic, instance_id="i")
    member.join()
    script.describe()
    member.sync({topic: range(4)})
    member.beat()
    script.list_entry()


@history
def refused_classic_members(script: Script) -> None:
    topic = joined(script, "a")
    ClassicMember(script, "c", topic).join(protocol_type="connect")
    ClassicMember(script, "d", topic).join(protocols=())
    ClassicMember(script, "e", topic).join(session_timeout=1)
    ClassicMember(script, "f", topic).join(member_id="unknown")
    member = ClassicMember(script, "g", topic)
    member.join()
    member.sync(generation_id=99)
    member.sync(protocol_name="uniform")
    member.sync(protocol_type="connect")
    member.sync(member_id="unknown")
    member.sync()
    member.beat(generation_id=1)
    member.beat(member_id="unknown")
    member.beat(group_instance_id="i")
    member.beat()


@history
def full_group_with_classic_members(script: Script) -> None:
    topic = joined(script, "a", "b", "c")
    ClassicMember(script, "d", topic).join()
    ClassicMember(script, "e", topic, instance_id="i").join()
    script.describe()


@history
def classic_member_that_joins_again_with_other_topics(script: Script) -> None:
    topic, other = joined(script, "a"), script.topic("u", 1)
    member = ClassicMember(script, "c", topic)
    member.join()
    member.sync()
    member.follow("a")
    member.join(topics=[other])
    member.sync()
    script.settle("a")
    member.beat()
    script.describe()


@history
def silent_classic_member_is_fenced(script: Script) -> None:
    topic = joined(script, "a")
    member = ClassicMember(script, "c", topic, session_timeout=5_000)
    member.join()
    member.sync()
    member.follow("a", rounds=3)
    script.wait(5.5)
    script.settle("a", rounds=2)
    member.beat()
    script.describe()


@history
def classic_member_that_does_not_rejoin_is_fenced(script: Script) -> None:
    topic = script.topic("t", 4)
    member = ClassicMember(script, "c", topic, rebalance_timeout=4_000)
    member.join()
    member.sync({topic: range(4)})
    script.join("a", topic)
    member.beat()
    script.wait(4.5)
    member.beat()
    script.settle("a")
    script.describe()


@history
def classic_member_that_does_not_sync_is_fenced(script: Script) -> None:
    topic = joined(script, "a")
    member = ClassicMember(script, "c", topic, rebalance_timeout=4_000)
    member.join()
    script.wait(4.5)
    member.sync()
    script.settle("a")


@history
def commits_of_classic_members(script: Script) -> None:
    topic = joined(script, "a")
    member = ClassicMember(script, "c", topic)
    member.join()
    member.sync()
    member.follow("a")
    for version in (2, 7, 8, 9, 10):
        member.commit(f"own {version}", member.generation, topic, 0, version=version)
    member.commit("older", member.generation - 1, topic, 0)
    member.commit("newer", member.generation + 1, topic, 0)
    script.commit("consumer member, version 8", "a", script.epoch("a"), topic, 0, version=8)
    script.fetch("own", "c", member.generation)
    script.fetch("older", "c", member.generation - 1)


@history
def empty_groups_change_their_type(script: Script) -> None:
    topic = joined(script, "a")
    script.commit("own", "a", script.epoch("a"), topic, 0)
    script.send("a", -1)
    member = ClassicMember(script, "c", topic)
    member.join()
    script.describe()
    member.sync({topic: range(6)})
    script.list_entry()
    member.leave()
    script.list_entry()
    script.join("b", topic)
    script.describe()
    script.fetch("all", None, -1)


@history
def group_of_another_protocol(script: Script) -> None:
    topic = script.topic("t", 2)
    member = ClassicMember(script, "c", topic)
    member.join(protocol_type="connect")
    script.join("a", topic)
    member.sync(protocol_type="connect")
    script.join("a", topic)
    script.send("a", 1)
    script.list_entry()
    member.leave()
    script.join("a", topic)
    script.list_entry()


@history
def classic_member_with_an_unreadable_subscription(script: Script) -> None:
    topic = joined(script, "a")
    for metadata in (b"", b"\x00", b"\x00\x01\x00\x00\x00\x09"):
        script.request(
            "join", 11, 9, group_id=script.group, member_id="", group_instance_id="i", session_timeout=30_000,
            rebalance_timeout=60_000, protocol_type="consumer", protocols=[{"name": "range", "metadata": metadata}],
            reason=None,
        )  # fmt: skip
    script.beat("a", subscribed_topic_names=[topic])
