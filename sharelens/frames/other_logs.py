"""What the audit of DataFrames compares the state log with: collected by the driver, as a run over a lake does.

cluster_logs = frames.other_logs(logs, headers=headers, metadata_records=metadata_records)
logs.transform(frames.audit_findings, cluster_logs=cluster_logs)
"""

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - the name everybody uses

from sharelens.evidence.group_decoding import decode_groups
from sharelens.evidence.incarnations import newest_incarnation
from sharelens.evidence.metadata_rows import record_history
from sharelens.evidence.metadata_schemas import METADATA_RECORD
from sharelens.evidence.schemas import GROUP_RECORD, ODD_GROUP_RECORD
from sharelens.frames.groups import GROUP_RECORD_KEY
from sharelens.frames.refusals import Argument, refuse_duplicates
from sharelens.frames.renamed import renamed_parameter
from sharelens.frames.settings import observations_in
from sharelens.frames.shapes import checked, spark_schema, typed_rows
from sharelens.kafka_log.schemas import LOG_RECORD, TOPIC_BATCH
from sharelens.measures.settings.audit_needs import needs_met
from sharelens.measures.settings.coordinator import coordinator_config
from sharelens.measures.settings.observations import settings_of
from sharelens.measures.settings.over_time import NO_SETTINGS, GroupSettings
from sharelens.measures.settings.streams import bounds_of
from state_model.audit.columnar.kept_records import KnownTopics
from state_model.audit.columnar.log_pairs import GroupLog
from state_model.audit.columnar.topic_metadata import TopicMetadata, topic_metadata
from state_model.audit.columnar.user_topics import TopicEnd, UserTopics
from state_model.audit.coordinator_config import CoordinatorConfig
from state_model.audit.group_steps import TopicPartition
from state_model.audit.rule import Need
from state_model.audit.table import RULES, untested_by_need
from state_model.topics import OFFSETS_TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame

_FUNCTION = "other_logs"
_UNKNOWN = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherLogs:
    """What is known of one cluster beside the state log; None: the logs are not there.

    `groups`: the log of the group coordinator. `ends`: those of user partitions. `coordinator`: the configuration of
    the share coordinator. `settings`: of groups. `is_one_copy`, `read_until_ms`: as in `other_logs`.
    """

    groups: GroupLog | None = None
    ends: Mapping[TopicPartition, TopicEnd] | None = None
    metadata: TopicMetadata | None = None
    coordinator: CoordinatorConfig | None = None
    settings: GroupSettings = NO_SETTINGS
    is_one_copy: bool = True
    read_until_ms: int | None = None
    topic_ids: frozenset[str] = frozenset()

    def group_log(self) -> GroupLog | None:
        """The log of the group coordinator."""
        return None if self.groups is None else replace(self.groups, bounds_of=bounds_of(self.settings))

    def user_topics(self, metadata: TopicMetadata | None, places: set[TopicPartition]) -> UserTopics:
        """The user topics, for the rules on them."""
        return UserTopics(end_of=(self.ends or {}).get, metadata=metadata, read_until_ms=self.read_until_ms)

    @property
    def known_topics(self) -> KnownTopics:
        """The ends and leader epochs of user partitions."""
        ends = {place: end.end_offset for place, end in (self.ends or {}).items()}
        return KnownTopics(ends, None if self.metadata is None else dict(self.metadata.epochs))

    @property
    def available(self) -> frozenset[Need]:
        """The needs of rules that the logs meet."""
        by_need = {
            Need.GROUP_COORDINATOR: self.groups,
            Need.USER_TOPIC: self.ends,
            Need.METADATA: self.metadata,
            Need.COORDINATOR_CONFIG: self.coordinator,
        }
        return frozenset(need for need, evidence in by_need.items() if evidence is not None)


def other_logs(
    log_records: "DataFrame",
    *,
    group_partitions: Collection[int] = (),
    headers: "DataFrame | None" = None,
    metadata_records: "DataFrame | None" = None,
    settings: "DataFrame | str | os.PathLike[str] | None" = None,
    is_one_copy: bool = True,
    read_until_ms: int | None = None,
) -> OtherLogs:
    """What `audit_findings` compares the state log of one cluster with. The driver reads and keeps it: the records of
    groups, one row a user partition, and the records of the metadata log.

    Args:
        log_records: LOG_RECORD rows; those of __consumer_offsets are read, three times.
        group_partitions: the partitions of __consumer_offsets that are there, also those without a record.
        headers: TOPIC_BATCH rows of the user topics (bronze.topic_batch), up to their ends.
        metadata_records: METADATA_RECORD rows (silver.metadata_record) from the beginning of __cluster_metadata.
        settings: as in `group_settings`, for the configuration of the share coordinator and of streams groups.
        is_one_copy: the logs were copied together, so that the newest record of any says until when all are known.
        read_until_ms: until when silence in the logs is known; None: up to their newest records.

    Raises:
        SharelensError: the folder of settings or a file in it can't be read.
        UsageError: a column is missing or has another type; or a file is not of its format.
    """
    observations = () if settings is None else tuple(observations_in(settings, _FUNCTION))
    return OtherLogs(
        groups=_group_log(checked(log_records, LOG_RECORD, _FUNCTION, "log_records"), group_partitions),
        ends=None if headers is None else _ends(checked(headers, TOPIC_BATCH, _FUNCTION, "headers")),
        metadata=None if metadata_records is None else _metadata(metadata_records, read_until_ms),
        coordinator=coordinator_config(observations),
        settings=settings_of(observations).groups,
        is_one_copy=is_one_copy,
        read_until_ms=read_until_ms,
    )


@renamed_parameter("others", "cluster_logs")
def untested_rules(
    cluster_logs: OtherLogs | None = None, settings: GroupSettings = NO_SETTINGS
) -> dict[tuple[str, ...], Sequence[str]]:
    """Codes of the rules that `audit_findings` can't test with these arguments, by the evidence that they need.

    The words are those of `sharelens audit`.
    """
    available = needs_met(settings) - {Need.RECORD_LOCKS}  # the rule that needs them is not tested
    if cluster_logs is not None:
        available |= cluster_logs.available
    untested = untested_by_need(RULES, None, available)
    return {
        tuple(need.value for need in needs): [rule.code for rule in rules if not rule.is_legal]
        for needs, rules in untested.items()
    }


def _group_log(log_records: "DataFrame", partitions: Collection[int]) -> GroupLog | None:
    """The newest incarnation of __consumer_offsets."""
    rows = log_records.where((F.col("topic") == OFFSETS_TOPIC) & ~F.col("uncommitted"))
    served = F.coalesce(F.max(F.when(F.col("below_log_start"), F.col("offset") + 1)), F.min("offset"))
    bounds = rows.groupBy("topic_id", "partition").agg(F.max("timestamp_ms").alias("newest_ms"), served.alias("first"))
    logs = bounds.toArrow().to_pylist()
    if not logs:
        return None
    newest = str(newest_incarnation([(log["topic_id"], log["newest_ms"]) for log in logs]))
    first = {log["partition"]: log["first"] for log in logs if log["topic_id"] == newest}
    newest_rows = rows.where(F.col("topic_id") == newest)

    def collected(field: str, schema: pa.Schema) -> pa.Table:
        def decode(batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
            for batch in batches:
                yield from getattr(decode_groups(typed_rows(batch, LOG_RECORD)), field).to_batches()

        return newest_rows.mapInArrow(decode, spark_schema(schema)).toArrow().cast(schema)

    records = collected("records", GROUP_RECORD)
    refuse_duplicates(records, Argument(_FUNCTION, "log_records"), GROUP_RECORD_KEY)
    numbers = frozenset({*partitions, *first})
    return GroupLog(
        topic_id=newest,
        partitions=numbers,
        records=records,
        odd_records=collected("odd_records", ODD_GROUP_RECORD),
        first_offset=first.get(min(numbers), 0),
    )


def _ends(headers: "DataFrame") -> dict[TopicPartition, TopicEnd]:
    """The ends of user partitions, with time and leader epoch of their newest committed batches."""
    committed_at = F.when(~F.col("uncommitted"), F.col("last_offset"))
    newest = {name: F.max_by(name, committed_at).alias(name) for name in ("max_timestamp_ms", "leader_epoch")}
    ends = headers.groupBy("topic_id", "partition").agg(
        F.max("topic").alias("topic"), (F.max("last_offset") + 1).alias("end_offset"), *newest.values()
    )
    return {
        (row["topic_id"], row["partition"]): TopicEnd(
            row["topic"], row["end_offset"], *(_UNKNOWN if row[name] is None else row[name] for name in newest)
        )
        for row in ends.toArrow().to_pylist()
    }


def _metadata(rows: "DataFrame", read_until_ms: int | None) -> TopicMetadata | None:
    """What the metadata log says; None without its beginning."""
    records = checked(rows, METADATA_RECORD, _FUNCTION, "metadata_records").toArrow().cast(METADATA_RECORD)
    of_log = records.filter(pc.field("snapshot_end_offset").is_null())
    if not of_log.num_rows:
        return None
    bounds = pc.min_max(of_log.column("log_offset")).as_py()
    end = bounds["max"] + 1
    history = record_history(records, [(bounds["min"], end)], committed_end=end, problems={})
    return topic_metadata(history.validities, history.first_ms, read_until_ms) if history.has_beginning else None
