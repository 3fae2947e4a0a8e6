"""What a lake knows of user topics: ends and batch headers, and the metadata log."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from jobs import books
from jobs.ingest.stage import is_rebuild
from jobs.lake_settings import stored_settings
from sharelens.evidence.incarnations import newest_incarnation
from sharelens.evidence.schemas import GROUP_RECORD, ODD_GROUP_RECORD
from sharelens.lake.lake import Lake
from sharelens.lake.metadata_log import stored_history
from sharelens.lake.tables import BRONZE_TOPIC_BATCH
from sharelens.measures.settings.over_time import MAX_RECORD_LOCKS, largest
from sharelens.measures.settings.streams import bounds_of
from state_model.audit.columnar.kept_records import KnownTopics
from state_model.audit.columnar.log_pairs import GroupLog
from state_model.audit.columnar.topic_metadata import TopicMetadata, topic_metadata
from state_model.audit.columnar.user_topics import TopicEnd, UserTopics
from state_model.audit.group_steps import TopicPartition
from state_model.topics import OFFSETS_TOPIC

UNKNOWN: Final = -1
"""Time and leader epoch of a batch whose header is not in the lake."""


class LakeTopics:
    """The user topics of one cluster of a lake, as its tables are now."""

    def __init__(self, lake: Lake, cluster_id: str) -> None:
        self._lake = lake
        self.cluster_id = cluster_id
        of_cluster = (pc.field("cluster_id") == cluster_id) & (pc.field("status") == "taken")
        self.extents = [row for row in books.extents(lake, of_cluster) if not is_rebuild(row)]
        self.is_one_copy = len({row["source_id"] for row in self.extents}) == 1
        times = [row["read_until_ms"] for row in self.extents if row["read_until_ms"] is not None]
        self.read_until_ms: int | None = max(times, default=None) if self.is_one_copy else None
        self._newest: dict[TopicPartition, tuple[int, int]] = {}
        self.topic_ids: frozenset[str] = frozenset()

    @cached_property
    def known_topics(self) -> KnownTopics:
        """The committed ends of user partitions, and the leader epochs by the metadata log."""
        ends = {place: max(row["end_offset_exclusive"] for row in rows) for place, rows in self._by_place.items()}
        return KnownTopics(ends, None if self.metadata is None else dict(self.metadata.epochs))

    @cached_property
    def metadata(self) -> TopicMetadata | None:
        """What the metadata log says; None without its beginning."""
        history = stored_history(self._lake, self.cluster_id)
        if history is None or not history.has_beginning:
            return None
        return topic_metadata(history.validities, history.first_ms, self.read_until_ms)

    def changed_ends(self, before: int) -> set[TopicPartition]:
        """User partitions whose end became known after run `before`, or was replaced by an earlier one."""
        return {
            place
            for place, rows in self._by_place.items()
            if all(row["run_id"] > before for row in rows)
            or any(row["superseded_from"] is not None for row in rows if row["run_id"] > before)
        }

    def user_topics(self, metadata: TopicMetadata | None, places: set[TopicPartition]) -> UserTopics:
        """For the rules; `places`: the user partitions that records are compared with, whose headers are read at once.

        `metadata`: that of the cluster of the state log.
        """
        self._newest = self._read_newest(places)
        return UserTopics(
            end_of=self._end_of,
            span_at=self._span_at,
            locks_of=largest(stored_settings(self._lake, self.cluster_id).groups, MAX_RECORD_LOCKS),
            metadata=metadata,
            read_until_ms=self.read_until_ms,
        )

    @cached_property
    def _by_place(self) -> Mapping[TopicPartition, Sequence[dict[str, Any]]]:
        rows = books.by_partition([row for row in self.extents if row["content"] == "topic_batch"])
        return {(topic_id, partition): group for (_, topic_id, partition), group in rows.items()}

    def extents_of(self, topic: str, topic_id: str, partition: int) -> list[dict[str, Any]]:
        """The extents of one log."""
        place = (topic, topic_id, partition)
        return [row for row in self.extents if (row["topic"], row["topic_id"], row["partition"]) == place]

    def group_log(self) -> GroupLog | None:
        """The log of the group coordinator; None: it is not there."""
        extents = [row for row in self.extents if row["topic"] == OFFSETS_TOPIC]
        if not extents:
            return None
        newest = str(newest_incarnation([(row["topic_id"], row["log_time_ms"]) for row in extents]))
        numbers = frozenset(int(row["partition"]) for row in extents if row["topic_id"] == newest)
        is_group_log = (pc.field("cluster_id") == self.cluster_id) & (pc.field("log_topic_id") == newest)
        records, odd_records = (
            self._lake.snapshot(name).rows(schema.names, is_group_log & ~pc.field("uncommitted"))
            for name, schema in (("silver.group_record", GROUP_RECORD), ("silver.odd_group_record", ODD_GROUP_RECORD))
        )
        return GroupLog(
            topic_id=newest,
            partitions=numbers,
            records=records,
            odd_records=odd_records,
            first_offset=max(row["log_start_offset"] for row in self.extents_of(OFFSETS_TOPIC, newest, min(numbers))),
            bounds_of=bounds_of(stored_settings(self._lake, self.cluster_id).groups),
        )

    def _end_of(self, place: TopicPartition) -> TopicEnd | None:
        rows = self._by_place.get(place)
        if not rows:
            return None
        run = max(row["run_id"] for row in rows)
        newest = [row for row in rows if row["run_id"] == run]
        if any(row["unreadable_bytes"] for row in newest):
            return None
        end = max(row["end_offset_exclusive"] + row["held_back"] for row in newest)
        if place in self._newest:
            newest_ms, leader_epoch = self._newest[place]
        else:  # the batches lie below all start offsets
            newest_ms = max((row["log_time_ms"] for row in rows if row["log_time_ms"] is not None), default=UNKNOWN)
            leader_epoch = UNKNOWN
        return TopicEnd(newest[0]["topic"], max(end, self.known_topics.ends[place]), newest_ms, leader_epoch)

    def _read_newest(self, places: set[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
        """Time and leader epoch of the newest batch of each user partition."""
        last = {place: self.known_topics.ends[place] - 1 for place in places if place in self.known_topics.ends}
        if not last:
            return {}
        topic_ids, offsets = pa.array({topic_id for topic_id, _ in last}), pa.array(set(last.values()), pa.int64())
        where = pc.field("topic_id").isin(topic_ids) & pc.field("last_offset").isin(offsets)
        columns = ["topic_id", "partition", "last_offset", "max_timestamp_ms", "leader_epoch"]
        rows = self._headers(columns, where)
        return {
            (row["topic_id"], row["partition"]): (row["max_timestamp_ms"], row["leader_epoch"])
            for row in rows
            if last.get((row["topic_id"], row["partition"])) == row["last_offset"]
        }

    def _span_at(self, place: TopicPartition, offset: int) -> int | None:
        is_of_partition = (pc.field("topic_id") == place[0]) & (pc.field("partition") == place[1])
        covers = (pc.field("base_offset") <= offset) & (pc.field("last_offset") >= offset)
        for row in self._headers(["base_offset", "last_offset"], is_of_partition & covers):
            return int(row["last_offset"] - row["base_offset"] + 1)
        return None

    def _headers(self, columns: list[str], where: pc.Expression) -> list[dict[str, Any]]:
        where &= pc.field("cluster_id") == self.cluster_id
        rows: list[dict[str, Any]] = self._lake.snapshot(BRONZE_TOPIC_BATCH).rows(columns, where).to_pylist()
        return rows
