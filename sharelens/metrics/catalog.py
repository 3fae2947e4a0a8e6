"""Every metric: its name for Prometheus, its OpenTelemetry twin, when it is absent. Unknown values have no sample."""

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What a metric's value is."""

    GAUGE = "gauge"
    COUNTER = "counter"


class Scope(Enum):
    """What a sample is about; the value names its labels, in order."""

    EXPORT = "version"
    PROCESS = ""
    OUTCOME = "outcome"
    QUANTILE = "quantile"
    CLUSTER = "cluster"
    RULE = "cluster severity rule"
    KIND = "cluster severity kind result"
    GROUP = "cluster group"
    SHARE_PARTITION = "cluster group topic partition"

    @property
    def labels(self) -> tuple[str, ...]:
        """Label names, in the order of a sample's label values."""
        return tuple(self.value.split())


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
    text="Lag as Kafka counts it (KIP-1226): records that are neither acknowledged nor archived.",
    source="`lag`",
    absent="the lag is unknown (`unknown_reason`)",
)
START_OFFSET = Metric(
    name="kafka_sharegroup_start_offset",
    twin="kafka.share_group.start_offset",
    scope=Scope.SHARE_PARTITION,
    unit="{offset}",
    text="Start offset (SPSO) in the state log; the broker's may be one write ahead.",
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
    text="Time from the batch timestamp of the first incomplete record until the evidence was read; 0 if it is later.",
    source="`stalled` and batch headers",
    absent="no incomplete record, or no header of its batch in the evidence",
)
STALLED = Metric(
    name="kafka_sharegroup_stalled_seconds",
    twin="kafka.share_group.stalled",
    scope=Scope.SHARE_PARTITION,
    unit="s",
    text="Duration of the stall at the first incomplete record until the evidence was read; 0 without such a record.",
    source="`stalled`",
    absent="no incomplete record is known, and the lag is not known to be 0",
)
STALLED_SINCE = Metric(
    name="kafka_sharegroup_stalled_since_timestamp_seconds",
    twin="kafka.share_group.stalled_since",
    scope=Scope.SHARE_PARTITION,
    unit="s",
    text="Beginning of that stall, as Unix time; may be after the last record of the state log.",
    source="`stalled`",
    absent="no incomplete record is known",
)
WINDOW_USED = Metric(
    name="kafka_sharegroup_window_used",
    twin="kafka.share_group.window_used",
    scope=Scope.SHARE_PARTITION,
    unit="{offset}",
    text="Offsets from the first incomplete one to the highest one in the log, a lower bound; 0 without such a record.",
    source="`stalled`",
    absent="as `kafka_sharegroup_stalled_seconds`",
)
ARCHIVED = Metric(
    name="kafka_sharegroup_archived_records_total",
    twin="kafka.share_group.archived_records",
    scope=Scope.SHARE_PARTITION,
    unit="{record}",
    text="Archived or archiving records in the evidence, without gaps.",
    source="`poison`",
    kind=Kind.COUNTER,
)
REDELIVERED = Metric(
    name="kafka_sharegroup_redelivered_records_total",
    twin="kafka.share_group.redelivered_records",
    scope=Scope.SHARE_PARTITION,
    unit="{record}",
    text="Records in the evidence that were delivered more than once; a record counts once a kind and life.",
    source="`redelivered`",
    kind=Kind.COUNTER,
)
DEAD_LETTERS_MISSING = Metric(
    name="kafka_sharegroup_dead_letters_missing",
    twin="kafka.share_group.dead_letters_missing",
    scope=Scope.SHARE_PARTITION,
    unit="{record}",
    text="Archived records whose dead letter is due and missing.",
    source="`dlq`",
    absent="no dead-letter topic of the group is known, or it archived no record",
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
    text="Share partitions of the group with state.",
    source="`lag`",
)
GROUP_LAG_UNKNOWN = Metric(
    name="kafka_sharegroup_group_lag_unknown_share_partitions",
    twin="kafka.share_group.group.lag_unknown_share_partitions",
    scope=Scope.GROUP,
    unit="{share_partition}",
    text="Share partitions of the group with unknown lag.",
    source="`lag`",
)
GROUP_INCOMPLETE = Metric(
    name="kafka_sharegroup_group_incomplete_share_partitions",
    twin="kafka.share_group.group.incomplete_share_partitions",
    scope=Scope.GROUP,
    unit="{share_partition}",
    text="Share partitions of the group whose state is not complete.",
    source="`lag`",
)
GROUP_STALLED = Metric(
    name="kafka_sharegroup_group_stalled_seconds",
    twin="kafka.share_group.group.stalled",
    scope=Scope.GROUP,
    unit="s",
    text="The longest stall of the group that still lasts.",
    source="`stalled`",
    absent="no share partition of the group stalls",
)
GROUP_STALLED_SINCE = Metric(
    name="kafka_sharegroup_group_stalled_since_timestamp_seconds",
    twin="kafka.share_group.group.stalled_since",
    scope=Scope.GROUP,
    unit="s",
    text="Beginning of the longest stall of the group that still lasts, as Unix time.",
    source="`stalled`",
    absent="no incomplete record is known",
)
GROUP_ARCHIVED = Metric(
    name="kafka_sharegroup_group_archived_records_total",
    twin="kafka.share_group.group.archived_records",
    scope=Scope.GROUP,
    unit="{record}",
    text="Sum over the group's share partitions, deleted ones included.",
    source="`poison`",
    kind=Kind.COUNTER,
)
GROUP_REDELIVERED = Metric(
    name="kafka_sharegroup_group_redelivered_records_total",
    twin="kafka.share_group.group.redelivered_records",
    scope=Scope.GROUP,
    unit="{record}",
    text="Sum over the group's share partitions, deleted ones included.",
    source="`redelivered`",
    kind=Kind.COUNTER,
)
GROUP_DEAD_LETTERS_MISSING = Metric(
    name="kafka_sharegroup_group_dead_letters_missing",
    twin="kafka.share_group.group.dead_letters_missing",
    scope=Scope.GROUP,
    unit="{record}",
    text="Sum over the group's share partitions, deleted ones included.",
    source="`dlq`",
    absent="no dead-letter topic of the group is known, or it archived no record",
)
DATA_TIMESTAMP = Metric(
    name="sharelens_data_timestamp_seconds",
    twin="sharelens.data_timestamp",
    scope=Scope.CLUSTER,
    unit="s",
    text="Log time of the newest state log record in the evidence, as Unix time.",
    source="`status`",
    absent="the evidence has no record",
)
READ_TIMESTAMP = Metric(
    name="sharelens_read_timestamp_seconds",
    twin="sharelens.read_timestamp",
    scope=Scope.CLUSTER,
    unit="s",
    text="Time until which the evidence was read, as Unix time: by the brokers' checkpoint files, else by the metadata "
    "log, else by the newest record.",
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
    text="Ranges of the state log that the evidence lacks; the range pruned before its beginning counts as one.",
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
    text="Records and batches of the state log in quarantine.",
    source="`status`",
)
HELD_BACK = Metric(
    name="sharelens_held_back_offsets",
    twin="sharelens.held_back_offsets",
    scope=Scope.CLUSTER,
    unit="{offset}",
    text="Offsets at or above the high watermark, left to the next read.",
    source="`status`",
)
AUDIT_FINDINGS = Metric(
    name="sharelens_audit_findings",
    twin="sharelens.audit_findings",
    scope=Scope.RULE,
    unit="{finding}",
    text="Findings of the audit that stand and are not suppressed, by rule of severity error or warning; 0: none.",
    source="`audit`",
    absent="the evidence is log directories or a cluster without state, or no run has audited the lake",
)
FINDINGS = Metric(
    name="sharelens_findings",
    twin="sharelens.findings",
    scope=Scope.KIND,
    unit="{finding}",
    text="Findings of the overview that no suppression covers, by kind and result: found, or not_judged, with the "
    "worst severity that it can be; 0: none.",
    source="`overview`",
)
LEFT_OUT = Metric(
    name="sharelens_share_partitions_left_out",
    twin="sharelens.share_partitions_left_out",
    scope=Scope.CLUSTER,
    unit="{share_partition}",
    text="Share partitions without series of their own because of --max-series; their groups' sums count them.",
    source="this command",
)
UP = Metric(
    name="sharelens_up",
    twin="sharelens.up",
    scope=Scope.PROCESS,
    unit="1",
    text="1 if the last read of the cluster got through; 0 if it failed, then there are no figures of groups.",
    source="this command",
    absent="the evidence is no running cluster",
)
LAST_SUCCESS = Metric(
    name="sharelens_last_success_timestamp_seconds",
    twin="sharelens.last_success_timestamp",
    scope=Scope.PROCESS,
    unit="s",
    text="End of the last read of the cluster that got through, as Unix time.",
    source="this command",
    absent="the evidence is no running cluster",
)
BUILD = Metric(
    name="sharelens_build_info",
    twin="sharelens.build",
    scope=Scope.EXPORT,
    unit="1",
    text="The version of sharelens, with the value 1.",
    source="this command",
)

METRICS = (
    LAG, START_OFFSET, END_OFFSET, OLDEST_INCOMPLETE_AGE, STALLED, STALLED_SINCE, WINDOW_USED, ARCHIVED, REDELIVERED,
    DEAD_LETTERS_MISSING, GROUP_LAG, GROUP_SHARE_PARTITIONS, GROUP_LAG_UNKNOWN, GROUP_INCOMPLETE, GROUP_STALLED,
    GROUP_STALLED_SINCE, GROUP_ARCHIVED, GROUP_REDELIVERED, GROUP_DEAD_LETTERS_MISSING, DATA_TIMESTAMP, READ_TIMESTAMP,
    STATE_PARTITIONS, GAPS, GAP_OFFSETS, QUARANTINED, HELD_BACK, AUDIT_FINDINGS, FINDINGS, LEFT_OUT,
    UP, LAST_SUCCESS, BUILD,
)  # fmt: skip
"""In the order in which they are written."""
