"""The scenario `consumer-migration`: classic groups that become consumer groups, and back."""

import time
from typing import Any, Final

from tools.record_groups.cluster import Cluster
from tools.record_groups.consumer import COMMON_SETTINGS
from tools.record_groups.members import JavaMember
from tools.record_groups.moments import Recorder

MIGRATION_SETTINGS: Final = COMMON_SETTINGS | {
    "group.min.session.timeout.ms": 1_000,
    "offsets.retention.minutes": 1,
    "offsets.retention.check.interval.ms": 5_000,
}
ASSIGNORS: Final = "org.apache.kafka.clients.consumer."
CLASSIC: Final[dict[str, Any]] = {
    "group_protocol": "classic", "session_timeout_ms": 4_000, "heartbeat_interval_ms": 300,
}  # fmt: skip


def record_migration(cluster: Cluster, recorder: Recorder) -> None:
    """Classic groups that become consumer groups online and back, with cooperative, eager and static members, a classic
    member that is killed, groups that change their type while they are empty, and a group that expires."""
    for topic, partitions in (("orders", 6), ("payments", 3)):
        cluster.create_topic(topic, partitions)
        cluster.send(topic, 5 * partitions)
        recorder.note(f"created topic {topic} partitions={partitions}")
    expiring = cluster.member("expiring", "payments", client_id="expiring")
    recorder.wait_until_stable("expiring", 1, 3)
    expiring.close()
    _upgrade(cluster, recorder)
    _upgrade_eager(cluster, recorder)
    _upgrade_static(cluster, recorder)
    _kill_classic(cluster, recorder)
    _convert_empty(cluster, recorder)
    cluster.restart()
    recorder.note("the broker starts again")
    recorder.wait_until_stable("killed", 1, 6)
    recorder.moment("restarted")
    recorder.wait_until("expiring", lambda entry: entry["errorCode"] != 0)
    recorder.moment("expired")
    cluster.end_members()
    time.sleep(1)
    recorder.moment("final")


def _upgrade(cluster: Cluster, recorder: Recorder) -> None:
    settings = {"partition_assignment_strategy": f"{ASSIGNORS}CooperativeStickyAssignor"} | CLASSIC

    def classic(name: str) -> JavaMember:
        return cluster.member("cooperative", "orders", client_id=name, **settings)

    members = [classic("classic-0"), classic("classic-1")]
    recorder.wait_until_classic("cooperative", 2)
    recorder.moment("classic")
    upgraded = [cluster.member("cooperative", "orders", client_id="consumer-0")]
    recorder.wait_until_stable("cooperative", 3, 6)
    recorder.moment("upgraded-with-classic-members")
    members.pop().close()
    recorder.wait_until_stable("cooperative", 2, 6)
    upgraded.append(cluster.member("cooperative", "orders", client_id="consumer-1"))
    recorder.wait_until_stable("cooperative", 3, 6)
    members.pop().close()
    recorder.wait_until_stable("cooperative", 2, 6)
    recorder.moment("upgraded")
    members += [classic("classic-2"), classic("classic-3")]
    recorder.wait_until_stable("cooperative", 4, 6)
    recorder.moment("classic-members-again")
    upgraded.pop().close()
    recorder.wait_until_stable("cooperative", 3, 6)
    upgraded.pop().close()
    recorder.note("the last member of the consumer protocol leaves")
    recorder.wait_until_classic("cooperative", 2)
    recorder.moment("downgraded")


def _upgrade_eager(cluster: Cluster, recorder: Recorder) -> None:
    strategy = f"{ASSIGNORS}RangeAssignor"
    members = [
        cluster.member(
            "eager",
            "orders",
            "payments",
            client_id=f"eager-{number}",
            partition_assignment_strategy=strategy,
            **CLASSIC,
        )
        for number in range(2)
    ]
    recorder.wait_until_classic("eager", 2)
    upgraded = cluster.member("eager", "orders", client_id="consumer")
    recorder.wait_until_stable("eager", 3, 9)
    recorder.moment("eager-members")
    cluster.grow_topic("payments", 5)
    recorder.note("payments has 5 partitions")
    recorder.wait_until_stable("eager", 3, 11)
    recorder.moment("eager-members-with-more-partitions")
    for member in members:
        member.close()
    upgraded.close()
    recorder.wait_until("eager", lambda entry: entry["groupState"] == "Empty")
    recorder.moment("eager-empty")


def _upgrade_static(cluster: Cluster, recorder: Recorder) -> None:
    def start(number: int, **config: Any) -> JavaMember:
        settings = {"group_instance_id": f"instance-{number}", "client_id": f"static-{number}"} | config
        return cluster.member("static", "orders", **settings)

    classic = {"partition_assignment_strategy": f"{ASSIGNORS}RangeAssignor"} | CLASSIC
    members = [start(number, **classic) for number in range(2)]
    recorder.wait_until_classic("static", 2)
    recorder.moment("static-classic")
    members[0].close()
    members[0] = start(0)
    recorder.wait_until_stable("static", 2, 6)
    recorder.moment("static-mixed")
    members[1].close()
    members[1] = start(1)
    recorder.wait_until_stable("static", 2, 6)
    recorder.moment("static-upgraded")
    members[0].close()
    members[0] = start(0, **classic)
    recorder.wait_until_stable("static", 2, 6)
    members[1].close()
    members[1] = start(1, **classic)
    recorder.note("the last static member of the consumer protocol is replaced by a classic one")
    recorder.wait_until_classic("static", 2)
    recorder.moment("static-downgraded")


def _kill_classic(cluster: Cluster, recorder: Recorder) -> None:
    cluster.member("killed", "orders", client_id="alive")
    recorder.wait_until_stable("killed", 1, 6)
    killed = cluster.member("killed", "orders", client_id="silent", **CLASSIC)
    recorder.wait_until_stable("killed", 2, 6)
    killed.close("REMAIN_IN_GROUP")
    recorder.note("a classic member goes silent")
    recorder.moment("classic-member-silent")
    recorder.wait_until_stable("killed", 1, 6)
    recorder.moment("classic-member-fenced")


def _convert_empty(cluster: Cluster, recorder: Recorder) -> None:
    member = cluster.member("converted", "payments", client_id="classic", **CLASSIC)
    recorder.wait_until_classic("converted", 1)
    member.close()
    recorder.moment("classic-empty")
    member = cluster.member("converted", "payments", client_id="consumer")
    recorder.wait_until_stable("converted", 1, 5)
    recorder.moment("converted-to-consumer")
    member.close()
    recorder.wait_until("converted", lambda entry: entry["groupState"] == "Empty")
    cluster.member("converted", "payments", client_id="classic-again", **CLASSIC)
    recorder.wait_until_classic("converted", 1)
    recorder.moment("converted-to-classic")
