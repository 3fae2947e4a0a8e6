"""The configuration of logs (Kafka's names with dots as underscores)."""

from collections.abc import Mapping
from dataclasses import dataclass

from sharelens.kafka_log import codecs

_INT64_MAX = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    """Defaults are Kafka's. Retention of -1 is none; `compression_codec` None keeps the producer's."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 24 * 3_600_000
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    retention_ms: int = 7 * 24 * 3_600_000
    retention_bytes: int = -1
    deletes: bool = True
    compacts: bool = False
    delete_retention_ms: int = 24 * 3_600_000
    min_compaction_lag_ms: int = 0
    min_cleanable_dirty_ratio: float = 0.5
    max_message_bytes: int = 1_048_588
    log_append_time: bool = False
    timestamp_before_max_ms: int = _INT64_MAX
    timestamp_after_max_ms: int = 3_600_000
    flush_messages: int = _INT64_MAX
    flush_ms: int = _INT64_MAX
    file_delete_delay_ms: int = 60_000
    compression_codec: int | None = None


def log_config(values: Mapping[str, str]) -> LogConfig:
    """The settings for a log from a topic's effective configuration, whose values were checked before.

    Keys that are missing have Kafka's defaults; keys without effect on logs are skipped.
    """
    numbers = {
        field: int(values[key])
        for field, key in (
            ("segment_bytes", "segment.bytes"),
            ("segment_ms", "segment.ms"),
            ("segment_index_bytes", "segment.index.bytes"),
            ("index_interval_bytes", "index.interval.bytes"),
            ("retention_ms", "retention.ms"),
            ("retention_bytes", "retention.bytes"),
            ("delete_retention_ms", "delete.retention.ms"),
            ("min_compaction_lag_ms", "min.compaction.lag.ms"),
            ("max_message_bytes", "max.message.bytes"),
            ("timestamp_before_max_ms", "message.timestamp.before.max.ms"),
            ("timestamp_after_max_ms", "message.timestamp.after.max.ms"),
            ("flush_messages", "flush.messages"),
            ("flush_ms", "flush.ms"),
            ("file_delete_delay_ms", "file.delete.delay.ms"),
        )
        if key in values
    }
    policies = {policy.strip() for policy in values.get("cleanup.policy", "delete").split(",")}
    return LogConfig(
        **numbers,
        deletes="delete" in policies,
        compacts="compact" in policies,
        min_cleanable_dirty_ratio=float(values.get("min.cleanable.dirty.ratio", 0.5)),
        log_append_time=values.get("message.timestamp.type") == "LogAppendTime",
        compression_codec=_codec(values.get("compression.type", "producer")),
    )


def _codec(name: str) -> int | None:
    if name == "uncompressed":
        return codecs.NONE
    return codecs.NAMES.index(name) if name in codecs.NAMES else None
