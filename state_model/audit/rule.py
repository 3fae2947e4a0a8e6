"""The values of the audit: rules as data, and differences between what a rule expects and what a record has."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from functools import lru_cache
from typing import NamedTuple

from state_model.audit.impact import Affected, Impact, affected_offsets
from state_model.audit.severities import SEVERITIES, VERSIONS
from state_model.share_records import RecordType, delivery_state_name

LEGAL: Mapping[str, str | None] = dict.fromkeys(VERSIONS)
"""Severities of what a healthy broker does: never a finding."""


def until(version: str, severity: str | None) -> dict[str, str | None]:
    """The severity for every version up to and including one."""
    return dict.fromkeys(VERSIONS[: VERSIONS.index(version) + 1], severity)


class Need(Enum):
    """Evidence of rules; the value names it in answers. Rules need the state log unless `needs_state_log` is false."""

    STATE_LOG = "the state log"
    KAFKA_VERSION = "the Kafka version (--kafka-version)"
    DELIVERY_COUNT_LIMIT = "the delivery count limit (--group-configs, --broker-config, --settings)"
    COORDINATOR_CONFIG = "the share coordinator's configuration (--broker-config, --settings)"
    USER_TOPIC = "the logs of the user topics"
    RECORD_LOCKS = "the record lock limit (--group-configs, --broker-config, --settings)"
    METADATA = "__cluster_metadata"
    GROUP_COORDINATOR = "__consumer_offsets"
    LOG_DIRECTORIES = "log directories (--log-dir)"


class Field(IntEnum):
    """The quantity that a difference is about."""

    RECORD_TYPE = 0
    SNAPSHOT_EPOCH = 1
    STATE_EPOCH = 2
    LEADER_EPOCH = 3
    START_OFFSET = 4
    DELIVERY_COMPLETE_COUNT = 5
    CREATE_TIMESTAMP_MS = 6
    WRITE_TIMESTAMP_MS = 7
    STATE_BATCHES = 8
    UPDATES = 9
    FIRST_OFFSET = 10
    LAST_OFFSET = 11
    DELIVERY_STATE = 12
    DELIVERY_COUNT = 13
    OFFSET_STATE = 14
    TERMINAL_OFFSETS = 15
    LOG_OFFSET = 16
    STATE_PARTITION = 17
    TRAILING_BYTES = 18
    UNKNOWN_TAGS = 19
    BATCH_ATTRIBUTES = 20
    HEADERS = 21
    PRODUCER_ID = 22
    DECODING = 23
    STATE_PARTITION_COUNT = 24
    GROUP_EPOCH = 25
    ASSIGNMENT_EPOCH = 26
    MEMBER_EPOCH = 27
    MEMBER_STATE = 28
    GROUP_PARTITION = 29
    GROUP_RECORD_TYPE = 30
    SHARE_PARTITION = 31
    LISTED = 32
    LAG = 33
    WINDOW = 34
    KNOWN = 35
    TOPIC_IDS = 36
    MEMBERS = 37
    PREVIOUS_MEMBER_EPOCH = 38
    ASSIGNMENT_TIMESTAMP_MS = 39
    DURATION_MS = 40
    TASKS = 41
    OWNERS = 42
    STANDBY_REPLICAS = 43
    TASKS_WITH_EPOCH = 44
    TOPOLOGY_EPOCH = 45
    SUBTOPOLOGIES = 46
    TOPOLOGIES = 47
    METADATA_HASH = 48
    REBALANCE_TIMEOUT_MS = 49
    CONFIGURATIONS = 50
    GROUP_PARTITIONS = 51
    ASSIGNED = 52
    PARTITIONS = 53
    PARTITIONS_WITH_EPOCH = 54
    EXPRESSIONS = 55
    EXPRESSION_VERSION = 56
    EXPRESSION_TIMESTAMP_MS = 57
    GENERATION = 58
    LEADERS = 59


DECODE_REASONS = (
    "",
    "control_record",
    "bad_key",
    "invalid_utf8",
    "unknown_record_type",
    "unknown_value_version",
    "update_without_value",
    "truncated_value",
    "malformed_varint",
    "invalid_length",
)
"""Reason codes of decoding (columnar.decode.REASONS) by the value of Field.DECODING."""
STREAMS, CONSUMER, CLASSIC = 100, 200, 300
"""Rule ST-n on streams groups has the number 100 + n, CG-n on consumer groups 200 + n, CL-n on classic ones 300 + n."""
PREFIXES = {CLASSIC: "CL", CONSUMER: "CG", STREAMS: "ST"}
"""Of labels, by what is added to a number; the largest first."""
GROUP_RECORD_RULES = range(70, 77)
"""Rules on the records of share groups in `__consumer_offsets` alone."""
NO_STATE = -(1 << 62)
"""The code of an offset that no state batch covers."""
TOMBSTONE_TYPE = 2
"""The record type of a tombstone, behind Kafka's snapshot (0) and update (1)."""
RECORD_OFFSETS = frozenset({Field.START_OFFSET, Field.FIRST_OFFSET, Field.LAST_OFFSET})
"""The fields whose values are record offsets."""


class Difference(NamedTuple):
    """The value that a rule expects of a field, and the value in the record.

    `at`: the record offset that it is about, or -1. `names`: those of what it counts; empty: it has none.
    """

    field: Field
    expected: int
    actual: int
    at: int = -1
    names: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """An invariant of the log. `number` is that of the specification; `part` parts rules that share a number.

    `number` of rule ST-n is STREAMS + n, of CG-n CONSUMER + n. `relation` stands between field and expected value.
    `exceptions`: severities of versions that differ from `severity`; None: no rule in that version.
    `if_version_unknown`: the severity while the version is unknown; None: the lowest of all versions.
    `compares_state`: the records before it prove it, too.
    `source`: section of the specification, class of Kafka. `impact`, `affected`: what a violation can have done, and to
    which records.
    """

    number: int
    part: int = 0
    code: str
    title: str
    severity: str | None
    why: str
    remedy: str
    source: str
    impact: Impact
    affected: Affected = Affected.ALL
    relation: str = "="
    exceptions: Mapping[str, str | None] = field(default_factory=dict)
    if_version_unknown: str | None = None
    needs: tuple[Need, ...] = ()
    compares_state: bool = True

    @property
    def id(self) -> int:
        """The number in kernels and tables."""
        return self.number * 10 + self.part

    @property
    def is_of_model_groups(self) -> bool:
        """Whether the rule is about records of streams, consumer or classic groups."""
        return self.number > STREAMS

    @property
    def needs_state_log(self) -> bool:
        """Whether it compares with records of the state log; rules on the group coordinator's records alone do not."""
        return not self.is_of_model_groups and self.number not in GROUP_RECORD_RULES

    @property
    def label(self) -> str:
        """The number as people write it: `10`, `ST-4` on streams groups, `CG-4` on consumer, `CL-1` on classic ones."""
        labels = (f"{prefix}-{self.number - base}" for base, prefix in PREFIXES.items() if self.number > base)
        return next(labels, str(self.number))

    def severity_for(self, version: str | None) -> str | None:
        """The severity for logs of a Kafka version; None: no finding. Unknown version: the lowest of all versions."""
        if version is not None:
            return self.exceptions.get(version, self.severity)
        if self.if_version_unknown is not None:
            return self.if_version_unknown
        severities = [self.exceptions.get(version, self.severity) for version in VERSIONS]
        if None in severities:
            return None
        return max((severity for severity in severities if severity), key=SEVERITIES.index)

    def affected_offsets(self, difference: Difference) -> tuple[int, int] | None:
        """First and last record offset that a violation can have affected (impact.affected_offsets)."""
        offsets = (difference.expected, difference.actual) if difference.field in RECORD_OFFSETS else None
        return affected_offsets(self.affected, offsets, difference.at)

    @property
    def is_legal(self) -> bool:
        """Whether the rule describes behaviour of healthy brokers, and never has a finding."""
        return self.severity is None


REPORT_BUG = "Report it to the Kafka project with the proving records; don't trust the state until then."
"""The remedy where a coordinator wrote what no coordinator may write."""
CHECK_COPY = "Check first whether the copy is damaged (`sharelens status`); if it is not, a coordinator is at fault."
"""The remedy where a damaged copy is likelier than a coordinator."""
KEPT_TEXTS = 1 << 12
"""Texts of values and fields that are kept: a finding of many share partitions has the same ones."""
RECORD_TYPES = {RecordType.SHARE_SNAPSHOT: "snapshot", RecordType.SHARE_UPDATE: "update", TOMBSTONE_TYPE: "tombstone"}
FLAGS: Mapping[Field, tuple[str, str]] = {
    Field.SHARE_PARTITION: ("none", "live"),
    Field.LISTED: ("not listed", "listed by the group"),
    Field.KNOWN: ("unknown", "known"),
    Field.ASSIGNED: ("not assigned", "assigned"),
}
"""Fields that hold or don't, with the words for 0 and for 1."""


@lru_cache(KEPT_TEXTS)
def value_text(number_of_field: int, value: int) -> str:
    """The value of a field in words."""
    match Field(number_of_field):
        case Field.RECORD_TYPE:
            return RECORD_TYPES.get(value, f"type {value}")
        case Field.OFFSET_STATE:
            if value == NO_STATE:
                return "none"
            state = (value + 128) % 256 - 128
            return f"{delivery_state_name(state)}/{(value - state) // 256}"
        case Field.DELIVERY_STATE:
            return delivery_state_name(value)
        case Field.DECODING:
            return DECODE_REASONS[value] or "decodable"
        case Field.GROUP_RECORD_TYPE:
            return f"type {value}"
        case field if field in FLAGS:
            return FLAGS[field][bool(value)]
        case _:
            return str(value)


@lru_cache(KEPT_TEXTS)
def field_text(number_of_field: int, at: int) -> str:
    """The name of a field, with the record offset that it is about."""
    field = Field(number_of_field)
    name = "delivery_state/delivery_count" if field is Field.OFFSET_STATE else field.name.lower()
    return name if at == -1 else f"{name} of offset {at}"
