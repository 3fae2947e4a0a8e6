"""Recorded logs of streams groups, changed: what the mutations by rule on streams groups are made of.

`basic` is a group with two subtopologies of five tasks, repartition and changelog topics; its members come and go, with
standby tasks from record 41 on. `ended` is a group that was deleted.
"""

from dataclasses import replace
from typing import Any

from tests.audit.model_group_log import MINUTE_MS, Entry, GroupLog, Topic, recorded

INTERNAL_AT = 7
"""The record of `basic` when its internal topics were there."""
LEAVING = (68, 69, 70, 71)
"""The records with which a member of `basic` leaves."""
TWO_MINUTES_MS, HALF_MINUTE_MS = 2 * MINUTE_MS, MINUTE_MS // 2


def basic() -> GroupLog:
    """A group that lives."""
    return recorded("streams-basic", "app-wc")


def ended() -> GroupLog:
    """A group from its first member to its deletion."""
    return recorded("streams-admin", "app-exp")


def entry(place: int, **fields: Any) -> Entry:
    """A record of `basic` with other fields in its value."""
    return basic().change(place, **fields).entries[place]


def of_member(place: int, other: int) -> Entry:
    """A record of `basic` as one of the member of another record."""
    return basic().entries[place]._replace(member_id=basic().entries[other].member_id)


def tombstone(place: int) -> Entry:
    """The tombstone of a record of `basic`."""
    return basic().entries[place]._replace(value=None)


def configured(*pairs: tuple[str, str], place: int = 241) -> GroupLog:
    """The group with other configurations of its assignment."""
    return basic().change(place, last_assignment_configs=tuple({"key": key, "value": value} for key, value in pairs))


def with_settings(log: GroupLog | None = None, **values: int) -> GroupLog:
    """A log with configuration; names have underscores for dots."""
    settings = {f"streams.{name.replace('_', '.')}": value for name, value in values.items()}
    return replace(log or basic(), settings=settings)


def placed(partition: int, count: int | None) -> GroupLog:
    """The group in a partition of so many."""
    return GroupLog(group_id="app-wc", entries=basic().entries, partition=partition, count=count)


def of_producer(log: GroupLog, place: int) -> GroupLog:
    """With a record of a transaction."""
    return log.put(place, log.entries[place]._replace(producer_id=7))


def with_topics(log: GroupLog | None = None, count: int = 5, *, more_ms: int | None = None) -> GroupLog:
    """A log with the topics of its topology; `more_ms`: when each internal topic got one partition more."""
    log = log or basic()
    start_ms, created_ms = basic().entries[0].time_ms - 9 * MINUTE_MS, basic().entries[INTERNAL_AT].time_ms - 200
    topology = basic().entries[1].value
    assert topology is not None
    topics: dict[str, Topic] = {}
    for subtopology in topology["subtopologies"]:
        topics |= {name: Topic(start_ms, (start_ms,) * count) for name in subtopology["source_topics"]}
        for topic in (*subtopology["repartition_source_topics"], *subtopology["state_changelog_topics"]):
            times = (created_ms,) * 5 + (() if more_ms is None else (more_ms,))
            topics[topic["name"]] = Topic(created_ms, times)
    return replace(log, topics=topics)


def left_after(lasts_ms: int) -> GroupLog:
    """A member must revoke tasks, and leaves after that time."""
    leaving = (of_member(place, 33)._replace(time_ms=at_ms(33) + lasts_ms) for place in LEAVING[:3])
    return basic().of((*basic().entries[:34], *leaving))


def at_ms(place: int) -> int:
    """The time of a record of `basic`."""
    return basic().entries[place].time_ms
