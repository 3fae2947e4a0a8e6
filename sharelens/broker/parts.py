"""Creates the parts of the broker, each from the configuration and the parts that it needs."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from sharelens.broker.config.groups import StreamsGroupSettings, streams_group_settings
from sharelens.broker.config.settings import parse_all
from sharelens.broker.config.topic_keys import TOPIC
from sharelens.broker.coordinators.classic_groups import ClassicGroups, ClassicGroupSettings
from sharelens.broker.coordinators.internal_topics import InternalTopics
from sharelens.broker.coordinators.offset_commits import OffsetCommits, OffsetSettings
from sharelens.broker.coordinators.share_coordinator import ShareCoordinator, ShareCoordinatorSettings
from sharelens.broker.coordinators.share_groups import ShareGroupCoordinatorSettings, ShareGroups
from sharelens.broker.coordinators.streams_groups import StreamsGroups
from sharelens.broker.coordinators.transaction_log import TransactionLog
from sharelens.broker.coordinators.transactions import Transactions, TransactionSettings
from sharelens.broker.errors import ConfigError
from sharelens.broker.faults import FaultInjection
from sharelens.broker.ports import Topic
from sharelens.broker.security.authorization.acl_store import AclStore
from sharelens.broker.share.dead_letter_writer import DeadLetterWriter
from sharelens.broker.share.manager import SharePartitions
from sharelens.broker.storage.log_config import LogConfig, log_config
from sharelens.broker.storage.log_manager import LogManager, LogManagerSettings
from state_model.streams.values import TopicInfo

if TYPE_CHECKING:
    from sharelens.broker.broker import Broker

MINUTE_MS: Final = 60_000
REPLICATION_FACTORS: Final = (-1, 0, 1)
"""Of internal topics of streams groups; -1 and 0: the default of the broker."""
UNSET: Final[Mapping[str, str]] = {}


class _DeadLetterTopics:
    """The rules for dead-letter topics (share.dead_letter_writer.DeadLetterTopics)."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker

    @property
    def name_prefix(self) -> str:
        """The prefix of their names."""
        return self._broker.config.text("errors.deadletterqueue.topic.name.prefix")

    @property
    def creates_topics(self) -> bool:
        """Whether missing topics are created."""
        return self._broker.config.flag("errors.deadletterqueue.auto.create.topics.enable")

    def takes_dead_letters(self, topic: Topic) -> bool:
        """Whether errors.deadletterqueue.group.enable is set on the topic."""
        own = parse_all(TOPIC, self._broker.catalog.topic_configs(topic.name))
        return own.get("errors.deadletterqueue.group.enable") is True

    def create(self, name: str) -> Topic:
        """Create a dead-letter topic. Raises BrokerError."""
        configs = {"errors.deadletterqueue.group.enable": "true", "message.timestamp.type": "CreateTime"}
        return self._broker.catalog.create(name, self._broker.config.integer("num.partitions"), configs)


def acls(broker: "Broker") -> AclStore | None:
    """The ACL entries; None without authorizer.class.name."""
    config = broker.config
    if not config.text("authorizer.class.name"):
        return None
    return AclStore(
        broker.catalog,
        super_users=(user.strip() for user in config.text("super.users").split(";")),
        allow_everyone=config.flag("allow.everyone.if.no.acl.found"),
    )


def open_logs(broker: "Broker", faults: FaultInjection | None, write_buffer_bytes: int) -> LogManager:
    """The logs of all partitions."""
    config, catalog = broker.config, broker.catalog

    def config_of(topic: str) -> LogConfig:
        return log_config(config.topic_config(catalog.topic_configs(topic)))

    settings = LogManagerSettings(
        high_watermark_checkpoint_ms=config.integer("replica.high.watermark.checkpoint.interval.ms"),
        offset_checkpoint_ms=config.integer("log.flush.offset.checkpoint.interval.ms"),
        flush_scheduler_ms=config.integer("log.flush.scheduler.interval.ms"),
        retention_check_ms=config.integer("log.retention.check.interval.ms"),
        cleaner_backoff_ms=config.integer("log.cleaner.backoff.ms"),
        has_cleaner=config.flag("log.cleaner.enable"),
        producer_id_expiration_ms=config.integer("producer.id.expiration.ms"),
    )
    return LogManager(
        broker.log_dir,
        catalog=catalog,
        timers=broker.timers,
        config_of=config_of,
        settings=settings,
        faults=faults,
        write_buffer_bytes=write_buffer_bytes,
    )


def classic_groups(broker: "Broker") -> ClassicGroups:
    """The classic groups."""
    config = broker.config
    settings = ClassicGroupSettings(
        group_min_session_timeout_ms=config.integer("group.min.session.timeout.ms"),
        group_max_session_timeout_ms=config.integer("group.max.session.timeout.ms"),
        group_initial_rebalance_delay_ms=config.integer("group.initial.rebalance.delay.ms"),
        group_max_size=config.integer("group.max.size"),
    )
    return ClassicGroups(broker.group_log, broker.timers, settings)


def offset_commits(broker: "Broker") -> OffsetCommits:
    """Commits and expiry of offsets."""
    config = broker.config
    settings = OffsetSettings(
        metadata_max_bytes=config.integer("offset.metadata.max.bytes"),
        retention_ms=config.integer("offsets.retention.minutes") * MINUTE_MS,
        retention_check_interval_ms=config.integer("offsets.retention.check.interval.ms"),
    )
    return OffsetCommits(broker.group_log, broker.classic_groups, broker.streams_groups, broker.timers, settings)


def streams_groups(broker: "Broker") -> StreamsGroups:
    """The streams groups."""

    def group_settings(group_id: str) -> StreamsGroupSettings:
        return streams_group_settings(broker.config, broker.catalog.group_configs.get(group_id, UNSET))

    def create_topic(topic: TopicInfo) -> None:
        if topic.replication_factor not in REPLICATION_FACTORS:
            raise ConfigError(
                f"Unable to replicate the partition {topic.replication_factor} time(s): The target replication factor "
                f"of {topic.replication_factor} cannot be reached because only 1 broker(s) are registered or some "
                "brokers have all their log directories cordoned."
            )
        configs = dict(topic.configs)
        parse_all(TOPIC, configs)
        broker.catalog.create(topic.name, topic.partitions, configs)

    return StreamsGroups(
        log=broker.group_log,
        topics=broker.catalog,
        timers=broker.timers,
        group_settings=group_settings,
        offsets=broker.classic_groups.offsets,
        classic_groups=broker.classic_groups,
        internal_topics=InternalTopics(broker.timers, create_topic),
        rack=broker.config.text("broker.rack"),
        metrics=broker.metrics,
    )


def transactions(broker: "Broker") -> Transactions:
    """The transactions."""
    config, offsets = broker.config, broker.classic_groups.offsets

    def offsets_ended(partition: int, producer_id: int, is_commit: bool) -> None:
        offsets.end_transaction(partition, producer_id, is_commit=is_commit)

    settings = TransactionSettings(
        max_timeout_ms=config.integer("transaction.max.timeout.ms"),
        abort_timed_out_interval_ms=config.integer("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
        id_expiration_ms=config.integer("transactional.id.expiration.ms"),
    )
    return Transactions(
        TransactionLog(broker.catalog, broker.logs),
        broker.logs,
        broker.timers,
        new_producer_id=broker.catalog.allocate_producer_id,
        offsets_ended=offsets_ended,
        settings=settings,
    )


def share_coordinator(broker: "Broker") -> ShareCoordinator:
    """The share coordinator."""
    config = broker.config
    settings = ShareCoordinatorSettings(
        rules=broker.rules,
        snapshot_update_limit=config.integer("share.coordinator.snapshot.update.records.per.snapshot"),
        codec=config.integer("share.coordinator.state.topic.compression.codec"),
        prune_interval_ms=config.integer("share.coordinator.state.topic.prune.interval.ms"),
        cold_snapshot_interval_ms=config.integer("share.coordinator.cold.partition.snapshot.interval.ms"),
    )
    return ShareCoordinator(
        broker.catalog,
        broker.logs,
        broker.timers,
        settings,
        broker.metrics,
        is_on=lambda: broker.share_version > 0,
    )


def share_groups(broker: "Broker") -> ShareGroups:
    """The share groups."""
    settings = ShareGroupCoordinatorSettings(
        max_size=broker.config.integer("group.share.max.size"),
        initialize_retry_interval_ms=broker.config.integer("group.share.initialize.retry.interval.ms"),
        rules=broker.rules,
    )
    return ShareGroups(
        log=broker.group_log,
        topics=broker.catalog,
        persister=broker.share_coordinator,
        timers=broker.timers,
        group_settings=broker.group_settings,
        settings=settings,
        metrics=broker.metrics,
    )


def share_partitions(broker: "Broker") -> SharePartitions:
    """The share partitions."""
    dead_letters = DeadLetterWriter(
        logs=broker.logs,
        topics=broker.catalog,
        rules=_DeadLetterTopics(broker),
        settings=broker.group_settings,
        timers=broker.timers,
    )
    return SharePartitions(
        logs=broker.logs,
        topics=broker.catalog,
        persister=broker.share_coordinator,
        settings=broker.group_settings,
        timers=broker.timers,
        dead_letters=dead_letters,
        max_sessions=broker.config.integer("group.share.max.share.sessions"),
        metrics=broker.metrics,
    )
