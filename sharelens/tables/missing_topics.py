"""User partitions that the evidence lacks although live share partitions have records in them."""

from collections.abc import Collection
from weakref import WeakKeyDictionary

from sharelens.measures.topics.extents import TopicPartition, topic_partitions
from sharelens.tables.port import STATES, Tables
from sharelens.tables.reading import read, read_topic_extents
from state_model.metadata.changes import TOPIC


def missing_user_partitions(tables: Tables, user_partitions: Collection[TopicPartition]) -> set[TopicPartition]:
    """Those of the user partitions that the evidence lacks and that a live share partition needs, at its end.

    The state of a deleted topic's share partitions ends with a tombstone, and its folders can't be copied any more; so
    are those of a topic that the metadata log shows deleted while state of it is left.
    """
    rows = read_topic_extents(tables, user_partitions).select(["topic_id", "partition"])
    absent = set(user_partitions) - set(topic_partitions(rows))
    if not absent:
        return set()
    deleted = deleted_topics(tables)
    absent = {(topic_id, partition) for topic_id, partition in absent if topic_id not in deleted}
    return absent & _with_live_state(tables) if absent else set()


_LIVE: "WeakKeyDictionary[Tables, frozenset[TopicPartition]]" = WeakKeyDictionary()
"""What `_with_live_state` has read: the questions of a report ask for it one after the other."""


def _with_live_state(tables: Tables) -> frozenset[TopicPartition]:
    """The user partitions in which a share partition has state at the end."""
    if tables not in _LIVE:
        _LIVE[tables] = frozenset(topic_partitions(read(tables, STATES, ["topic_id", "partition"])))
    return _LIVE[tables]


def deleted_topics(tables: Tables) -> set[str]:
    """The ids of the topics that the metadata log shows deleted."""
    history = tables.metadata.history
    return (
        set() if history is None else {str(row.key[1]) for row in history.validities if row.key[0] == TOPIC and row.end}
    )
