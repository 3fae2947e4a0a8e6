"""Mutations of consumer groups by rule: targets, topics, the order of records, expressions and places."""

from typing import Final

from tests.audit.consumer_changes import (
    HALF_AN_HOUR_MS,
    LOG_A,
    ORDERS,
    PAYMENTS,
    at_ms,
    bounced,
    changed,
    eager,
    expressed,
    late,
    of_member,
    of_producer,
    parts,
    placed,
    scaled,
    static,
    target,
    tombstone,
    with_interval,
    with_topics,
)
from tests.audit.model_group_log import MINUTE_MS, Entry, GroupLog
from tests.audit.rule_cases.cases import Table


def partition_metadata(log: GroupLog, place: int) -> Entry:
    """What Kafka 4.0 wrote of topics, as a record behind another one."""
    return log.entries[place]._replace(record_type=4, member_id=None, value={"topics": ()})


TARGETS: Final[Table[GroupLog]] = {
    "consumer_partition_with_two_targets": (
        {
            "of three members": lambda: scaled().cut(15).change(12, topic_partitions=target((PAYMENTS, [0, 1, 2, 3]))),
            "of a classic group": lambda: eager().cut(6).change(3, topic_partitions=target((ORDERS, [0]))).change(
                4, topic_partitions=target((ORDERS, [0]))),
            "kept": lambda: scaled().cut(15).drop(13),
        },
        {
            "complete": lambda: scaled().cut(15),
            "not complete": lambda: scaled().cut(13),
            "of a static member in its place": lambda: bounced().cut(27),
        },
    ),
    "consumer_partition_without_target": (
        {
            "a partition more": lambda: with_topics(scaled().cut(5), orders=7),
            "one less": lambda: with_topics(scaled().cut(4).change(2, topic_partitions=target((ORDERS, range(6))))),
            "of a group made again": lambda: with_topics(
                scaled().cut(62).of(scaled().entries[55:62]).change(5, topic_partitions=target((LOG_A, [1])))),
        },
        {
            "all": lambda: with_topics(scaled().cut(5)),
            "a new partition": lambda: with_topics(scaled().cut(5), more_ms=at_ms(scaled(), 3) - 100),
            "later partitions": lambda: with_topics(scaled().cut(5), more_ms=at_ms(scaled(), 3) + 2 * MINUTE_MS),
        },
    ),
    "consumer_member_without_target": (
        {
            "none of a new member": lambda: scaled().cut(15).drop(11),
            "of nobody": lambda: scaled().cut(15).put(11, scaled().entries[11]._replace(member_id="nobody")),
            "of the first member": lambda: scaled().cut(5).drop(2),
        },
        {
            "an empty one": lambda: scaled().cut(15).change(11, topic_partitions=()),
            "of two members": lambda: scaled().cut(30),
            "compacted": lambda: scaled().cut(15).compacted(2),
        },
    ),
    "consumer_target_not_subscribed": (
        {
            "another topic": lambda: with_topics(scaled().cut(4).change(
                2, topic_partitions=target((ORDERS, range(6)), (PAYMENTS, range(4)), (LOG_A, [0])))),
            "a name less": lambda: with_topics(scaled().cut(4).change(0, subscribed_topic_names=("orders",))),
            "an expression in place of names": lambda: with_topics(
                scaled().cut(4).change(0, subscribed_topic_names=(), subscribed_topic_regex="o.*")),
        },
        {
            "by name": lambda: with_topics(scaled().cut(5)),
            "by an expression": lambda: with_topics(expressed().cut(7)),
            "a topic that the log does not know": lambda: with_topics(expressed().cut(6).change(
                4, topic_partitions=target((LOG_A, [0, 1]), ("AAAAAAAAAAAAAAAAAAAAAQ", [0])))),
        },
    ),
    "consumer_partition_not_in_topic": (
        {
            "in a target": lambda: with_topics(scaled().cut(3).change(2, topic_partitions=target((ORDERS, [9])))),
            "assigned": lambda: with_topics(scaled().cut(5).change(
                2, topic_partitions=target((ORDERS, range(8)), (PAYMENTS, range(4)))).change(
                4, assigned_partitions=parts((ORDERS, [7]), epoch=2))),
            "to be revoked": lambda: with_topics(scaled().cut(18).change(
                17, partitions_pending_revocation=parts((PAYMENTS, [4]), epoch=2))),
        },
        {
            "the last one": lambda: with_topics(scaled().cut(5)),
            "created 30 s later": lambda: with_topics(
                scaled().cut(5), orders=5, more_ms=at_ms(scaled(), 4) + MINUTE_MS // 2),
            "of an unknown topic": lambda: with_topics(
                expressed().cut(5).change(4, topic_partitions=target(("AAAAAAAAAAAAAAAAAAAAAQ", [9])))),
        },
    ),
}  # fmt: skip
ORDER: Final[Table[GroupLog]] = {
    "consumer_tombstones_out_of_order": (
        {
            "a member before its assignment": lambda: scaled().cut(27).drop(23),
            "a member before its target": lambda: scaled().cut(27).drop(24),
            "a group before its target": lambda: scaled().cut(58).drop(55),
            "a group before its expression": lambda: expressed().of(
                (*expressed().entries[:7], tombstone(expressed(), 3))),
            "the target before that of a member": lambda: scaled().cut(5).insert(5, tombstone(scaled(), 3)),
        },
        {
            "in order": scaled,
            "all members of a group that becomes a classic one": static,
            "a member that never had a target": lambda: scaled().of(
                (*scaled().entries[:11], *(of_member(scaled(), place, 8) for place in (23, 24, 25)),
                 changed(scaled(), 26, epoch=5))),
        },
    ),
    "consumer_member_end": (
        {
            "without an epoch": lambda: scaled().cut(31).drop(26),
            "without its tombstone": lambda: scaled().cut(31).drop(24, 25),
            "a heartbeat between": lambda: scaled().cut(27).insert(25, scaled().entries[22]),
            "another instance": lambda: bounced().cut(27).put(25, changed(bounced(), 25, instance_id="instance-9")),
        },
        {
            "in order": lambda: scaled().cut(27),
            "a static member in its place": lambda: bounced().cut(29),
            "several members at once": lambda: scaled().of(
                (*scaled().entries[:47], *scaled().entries[47:50], *scaled().entries[51:54],
                 changed(scaled(), 54, epoch=8))),
            "its expression ends, too": lambda: expressed().cut(25),
        },
    ),
    "consumer_outside_membership": (
        {
            "an assignment": lambda: scaled().cut(5).put(4, scaled().entries[4]._replace(member_id="nobody")),
            "a target": lambda: scaled().cut(3).put(2, scaled().entries[2]._replace(member_id="nobody")),
            "of a fenced member": lambda: scaled().cut(27).insert(27, changed(
                scaled(), 22, assigned_partitions=())._replace(member_id=scaled().entries[23].member_id)),
        },
        {
            "of members": lambda: scaled().cut(15),
            "of a member that joined again": scaled,
            "compacted": lambda: scaled().cut(7).compacted(0),
        },
    ),
    "consumer_slow_revocation": (
        {
            "half an hour": lambda: late(scaled(), 18, HALF_AN_HOUR_MS),
            "seen at its end": lambda: late(scaled().drop(18, 19), 18, HALF_AN_HOUR_MS),
            "of a short timeout": lambda: late(
                scaled().put(0, changed(scaled(), 0, rebalance_timeout_ms=100)), 18, MINUTE_MS // 2),
        },
        {
            "four minutes": lambda: late(scaled(), 18, 4 * MINUTE_MS),
            "of a member of the classic protocol": lambda: late(
                scaled().put(0, changed(scaled(), 0, classic_member_metadata={
                    "session_timeout_ms": 1, "supported_protocols": ()})), 18, HALF_AN_HOUR_MS),
            "a member that waits": lambda: late(scaled(), 22, HALF_AN_HOUR_MS),
        },
    ),
    "consumer_overdue_target": (
        {
            "half an hour": lambda: late(scaled(), 10, HALF_AN_HOUR_MS),
            "beyond the configured times": lambda: late(
                with_interval(scaled(), 1000).with_setting("consumer.heartbeat.interval.ms", 5000), 10, 17_000),
            "of a member that stays": lambda: late(scaled(), 33, MINUTE_MS),
        },
        {
            "40 s": lambda: late(scaled(), 10, 40_000),
            "all members left for a while": lambda: late(bounced().cut(5).insert(
                5, changed(bounced(), 21, previous_member_epoch=0), changed(bounced(), 1, epoch=3),
                changed(bounced(), 49, epoch=4)), 7, HALF_AN_HOUR_MS),
            "the configured times": lambda: late(
                with_interval(scaled(), 15_000).with_setting("consumer.heartbeat.interval.ms", 15_000), 10, 49_000),
        },
    ),
    "consumer_expression_without_subscriber": (
        {
            "the last one left": lambda: expressed().cut(25).drop(23),
            "of nobody": lambda: expressed().cut(12).put(10, expressed().entries[10]._replace(member_id="x.*")),
            "another subscription": lambda: expressed().cut(7).insert(
                7, changed(expressed(), 0, subscribed_topic_regex="x.*"), changed(expressed(), 3, epoch=3)),
        },
        {
            "of a member": expressed,
            "it ends with another subscription": lambda: expressed().cut(7).insert(
                7, changed(expressed(), 0, subscribed_topic_regex="x.*"), tombstone(expressed(), 2),
                changed(expressed(), 3, epoch=3)),
            "of a member that is compacted": lambda: expressed().cut(7).compacted(0),
        },
    ),
    "consumer_expression_refresh": (
        {
            "9 s later": lambda: expressed().cut(12).change(9, timestamp=at_ms(expressed(), 2) + 9_000),
            "at once": lambda: expressed().cut(4).repeat(2),
            "an earlier time": lambda: expressed().cut(12).change(9, timestamp=1),
        },
        {
            "10 s later": lambda: expressed().cut(12),
            "behind its end": lambda: expressed().cut(25).insert(
                25, changed(expressed(), 7, client_id="again"), expressed().entries[10]),
            "another expression at once": lambda: expressed().cut(11),
        },
    ),
    "consumer_partition_metadata": (
        {
            "behind the group": lambda: scaled().cut(5).insert(5, partition_metadata(scaled(), 1)),
            "between": lambda: scaled().cut(5).insert(2, partition_metadata(scaled(), 1)),
            "of a group made again": lambda: scaled().insert(62, partition_metadata(scaled(), 59)),
        },
        {
            "its tombstone": lambda: scaled().cut(5).insert(
                5, partition_metadata(scaled(), 1)._replace(value=None)),
            "of a group without a hash, as of Kafka 4.0": lambda: scaled().cut(5).change(1, metadata_hash=0).insert(
                5, partition_metadata(scaled(), 1)),
            "before the group": lambda: scaled().cut(5).insert(1, partition_metadata(scaled(), 1)),
        },
    ),
    "consumer_misplaced_group": (
        {f"in {partition} of 4": lambda partition=partition: placed(scaled(), partition, 4) for partition in (0, 1, 3)},
        {
            "in its place": lambda: placed(scaled(), 2, 4),
            "the number is unknown": lambda: placed(scaled(), 0, None),
            "of one partition": lambda: placed(scaled(), 0, 1),
        },
    ),
    "consumer_transactional_record": (
        {
            "a member": lambda: of_producer(scaled(), 0),
            "an expression": lambda: of_producer(expressed(), 2),
            "a tombstone": lambda: of_producer(scaled(), 57),
        },
        {
            "of no producer": scaled,
            "with expressions": expressed,
            "with members of both protocols": eager,
        },
    ),
}  # fmt: skip
