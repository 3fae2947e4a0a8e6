"""The configuration keys whose values may be kept. Of every other key only the length and a hash of the value is kept.

Kafka treats unknown broker keys (of plugins) as sensitive (metadata-log §6); here that holds for every resource.
"""

from typing import Final

TOPIC_RESOURCE, BROKER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE = 2, 4, 16, 32
RESOURCE_NAMES: Final = {
    TOPIC_RESOURCE: "topic",
    BROKER_RESOURCE: "broker",
    8: "broker_logger",
    CLIENT_METRICS_RESOURCE: "client_metrics",
    GROUP_RESOURCE: "group",
}
_OF_TOPICS = frozenset(
    [
        "cleanup.policy",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.type",
        "compression.zstd.level",
        "delete.retention.ms",
        "errors.deadletterqueue.group.enable",
        "file.delete.delay.ms",
        "flush.messages",
        "flush.ms",
        "follower.replication.throttled.replicas",
        "index.interval.bytes",
        "internal.segment.bytes",
        "leader.replication.throttled.replicas",
        "local.retention.bytes",
        "local.retention.ms",
        "max.compaction.lag.ms",
        "max.message.bytes",
        "message.timestamp.after.max.ms",
        "message.timestamp.before.max.ms",
        "message.timestamp.type",
        "min.cleanable.dirty.ratio",
        "min.compaction.lag.ms",
        "min.insync.replicas",
        "preallocate",
        "remote.copy.disable",
        "remote.log.copy.disable",
        "remote.log.delete.on.disable",
        "remote.storage.enable",
        "retention.bytes",
        "retention.ms",
        "segment.bytes",
        "segment.index.bytes",
        "segment.jitter.ms",
        "segment.ms",
        "unclean.leader.election.enable",
    ]
)
_OF_CLIENT_METRICS = frozenset({"interval.ms", "match", "metrics"})
_PROTOCOLS = ("consumer", "share", "streams")
_OF_GROUPS = frozenset(
    {
        *(f"{protocol}.{name}" for protocol in _PROTOCOLS for name in ("session.timeout.ms", "heartbeat.interval.ms")),
        *(f"{protocol}.assignment.interval.ms" for protocol in _PROTOCOLS),
        *(f"{protocol}.assignor.offload.enable" for protocol in _PROTOCOLS),
        *[
            "errors.deadletterqueue.copy.record.enable",
            "errors.deadletterqueue.topic.name",
            "share.auto.offset.reset",
            "share.delivery.count.limit",
            "share.isolation.level",
            "share.partition.max.record.locks",
            "share.record.lock.duration.ms",
            "share.renew.acknowledge.enable",
            "streams.acceptable.recovery.lag",
            "streams.assignor.name",
            "streams.initial.rebalance.delay.ms",
            "streams.num.standby.replicas",
            "streams.num.warmup.replicas",
            "streams.rack.aware.assignment.tags",
            "streams.task.offset.interval.ms",
        ],
    }
)
_OF_BROKERS = frozenset(
    [
        "background.threads",
        "compression.gzip.level",
        "compression.lz4.level",
        "compression.type",
        "compression.zstd.level",
        "cordoned.log.dirs",
        "follower.fetch.last.tiered.offset.enable",
        "follower.replication.throttled.rate",
        "group.consumer.assignment.interval.ms",
        "group.consumer.assignor.offload.enable",
        "group.share.assignment.interval.ms",
        "group.share.assignor.offload.enable",
        "group.streams.assignment.interval.ms",
        "group.streams.assignor.offload.enable",
        "leader.replication.throttled.rate",
        "log.cleaner.backoff.ms",
        "log.cleaner.dedupe.buffer.size",
        "log.cleaner.delete.retention.ms",
        "log.cleaner.io.buffer.load.factor",
        "log.cleaner.io.buffer.size",
        "log.cleaner.io.max.bytes.per.second",
        "log.cleaner.max.compaction.lag.ms",
        "log.cleaner.min.cleanable.ratio",
        "log.cleaner.min.compaction.lag.ms",
        "log.cleaner.threads",
        "log.cleanup.policy",
        "log.flush.interval.messages",
        "log.flush.interval.ms",
        "log.index.interval.bytes",
        "log.index.size.max.bytes",
        "log.local.retention.bytes",
        "log.local.retention.ms",
        "log.message.timestamp.after.max.ms",
        "log.message.timestamp.before.max.ms",
        "log.message.timestamp.type",
        "log.preallocate",
        "log.retention.bytes",
        "log.retention.ms",
        "log.roll.jitter.ms",
        "log.roll.ms",
        "log.segment.bytes",
        "log.segment.delete.delay.ms",
        "max.connection.creation.rate",
        "max.connections",
        "max.connections.per.ip",
        "message.max.bytes",
        "min.insync.replicas",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.fetchers",
        "producer.id.expiration.ms",
        "remote.fetch.max.wait.ms",
        "remote.list.offsets.request.timeout.ms",
        "remote.log.index.file.cache.total.size.bytes",
        "remote.log.manager.copier.thread.pool.size",
        "remote.log.manager.copy.max.bytes.per.second",
        "remote.log.manager.expiration.thread.pool.size",
        "remote.log.manager.fetch.max.bytes.per.second",
        "remote.log.manager.follower.thread.pool.size",
        "remote.log.reader.threads",
        "replica.alter.log.dirs.io.max.bytes.per.second",
        "transaction.partition.verification.enable",
        "transactional.id.expiration.ms",
        "unclean.leader.election.enable",
    ]
)
_SAFE: Final = {
    TOPIC_RESOURCE: _OF_TOPICS,
    BROKER_RESOURCE: _OF_BROKERS,
    CLIENT_METRICS_RESOURCE: _OF_CLIENT_METRICS,
    GROUP_RESOURCE: _OF_GROUPS,
}


def is_safe(resource_type: int, name: str) -> bool:
    """Whether the value of a configuration key of a resource type may be kept."""
    return name in _SAFE.get(resource_type, frozenset())
