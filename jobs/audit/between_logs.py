"""Rules between the state log, `__consumer_offsets`, user topics and the metadata log, computed in the driver.

They compare histories that grow at both ends, so each run judges them for all logs. Of share records only those are
read that the audit keeps (gold.audit_record); group records are few.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evidence.incarnations import newest_incarnation
from evidence.schemas import GROUP_RECORD, ODD_GROUP_RECORD
from jobs.audit.across import LOG_FINDING, STORED, of_log
from jobs.audit.records import Topics, distinct, stored_lives
from jobs.audit.topics import LakeTopics
from jobs.lake_settings import stored_settings
from lake.lake import Lake
from measures.streams_settings import bounds_of
from state_model.audit.columnar.audit_kernel import LOSS_COUNT
from state_model.audit.columnar.continuation import matrix_of
from state_model.audit.columnar.cross_checks import StateLogs, cross_check
from state_model.audit.columnar.group_audit import audit_groups
from state_model.audit.columnar.kept_records import places_of, topic_records_of, turns_of
from state_model.audit.columnar.kept_schema import AHEAD, NEWEST, WINDOW
from state_model.audit.columnar.lives import lives_of
from state_model.audit.columnar.partitions import PartitionsAudit
from state_model.audit.columnar.places import DECIDING, count_of_keys
from state_model.audit.columnar.proofs import LogRecord, Place, Proofs
from state_model.audit.columnar.topic_metadata import LogTimes, TopicMetadata, belongs_to, unknown_topic_partitions
from state_model.audit.columnar.user_topics import TopicAudit
from state_model.audit.periods import BEGINNING, known_until
from state_model.audit.rule import Difference, Field, Need, Rule
from state_model.audit.streams import table as streams
from state_model.audit.table import BY_ID
from state_model.share_records import SharePartitionKey
from state_model.topics import OFFSETS_TOPIC, STATE_TOPIC

CREATED_AGAIN: Final = 71
BETWEEN: Final[Sequence[Rule]] = tuple(
    BY_ID[rule]
    for rule in (
        *(CREATED_AGAIN, 200, 201, 240, 290, 350, 351, 360, 610, 650, 660, 661, 670, 680, 690, 691, 700, 710),
        *(720, 721, 730, 740, 750, 760, 761),
        *(rule.id for rule in streams.RULES if Need.LOG_DIRECTORIES not in rule.needs),
    )
)
"""The rules of this module; each run judges them for all logs."""
LIFE_ORDER: Final = [
    (name, "ascending") for name in ("group_id", "topic_id", "partition", "state_partition", "log_offset")
]
"""By share partition, then by log offset."""
STATES_READ: Final = ["cluster_id", "log_topic_id", "state_partition", "is_from_zero", "log_start_offset",
    "last_log_offset", "log_time_ms", "log", "share_partitions", "first_losses"]  # fmt: skip
"""The columns of gold.audit_state that these rules read."""


def between_logs(lake: Lake, states: pa.Table, topics: Topics, kept: pa.Table) -> pa.Table:
    """LOG_FINDING rows of the rules BETWEEN.

    `states`: STATES_READ of gold.audit_state; `kept`: records.stored_others.
    """
    tables = [LOG_FINDING.empty_table()]
    for cluster_id in sorted(states.column("cluster_id").unique().to_pylist()):
        of_cluster = states.filter(pc.field("cluster_id") == cluster_id)
        topic_id = _newest(of_cluster, "log_time_ms")
        logs = _Logs(lake, topics[cluster_id], topic_id, of_cluster, kept)
        tables.append(of_log(logs.proofs().findings(STORED), cluster_id, topic_id))
    return pa.concat_tables(tables)


class _Logs:
    """The logs of one cluster, the state topic in its newest incarnation."""

    def __init__(self, lake: Lake, topics: LakeTopics, topic_id: str, states: pa.Table, kept: pa.Table) -> None:
        self._lake = lake
        self._topics = topics
        self._cluster_id = topics.cluster_id
        self._topic_id = topic_id
        self._topic_ids = set(states.column("log_topic_id").to_pylist())
        self._states = states.filter(pc.field("log_topic_id") == topic_id).sort_by("state_partition")
        self._kept = kept.filter(self._is_own)
        self._metadata = topics.metadata

    def proofs(self) -> Proofs:
        """What violates the rules."""
        proofs = Proofs()
        state = self._states.slice(0, 1)
        number, newest_ms = (state.column(name)[0].as_py() for name in ("state_partition", "log_time_ms"))
        offsets = [row["from_offset"] for row in self._extents_of(STATE_TOPIC, self._topic_id, number)]
        first = LogRecord(STATE_TOPIC, number, min(offsets, default=0))
        first_ms = int(PartitionsAudit.of_counts(state).auditor.first_ms.min(initial=newest_ms))
        metadata = self._metadata
        if metadata is not None and not belongs_to(
            metadata, first, self._topic_id, LogTimes(first_ms, newest_ms), proofs
        ):
            metadata = None
        self._test_incarnations(metadata, first, newest_ms, proofs)
        self._test_groups(metadata, proofs)
        self._test_topics(metadata, proofs)
        if metadata is not None:
            unknown_topic_partitions(self._state_logs.lives, metadata, proofs)
        return proofs

    def _test_topics(self, metadata: TopicMetadata | None, proofs: Proofs) -> None:
        """Tests the rules on user topics on the records that can violate them."""
        records, newest = (
            topic_records_of(self._kept.filter(pc.field("kind").isin(kinds))) for kinds in ((AHEAD, WINDOW), (NEWEST,))
        )
        topics = self._topics.user_topics(metadata, {*places_of(records), *places_of(newest)})
        numbers = [rows.column("state_partition").unique().to_pylist() for rows in (records, newest)]
        for number in sorted({*numbers[0], *numbers[1]}):
            mine = pc.field("state_partition") == number
            audit = TopicAudit(topics, proofs)
            audit.take(distinct(records.filter(mine)))
            audit.close(newest.filter(mine))

    def _test_incarnations(self, metadata: TopicMetadata | None, log: LogRecord, now_ms: int, proofs: Proofs) -> None:
        topic_ids = self._topic_ids | (set() if metadata is None else metadata.topic_ids.get(STATE_TOPIC, {}).keys())
        if len(topic_ids) > 1:
            proofs.add(CREATED_AGAIN, Place(), Difference(Field.TOPIC_IDS, 1, len(topic_ids)), log, now_ms)

    def _test_groups(self, metadata: TopicMetadata | None, proofs: Proofs) -> None:
        extents = [row for row in self._topics.extents if row["topic"] == OFFSETS_TOPIC]
        if not extents:
            return
        newest = str(newest_incarnation([(row["topic_id"], row["log_time_ms"]) for row in extents]))
        numbers = frozenset(int(row["partition"]) for row in extents if row["topic_id"] == newest)
        mine = (pc.field("cluster_id") == self._cluster_id) & (pc.field("log_topic_id") == newest)
        records, odd_records = (
            self._lake.snapshot(name).rows(schema.names, mine & ~pc.field("uncommitted"))
            for name, schema in (("silver.group_record", GROUP_RECORD), ("silver.odd_group_record", ODD_GROUP_RECORD))
        )
        groups = audit_groups(
            records,
            odd_records,
            numbers,
            proofs,
            metadata=metadata,
            bounds_of=bounds_of(stored_settings(self._lake, self._cluster_id).groups),
        )
        times = LogTimes(groups.first_ms, max(groups.until_ms.values(), default=0))
        groups = groups._replace(until_ms=self._known_until(groups.until_ms))
        starts = [row["log_start_offset"] for row in self._extents_of(OFFSETS_TOPIC, newest, min(numbers))]
        first = LogRecord(OFFSETS_TOPIC, min(numbers), max(starts))
        if self._metadata is None or belongs_to(self._metadata, first, newest, times, proofs):
            cross_check(
                self._state_logs,
                groups,
                proofs,
                topic_exists=lambda topic: _exists(metadata, topic),
                metadata=metadata,
            )

    @cached_property
    def _state_logs(self) -> StateLogs:
        """The share partitions of the state log; read only where there is a log to compare them with."""
        keys, owner, known = [], [], {}
        newest_ms = {}
        for number in range(self._states.num_rows):
            row = self._states.slice(number, 1)
            auditor = PartitionsAudit.of_counts(row).auditor
            state_partition = row.column("state_partition")[0].as_py()
            keys.append(auditor.keys)
            owner.append(np.full(auditor.keys.num_rows, state_partition))
            newest_ms[state_partition] = row.column("log_time_ms")[0].as_py()
            if _is_whole(row):
                is_from_zero = row.column("is_from_zero")[0].as_py() and row.column("log_start_offset")[0].as_py() == 0
                known[state_partition] = BEGINNING if is_from_zero else int(auditor.first_ms.min())
        every = pa.concat_tables(keys)
        columns = (every.column(name).to_pylist() for name in every.column_names)
        return StateLogs(
            lives=lives_of(turns_of(stored_lives(self._lake).filter(self._is_own).sort_by(LIFE_ORDER))),
            with_records=frozenset(SharePartitionKey(*key) for key in zip(*columns, strict=True)),
            known_from_ms=known,
            until_ms=self._known_until(newest_ms),
            count=count_of_keys(every.slice(0, DECIDING), np.concatenate(owner)[:DECIDING].astype(np.int64)),
        )

    @property
    def _is_own(self) -> pc.Expression:
        """Rows of the state topic."""
        return (pc.field("cluster_id") == self._cluster_id) & (pc.field("log_topic_id") == self._topic_id)

    def _known_until(self, newest_ms: Mapping[int, int]) -> dict[int, int]:
        return known_until(newest_ms, is_one_copy=self._topics.is_one_copy, read_until_ms=self._topics.read_until_ms)

    def _extents_of(self, topic: str, topic_id: str, partition: int) -> list[dict[str, Any]]:
        """The extents of one log."""
        place = (topic, topic_id, partition)
        return [row for row in self._topics.extents if (row["topic"], row["topic_id"], row["partition"]) == place]


def _newest(rows: pa.Table, time: str) -> str:
    """The id of the topic's newest incarnation."""
    topic_ids, times = rows.column("log_topic_id").to_pylist(), rows.column(time).to_pylist()
    return str(newest_incarnation(list(zip(topic_ids, times, strict=True))))


def _is_whole(state: pa.Table) -> bool:
    """Whether no record is missing from an audited log."""
    has_losses = len(matrix_of(state, "first_losses", 2)) > 0 or int(matrix_of(state, "log", 1).ravel()[LOSS_COUNT]) > 0
    return not has_losses


def _exists(metadata: TopicMetadata | None, topic_id: str) -> bool | None:
    """Whether a topic is there by the metadata log; None: it does not say."""
    if metadata is None or topic_id not in metadata.topics:
        return None
    return metadata.topics[topic_id].to_ms > metadata.until_ms
