"""Keys of Kafka's broker configuration without effect here: named once at start and ignored."""

_PREFIXES = (
    "client.quota.",
    "controller.",
    "controlled.shutdown.",
    "delegation.token.",
    "kafka.metrics.",
    "leader.imbalance.",
    "listener.name.",
    "log.cleaner.dedupe.",
    "log.cleaner.io.",
    "log.local.",
    "metadata.",
    "metric.",
    "metrics.",
    "password.encoder.",
    "quota.",
    "quorum.",
    "raft.",
    "remote.",
    "replica.",
    "replication.quota.",
    "sasl.",
    "security.",
    "ssl.",
    "telemetry.",
    "transaction.state.log.",
    "zookeeper.",
)
_KEYS = """
    add.partitions.to.txn.retry.backoff.max.ms add.partitions.to.txn.retry.backoff.ms
    alter.config.policy.class.name alter.log.dirs.replication.quota.window.num
    alter.log.dirs.replication.quota.window.size.seconds auto.include.jmx.reporter auto.leader.rebalance.enable
    background.threads broker.heartbeat.interval.ms broker.session.timeout.ms
    compression.gzip.level compression.lz4.level compression.zstd.level
    create.topic.policy.class.name
    default.replication.factor early.start.listeners eligible.leader.replicas.enable
    fetch.purgatory.purge.interval.requests group.streams.assignor.offload.enable
    group.coordinator.append.linger.ms group.coordinator.background.threads
    group.coordinator.cached.buffer.max.bytes group.coordinator.threads
    group.consumer.assignor.offload.enable group.share.assignor.offload.enable group.share.persister.class.name
    initial.broker.registration.timeout.ms inter.broker.listener.name inter.broker.protocol.version
    log.cleaner.max.compaction.lag.ms log.cleaner.threads
    log.dir.failure.timeout.ms log.initial.task.delay.ms
    log.message.downconversion.enable log.message.format.version log.message.timestamp.difference.max.ms
    log.preallocate log.roll.jitter.hours log.roll.jitter.ms max.connection.creation.rate
    max.incremental.fetch.session.cache.slots max.request.partition.size.limit num.io.threads num.network.threads
    num.recovery.threads.per.data.dir num.replica.alter.log.dirs.threads num.replica.fetchers
    offsets.commit.required.acks offsets.commit.timeout.ms offsets.load.buffer.size offsets.topic.replication.factor
    principal.builder.class process.roles producer.id.expiration.check.interval.ms
    producer.purgatory.purge.interval.requests queued.max.requests request.timeout.ms reserved.broker.max.id
    server.max.startup.time.ms share.coordinator.append.linger.ms share.coordinator.cached.buffer.max.bytes
    share.coordinator.load.buffer.size share.coordinator.state.topic.min.isr
    share.coordinator.state.topic.replication.factor share.coordinator.threads share.coordinator.write.timeout.ms
    share.fetch.purgatory.purge.interval.requests socket.receive.buffer.bytes socket.send.buffer.bytes
    transaction.partition.verification.enable transaction.remove.expired.transaction.cleanup.interval.ms
    transaction.two.phase.commit.enable unclean.leader.election.enable unclean.leader.election.interval.ms
    unstable.api.versions.enable unstable.feature.versions.enable
"""

_KNOWN_KEYS = frozenset(_KEYS.split())


def is_ignored(key: str) -> bool:
    """Whether Kafka has the key, which has no effect here."""
    return key in _KNOWN_KEYS or key.startswith(_PREFIXES)
