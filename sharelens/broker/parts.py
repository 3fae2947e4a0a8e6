"""Creates the parts of the broker, each from the configuration and the parts that it needs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sharelens.broker.config.groups import (
    ConsumerGroupSettings,
    PerGroup,
    StreamsGroupSettings,
    consumer_group_settings,
    streams_group_settings,
)
from sharelens.broker.config.settings import Settings, parse_all
from sharelens.broker.config.topic_keys import TOPIC
from sharelens.broker.coordinators.classic_groups import ClassicGroups, ClassicGroupSettings
from sharelens.broker.coordinators.epoch_groups import AnyEpochGroups, GroupSurroundings
from sharelens.broker.coordinators.group_log import GroupLog
from sharelens.broker.coordinators.group_offsets import GroupOffsets
from sharelens.broker.coordinators.internal_topics import InternalTopics
from sharelens.broker.coordinators.migrating_groups import MigratingGroups
from sharelens.broker.coordinators.offset_commits import OffsetCommits, OffsetSettings
from sharelens.broker.coordinators.share_coordinator import ShareCoordinator, ShareCoordinatorSettings
from sharelens.broker.coordinators.share_groups import ShareGroupCoordinatorSettings, ShareGroups
from sharelens.broker.coordinators.streams_groups import StreamsGroups
from sharelens.broker.coordinators.topic_expressions import expression_error
from sharelens.broker.coordinators.transaction_log import TransactionLog
from sharelens.broker.coordinators.transactions import Transactions, TransactionSettings
from sharelens.broker.errors import ConfigError
from sharelens.broker.faults import FaultInjection
from sharelens.broker.metrics import BrokerMetrics
from sharelens.broker.ports import GroupSettings, Persister, Timers, Topic
from sharelens.broker.security.authorization.acl_store import AclStore
from sharelens.broker.share.dead_letter_writer import DeadLetterWriter
from sharelens.broker.share.manager import SharePartitions
from sharelens.broker.storage.catalog import Catalog, new_id
from sharelens.broker.storage.log_config import LogConfig, log_config
from sharelens.broker.storage.log_manager import LogManager, LogManagerSettings
from state_model.rule_sets import RuleSet
from state_model.streams.values import TopicInfo

MINUTE_MS: Final = 60_000
REPLICATION_FACTORS: Final = (-1, 0, 1)
"""Of internal topics of streams groups; -1 and 0: the default of the broker."""
UNSET: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Foundation:
    """What every part rests on: the configuration, the topics, the clock with the timers, and the metrics."""

    config: Settings
    catalog: Catalog
    timers: Timers
    metrics: BrokerMetrics

    def group_configs(self, group_id: str) -> Mapping[str, str]:
        """The configuration of a group; a change makes a new one."""
        return self.catalog.group_configs.get(group_id, UNSET)


class _DeadLetterTopics:
    """The rules for dead-letter topics (share.dead_letter_writer.DeadLetterTopics)."""

    def __init__(self, foundation: Foundation) -> None:
        self._foundation = foundation

    @property
    def name_prefix(self) -> str:
        """The prefix of their names."""
        return self._foundation.config.text("errors.deadletterqueue.topic.name.prefix")

    @property
    def creates_topics(self) -> bool:
        """Whether missing topics are created."""
        return self._foundation.config.flag("errors.deadletterqueue.auto.create.topics.enable")

    def takes_dead_letters(self, topic: Topic) -> bool:
        """Whether errors.deadletterqueue.group.enable is set on the topic."""
        config = parse_all(TOPIC, self._foundation.catalog.topic_configs(topic.name))
        return config.get("errors.deadletterqueue.group.enable") is True

    def create(self, name: str) -> Topic:
        """Create a dead-letter topic. Raises BrokerError."""
        configs = {"errors.deadletterqueue.group.enable": "true", "message.timestamp.type": "CreateTime"}
        return self._foundation.catalog.create(name, self._foundation.config.integer("num.partitions"), configs)


def acls(foundation: Foundation) -> AclStore | None:
    """The ACL entries; None without authorizer.class.name."""
    config = foundation.config
    if not config.text("authorizer.class.name"):
        return None
    return AclStore(
        foundation.catalog,
        super_users=(user.strip() for user in config.text("super.users").split(";")),
        allow_everyone=config.flag("allow.everyone.if.no.acl.found"),
    )


def open_logs(
    foundation: Foundation, log_dir: Path, faults: FaultInjection | None, write_buffer_bytes: int
) -> LogManager:
    """The logs of all partitions."""
    config, catalog = foundation.config, foundation.catalog

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
        log_dir,
        catalog=catalog,
        timers=foundation.timers,
        config_of=config_of,
        settings=settings,
        faults=faults,
        write_buffer_bytes=write_buffer_bytes,
    )


def classic_groups(foundation: Foundation, group_log: GroupLog) -> ClassicGroups:
    """The classic groups."""
    config = foundation.config
    settings = ClassicGroupSettings(
        group_min_session_timeout_ms=config.integer("group.min.session.timeout.ms"),
        group_max_session_timeout_ms=config.integer("group.max.session.timeout.ms"),
        group_initial_rebalance_delay_ms=config.integer("group.initial.rebalance.delay.ms"),
        group_max_size=config.integer("group.max.size"),
    )
    return ClassicGroups(group_log, foundation.timers, settings)


def offset_commits(
    foundation: Foundation,
    group_log: GroupLog,
    classic_groups: ClassicGroups,
    epoch_groups: Sequence[AnyEpochGroups],
) -> OffsetCommits:
    """Commits and expiry of offsets."""
    config = foundation.config
    settings = OffsetSettings(
        metadata_max_bytes=config.integer("offset.metadata.max.bytes"),
        retention_ms=config.integer("offsets.retention.minutes") * MINUTE_MS,
        retention_check_interval_ms=config.integer("offsets.retention.check.interval.ms"),
    )
    return OffsetCommits(group_log, classic_groups, epoch_groups, foundation.timers, settings)


def group_surroundings(foundation: Foundation, group_log: GroupLog, classic_groups: ClassicGroups) -> GroupSurroundings:
    """What consumer and streams groups rest on."""
    return GroupSurroundings(
        log=group_log,
        topics=foundation.catalog,
        timers=foundation.timers,
        offsets=classic_groups.offsets,
        classic_groups=classic_groups,
        rack=foundation.config.text("broker.rack"),
        metrics=foundation.metrics,
    )


def consumer_groups(foundation: Foundation, surroundings: GroupSurroundings) -> MigratingGroups:
    """The consumer groups."""

    def settings(group_configs: Mapping[str, str]) -> ConsumerGroupSettings:
        return consumer_group_settings(foundation.config, group_configs, expression_error)

    return MigratingGroups(
        surroundings,
        group_settings=PerGroup(foundation.config, foundation.group_configs, settings),
        all_topics=lambda: foundation.catalog.topics.values(),
        new_id=new_id,
    )


def streams_groups(foundation: Foundation, surroundings: GroupSurroundings) -> StreamsGroups:
    """The streams groups."""

    def settings(group_configs: Mapping[str, str]) -> StreamsGroupSettings:
        return streams_group_settings(foundation.config, group_configs)

    def create_topic(topic: TopicInfo) -> None:
        if topic.replication_factor not in REPLICATION_FACTORS:
            raise ConfigError(
                f"Unable to replicate the partition {topic.replication_factor} time(s): The target replication factor "
                f"of {topic.replication_factor} cannot be reached because only 1 broker(s) are registered or some "
                "brokers have all their log directories cordoned."
            )
        configs = dict(topic.configs)
        parse_all(TOPIC, configs)
        foundation.catalog.create(topic.name, topic.partitions, configs)

    return StreamsGroups(
        surroundings,
        group_settings=PerGroup(foundation.config, foundation.group_configs, settings),
        internal_topics=InternalTopics(foundation.timers, create_topic),
    )


def transactions(foundation: Foundation, logs: LogManager, offsets: GroupOffsets) -> Transactions:
    """The transactions."""
    config = foundation.config

    def offsets_ended(partition: int, producer_id: int, is_commit: bool) -> None:
        offsets.end_transaction(partition, producer_id, is_commit=is_commit)

    settings = TransactionSettings(
        max_timeout_ms=config.integer("transaction.max.timeout.ms"),
        abort_timed_out_interval_ms=config.integer("transaction.abort.timed.out.transaction.cleanup.interval.ms"),
        id_expiration_ms=config.integer("transactional.id.expiration.ms"),
    )
    return Transactions(
        TransactionLog(foundation.catalog, logs),
        logs,
        foundation.timers,
        new_producer_id=foundation.catalog.allocate_producer_id,
        offsets_ended=offsets_ended,
        settings=settings,
    )


def share_coordinator(
    foundation: Foundation, logs: LogManager, rules: RuleSet, *, is_on: Callable[[], bool]
) -> ShareCoordinator:
    """The share coordinator."""
    config = foundation.config
    settings = ShareCoordinatorSettings(
        rules=rules,
        snapshot_update_limit=config.integer("share.coordinator.snapshot.update.records.per.snapshot"),
        codec=config.integer("share.coordinator.state.topic.compression.codec"),
        prune_interval_ms=config.integer("share.coordinator.state.topic.prune.interval.ms"),
        cold_snapshot_interval_ms=config.integer("share.coordinator.cold.partition.snapshot.interval.ms"),
    )
    return ShareCoordinator(
        foundation.catalog,
        logs,
        foundation.timers,
        settings,
        foundation.metrics,
        is_on=is_on,
    )


def share_groups(
    foundation: Foundation, group_log: GroupLog, persister: Persister, group_settings: GroupSettings, rules: RuleSet
) -> ShareGroups:
    """The share groups."""
    settings = ShareGroupCoordinatorSettings(
        max_size=foundation.config.integer("group.share.max.size"),
        initialize_retry_interval_ms=foundation.config.integer("group.share.initialize.retry.interval.ms"),
        rules=rules,
    )
    return ShareGroups(
        log=group_log,
        topics=foundation.catalog,
        persister=persister,
        timers=foundation.timers,
        group_settings=group_settings,
        settings=settings,
        rack=foundation.config.text("broker.rack"),
        metrics=foundation.metrics,
    )


def share_partitions(
    foundation: Foundation, logs: LogManager, persister: Persister, group_settings: GroupSettings
) -> SharePartitions:
    """The share partitions."""
    dead_letters = DeadLetterWriter(
        logs=logs,
        topics=foundation.catalog,
        rules=_DeadLetterTopics(foundation),
        settings=group_settings,
        timers=foundation.timers,
    )
    return SharePartitions(
        logs=logs,
        topics=foundation.catalog,
        persister=persister,
        settings=group_settings,
        timers=foundation.timers,
        dead_letters=dead_letters,
        max_sessions=foundation.config.integer("group.share.max.share.sessions"),
        metrics=foundation.metrics,
    )
