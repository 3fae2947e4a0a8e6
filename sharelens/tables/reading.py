"""The tables of the port that several questions read, each whole or by its usual condition."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from sharelens.evidence.as_of import WHOLE_LOG, LogPrefix
from sharelens.measures.topics.extents import TopicPartition
from sharelens.tables.dlq_filter import DeadLetterFilter
from sharelens.tables.port import (
    BATCHES,
    GROUP_RECORDS,
    LETTER_PARTITIONS,
    LETTERS,
    OFFSET_COMMITS,
    PLACES,
    SHARE_PARTITIONS,
    STATES,
    TOPIC_EXTENTS,
    Tables,
)
from sharelens.tables.where import ALL_ROWS, Keys, Order, Where
from state_model.errors import SharelensError, UsageError


def read(
    tables: Tables,
    table: str,
    columns: Sequence[str] | None = None,
    where: Where = ALL_ROWS,
    order: Order = Order.ANY,
) -> pa.Table:
    """The rows of a scan as one table."""
    return pa.concat_tables(tables.scan(table, columns, where, order))


def read_share_partitions(tables: Tables) -> pa.Table:
    """Every share partition ever seen: group_id, topic_id, partition, without repetition."""
    return read(tables, SHARE_PARTITIONS)


def read_places(tables: Tables, keys: Keys) -> pa.Table:
    """PLACED rows of the share partitions, one each, in any order."""
    return read(tables, PLACES, where=Where(keys=keys))


def read_states(tables: Tables, keys: Keys, cut: LogPrefix = WHOLE_LOG) -> pa.Table:
    """PLACED_STATE rows of the live share partitions after the records of the cut, in any order."""
    return read(tables, STATES, where=Where(keys=keys, cut=cut))


def read_topic_batches(tables: Tables, begins: Mapping[TopicPartition, int]) -> Iterator[pa.Table]:
    """TOPIC_BATCH rows of user partitions that reach the given offset or lie above, in bounded tables."""
    return tables.scan(BATCHES, where=Where(user_partitions=begins))


def read_topic_extents(tables: Tables, partitions: Iterable[TopicPartition]) -> pa.Table:
    """TOPIC_EXTENT rows of those of the user partitions that the evidence has, by (topic id, partition)."""
    return read(tables, TOPIC_EXTENTS, where=Where(user_partitions=dict.fromkeys(partitions, 0)))


def read_group_records(tables: Tables, groups: frozenset[str] | None = None) -> pa.Table:
    """GROUP_RECORD rows of these groups (None: all), by (partition of __consumer_offsets, log offset)."""
    return read(tables, GROUP_RECORDS, where=Where(keys=Keys(groups=groups)))


def read_offset_commits(tables: Tables, groups: frozenset[str]) -> pa.Table:
    """COMMIT_COLUMNS rows of the groups' offset commits and their transaction markers, by (partition, offset)."""
    return read(tables, OFFSET_COMMITS, where=Where(keys=Keys(groups=groups)))


def read_dead_letters(tables: Tables, letter_filter: DeadLetterFilter) -> pa.Table:
    """DLQ_RECORD rows of these dead letters, by (topic, id, partition, offset) of where they lie."""
    return read(tables, LETTERS, where=Where(letters=letter_filter))


def read_dead_letter_partitions(tables: Tables) -> pa.Table:
    """DLQ_PARTITION rows of the partitions searched for dead letters, by (topic, id, partition)."""
    return read(tables, LETTER_PARTITIONS)


def unknown_name(tables: Tables, text: str, topic: str | None = None) -> SharelensError:
    """The error for a name of the command line that the evidence lacks; `topic`: the name, where it is a topic's.

    An error of usage, but a failure with a running cluster: names in it come and go.

    Raises:
        SharelensError: one may not see the topic.
    """
    if tables.cluster is None:
        return UsageError(text)
    if topic is not None:
        tables.cluster.ensure_visible(topic)
    return SharelensError(text)


def fetched(tables: Tables) -> str:
    """What was fetched for the answer, as the end of a line; empty where nothing was."""
    return "" if tables.cluster is None else tables.cluster.fetched
