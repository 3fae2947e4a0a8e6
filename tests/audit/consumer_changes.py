"""Recorded logs of consumer groups, changed: what the mutations by rule on consumer groups are made of.

`scaled` gets and loses members and topics, is deleted and made again. The members of `bounced` are static and leave for
a while. `expressed` has regular expressions. `eager` was a classic group.
"""

from dataclasses import replace
from typing import Any, Final

from tests.audit.model_group_log import MINUTE_MS, Entry, GroupLog, Topic, Tree, recorded

ORDERS, PAYMENTS = "8NDa7oXBQByq8vcWWBnruA", "f1e3QIsJTAKPmK4uiOyTuQ"
"""The topics of `scaled`, of six and four partitions at first."""
LOG_A, LOG_B = "ATTtdZNEQyOguHN_umxpJg", "xZEwbZH6QJyjwuYMsGXFxg"
"""The first topics of `expressed`, of two and three partitions."""
HALF_AN_HOUR_MS: Final = 30 * MINUTE_MS


def scaled() -> GroupLog:
    """A group whose members come and go."""
    return recorded("consumer", "scaled")


def bounced() -> GroupLog:
    """A group of static members."""
    return recorded("consumer", "bounced")


def expressed() -> GroupLog:
    """A group of members with regular expressions."""
    return recorded("consumer", "expressed")


def eager() -> GroupLog:
    """A group with members of both protocols, which was a classic one."""
    return recorded("consumer-migration", "eager")


def static() -> GroupLog:
    """A group of static members that was a classic one and became one again."""
    return recorded("consumer-migration", "static")


SOURCES: Final = (scaled, bounced, expressed, eager, static)


def changed(log: GroupLog, place: int, **fields: Any) -> Entry:
    """A record with other fields in its value."""
    return log.change(place, **fields).entries[place]


def parts(*topics: tuple[str, Any], epoch: int | None = None) -> tuple[Tree, ...]:
    """A list of partitions; with an assignment epoch for each, if there is one."""
    return tuple(
        {"topic_id": topic_id, "partitions": tuple(partitions)}
        | {"assignment_epochs": () if epoch is None else (epoch,) * len(partitions)}
        for topic_id, partitions in topics
    )


def target(*topics: tuple[str, Any]) -> tuple[Tree, ...]:
    """A list of partitions of a target."""
    return tuple({"topic_id": topic_id, "partitions": tuple(partitions)} for topic_id, partitions in topics)


def tombstone(log: GroupLog, place: int) -> Entry:
    """The tombstone of a record."""
    return log.entries[place]._replace(value=None)


def of_member(log: GroupLog, place: int, other: int) -> Entry:
    """A record as one of the member of another record."""
    return log.entries[place]._replace(member_id=log.entries[other].member_id)


def with_interval(log: GroupLog, milliseconds: int) -> GroupLog:
    """A log with configuration: the assignment interval."""
    return replace(log, settings={"consumer.assignment.interval.ms": milliseconds})


def placed(log: GroupLog, partition: int, count: int | None) -> GroupLog:
    """The group in a partition of so many."""
    return replace(log, partition=partition, count=count)


def of_producer(log: GroupLog, place: int) -> GroupLog:
    """With a record of a transaction."""
    return log.put(place, log.entries[place]._replace(producer_id=7))


def with_topics(log: GroupLog, orders: int = 6, payments: int = 4, *, more_ms: int | None = None) -> GroupLog:
    """A log with the topics of `scaled`; `more_ms`: when `orders` got one partition more."""
    start_ms = log.entries[0].time_ms - 9 * MINUTE_MS
    times = (start_ms,) * orders + (() if more_ms is None else (more_ms,))
    topics = {
        "orders": Topic(start_ms, times, topic_id=ORDERS),
        "payments": Topic(start_ms, (start_ms,) * payments, topic_id=PAYMENTS),
        "log-a": Topic(start_ms, (start_ms,) * 2, topic_id=LOG_A),
    }
    return replace(log, topics=topics)


def at_ms(log: GroupLog, place: int) -> int:
    """The time of a record."""
    return log.entries[place].time_ms


def late(log: GroupLog, place: int, lasts_ms: int) -> GroupLog:
    """The records before a place, and the one there that much after the one before it."""
    last = log.entries[place]._replace(time_ms=at_ms(log, place - 1) + lasts_ms)
    return log.of((*log.entries[:place], last))
