"""Every metric: its name for Prometheus, its OpenTelemetry twin, when it is absent. What is unknown has no sample."""

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What a metric's value is."""

    GAUGE = "gauge"
    COUNTER = "counter"


class Scope(Enum):
    """What a sample is about; the value names its labels, in order."""

    EXPORT = ("version",)
    CLUSTER = ("cluster",)
    GROUP = ("cluster", "group")
    SHARE_PARTITION = ("cluster", "group", "topic", "partition")

    @property
    def labels(self) -> tuple[str, ...]:
        """Label names, in the order of a sample's label values."""
        return tuple(self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One metric. `unit` is UCUM, as OpenTelemetry writes it; `source` and `absent` are for the reference page."""

    name: str
    twin: str
    scope: Scope
    unit: str
    text: str
    source: str
    absent: str = "never"
    kind: Kind = Kind.GAUGE

    @property
    def labels(self) -> tuple[str, ...]:
        """Label names."""
        return self.scope.labels


LAG = Metric(
    name="kafka_sharegroup_lag",
    twin="kafka.share_group.lag",
    scope=Scope.SHARE_PARTITION,
    unit="{record}",
    text="Records that the group has not finished, by Kafka's own count (KIP-1226).",
    source="`lag`",
    absent="the lag is unknown (`unknown_reason`)",
)
START_OFFSET = Metric(
    name="kafka_sharegroup_start_offset",
    twin="kafka.share_group.start_offset",
    scope=Scope.SHARE_PARTITION,
    unit="{offset}",
    text="Start offset (SPSO) as logged; it trails the broker's by a write.",
    source="`lag`",
    absent="not determined yet",
)
END_OFFSET = Metric(
    name="kafka_sharegroup_end_offset",
    twin="kafka.share_group.end_offset",
    scope=Scope.SHARE_PARTITION,
    unit="{offset}",
    text="End offset (high watermark) of the user partition.",
    source="`lag`",
    absent="the topic's folder is not in the evidence",
)
OLDEST_INCOMPLETE_AGE = Metric(
    name="kafka_sharegroup_oldest_incomplete_age_seconds",
    twin="kafka.share_group.oldest_incomplete.age",
    scope=Scope.SHARE_PARTITION,
    unit="s",
    text="From the timestamp of the batch of the first unfinished record to the end of the evidence; 0 if it is later.",
    source="`stalled` and batch headers",
    absent="nothing waits, or no header of its batch is held",
)
STALLED = Metric(
    name="kafka_sharegroup_stalled_seconds",
    twin="kafka.share_group.stalled",
    scope=Scope.SHARE_PARTITION,
    unit="s",
    text="How long the first unfinished record has stood still at the end of the evidence; 0 if nothing waits.",
    source="`stalled`",
    absent="nothing is known to wait, and the lag is not known to be 0",
)
STALLED_SINCE = Metric(
    name="kafka_sharegroup_stalled_since_timestamp_seconds",
    twin="kafka.share_group.stalled_since",
    scope=Scope.SHARE_PARTITION,
    unit="s",
    text="Since when it stands still, as Unix time; it may lie behind the last record of the state log.",
    source="`stalled`",
    absent="nothing is known to wait",
)
WINDOW_USED = Metric(
    name="kafka_sharegroup_window_used",
    twin="kafka.share_group.window_used",
    scope=Scope.SHARE_PARTITION,
    unit="{offset}",
    text="Offsets from the first unfinished one to the highest one logged, a lower bound; 0 if nothing waits.",
    source="`stalled`",
    absent="as `kafka_sharegroup_stalled_seconds`",
)
ARCHIVED = Metric(
    name="kafka_sharegroup_archived_records_total",
    twin="kafka.share_group.archived_records",
    scope=Scope.SHARE_PARTITION,
    unit="{record}",
    text="Records given up (archived, or on their way to a dead letter) in what the evidence holds; gaps aside.",
    source="`poison`",
    kind=Kind.COUNTER,
)
REDELIVERED = Metric(
    name="kafka_sharegroup_redelivered_records_total",
    twin="kafka.share_group.redelivered_records",
    scope=Scope.SHARE_PARTITION,
    unit="{record}",
    text="Records delivered more than once in what the evidence holds; a record counts once a kind and life.",
    source="`redelivered`",
    kind=Kind.COUNTER,
)
DEAD_LETTERS_MISSING = Metric(
    name="kafka_sharegroup_dead_letters_missing",
    twin="kafka.share_group.dead_letters_missing",
    scope=Scope.SHARE_PARTITION,
    unit="{record}",
    text="Archived records whose dead letter is due and not found.",
    source="`dlq`",
    absent="no dead-letter topic is known for the group, or it gave nothing up",
)
GROUP_LAG = Metric(
    name="kafka_sharegroup_group_lag",
    twin="kafka.share_group.group.lag",
    scope=Scope.GROUP,
    unit="{record}",
    text="Sum of the known lags of the group's share partitions.",
    source="`lag`",
    absent="no lag of the group is known",
)
GROUP_SHARE_PARTITIONS = Metric(
    name="kafka_sharegroup_group_share_partitions",
    twin="kafka.share_group.group.share_partitions",
    scope=Scope.GROUP,
    unit="{share_partition}",
    text="Share partitions of the group that have state.",
    source="`lag`",
)
GROUP_LAG_UNKNOWN = Metric(
    name="kafka_sharegroup_group_lag_unknown_share_partitions",
    twin="kafka.share_group.group.lag_unknown_share_partitions",
    scope=Scope.GROUP,
    unit="{share_partition}",
    text="Those of them whose lag is unknown.",
    source="`lag`",
)
GROUP_INCOMPLETE = Metric(
    name="kafka_sharegroup_group_incomplete_share_partitions",
    twin="kafka.share_group.group.incomplete_share_partitions",
    scope=Scope.GROUP,
    unit="{share_partition}",
    text="Those of them whose state does not rest on complete evidence.",
    source="`lag`",
)
GROUP_STALLED = Metric(
    name="kafka_sharegroup_group_stalled_seconds",
    twin="kafka.share_group.group.stalled",
    scope=Scope.GROUP,
    unit="s",
    text="The longest of the group's stalls that still stand.",
    source="`stalled`",
    absent="no share partition of the group has one",
)
GROUP_STALLED_SINCE = Metric(
    name="kafka_sharegroup_group_stalled_since_timestamp_seconds",
    twin="kafka.share_group.group.stalled_since",
    scope=Scope.GROUP,
    unit="s",
    text="The earliest moment since when one of the group's share partitions stands still, as Unix time.",
    source="`stalled`",
    absent="nothing is known to wait",
)
GROUP_ARCHIVED = Metric(
    name="kafka_sharegroup_group_archived_records_total",
    twin="kafka.share_group.group.archived_records",
    scope=Scope.GROUP,
    unit="{record}",
    text="Sum over the group's share partitions, those that are gone included.",
    source="`poison`",
    kind=Kind.COUNTER,
)
GROUP_REDELIVERED = Metric(
    name="kafka_sharegroup_group_redelivered_records_total",
    twin="kafka.share_group.group.redelivered_records",
    scope=Scope.GROUP,
    unit="{record}",
    text="Sum over the group's share partitions, those that are gone included.",
    source="`redelivered`",
    kind=Kind.COUNTER,
)
GROUP_DEAD_LETTERS_MISSING = Metric(
    name="kafka_sharegroup_group_dead_letters_missing",
    twin="kafka.share_group.group.dead_letters_missing",
    scope=Scope.GROUP,
    unit="{record}",
    text="Sum over the group's share partitions, those that are gone included.",
    source="`dlq`",
    absent="no dead-letter topic is known for the group, or it gave nothing up",
)
DATA_TIMESTAMP = Metric(
    name="sharelens_data_timestamp_seconds",
    twin="sharelens.data_timestamp",
    scope=Scope.CLUSTER,
    unit="s",
    text="Log time of the newest record of the state log in the evidence, as Unix time: what all figures stand for.",
    source="`status`",
    absent="the evidence holds no record",
)
READ_TIMESTAMP = Metric(
    name="sharelens_read_timestamp_seconds",
    twin="sharelens.read_timestamp",
    scope=Scope.CLUSTER,
    unit="s",
    text="When the evidence was read, as Unix time: the lake's publication, or the reading of the log directory.",
    source="`status`",
)
STATE_PARTITIONS = Metric(
    name="sharelens_state_partitions",
    twin="sharelens.state_partitions",
    scope=Scope.CLUSTER,
    unit="{partition}",
    text="State partitions in the evidence.",
    source="`status`",
)
GAPS = Metric(
    name="sharelens_gaps",
    twin="sharelens.gaps",
    scope=Scope.CLUSTER,
    unit="{gap}",
    text="Ranges of the state log that the evidence lacks; what was pruned before it began counts as one.",
    source="`status`",
)
GAP_OFFSETS = Metric(
    name="sharelens_gap_offsets",
    twin="sharelens.gap_offsets",
    scope=Scope.CLUSTER,
    unit="{offset}",
    text="Offsets of the state log in these ranges.",
    source="`status`",
)
QUARANTINED = Metric(
    name="sharelens_quarantined_records",
    twin="sharelens.quarantined_records",
    scope=Scope.CLUSTER,
    unit="{record}",
    text="Records and batches of the state log that could not be read or were set aside.",
    source="`status`",
)
HELD_BACK = Metric(
    name="sharelens_held_back_offsets",
    twin="sharelens.held_back_offsets",
    scope=Scope.CLUSTER,
    unit="{offset}",
    text="Offsets at or above the high watermark, left for the next reading.",
    source="`status`",
)
LEFT_OUT = Metric(
    name="sharelens_share_partitions_left_out",
    twin="sharelens.share_partitions_left_out",
    scope=Scope.CLUSTER,
    unit="{share_partition}",
    text="Share partitions without series of their own because of --max-series; their groups' sums count them.",
    source="this command",
)
BUILD = Metric(
    name="sharelens_build_info",
    twin="sharelens.build",
    scope=Scope.EXPORT,
    unit="1",
    text="The version of sharelens that made this, with the value 1.",
    source="this command",
)

METRICS = (
    LAG, START_OFFSET, END_OFFSET, OLDEST_INCOMPLETE_AGE, STALLED, STALLED_SINCE, WINDOW_USED, ARCHIVED, REDELIVERED,
    DEAD_LETTERS_MISSING, GROUP_LAG, GROUP_SHARE_PARTITIONS, GROUP_LAG_UNKNOWN, GROUP_INCOMPLETE, GROUP_STALLED,
    GROUP_STALLED_SINCE, GROUP_ARCHIVED, GROUP_REDELIVERED, GROUP_DEAD_LETTERS_MISSING, DATA_TIMESTAMP, READ_TIMESTAMP,
    STATE_PARTITIONS, GAPS, GAP_OFFSETS, QUARANTINED, HELD_BACK, LEFT_OUT, BUILD,
)  # fmt: skip
"""In the order in which they are written."""
