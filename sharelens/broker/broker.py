"""Assembles the broker: one function creates each part, in the order of their dependencies."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from sharelens.broker import parts
from sharelens.broker.config.groups import ShareGroups as ShareGroupConfigs
from sharelens.broker.config.listeners import Listener
from sharelens.broker.config.settings import Settings, Source
from sharelens.broker.coordinators.epoch_groups import AnyEpochGroups, replace_by_classic
from sharelens.broker.coordinators.group_log import GroupLog
from sharelens.broker.coordinators.share_offsets import ShareOffsets
from sharelens.broker.errors import ConfigError
from sharelens.broker.faults import FaultInjection, FaultRule
from sharelens.broker.features import SHARE_VERSION, Features, KafkaVersion, choose
from sharelens.broker.handlers.rights.table import guarded
from sharelens.broker.metrics import BrokerMetrics
from sharelens.broker.ports import Topic
from sharelens.broker.protocol.dispatch import Dispatcher
from sharelens.broker.protocol.registry import Api, registered
from sharelens.broker.protocol.server import Limits, Server
from sharelens.broker.security.authorization.acl_store import AclStore
from sharelens.broker.security.listener_security import ListenerSecurity, names_store
from sharelens.broker.storage.catalog import INTERNAL_TOPICS, Catalog, InternalTopic
from sharelens.broker.storage.ownership import claim, ensure_meta
from sharelens.broker.storage.scram_credentials import ScramUsers, added
from sharelens.broker.timers import StoppableTimers
from state_model.group_schemas import GroupKind
from state_model.rule_sets import RULE_SETS, RuleSet

DEFAULT_NODE_ID = 1
FOR_ALL_BROKERS = "*:"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of a start beside the configuration; `make_id` replaces the random ids.

    scram_users: credentials for a start, beside those of the log directory, which have precedence.
    write_buffer_bytes: bytes of acknowledged writes of each log that a crash may lose; for a broker without clients.
    """

    log_dir: Path
    listeners: Sequence[Listener]
    features: Mapping[str, int] = field(default_factory=dict)
    kafka_version: KafkaVersion | None = None
    faults: Sequence[FaultRule] = ()
    make_id: Callable[[], str] | None = None
    write_buffer_bytes: int = 0
    scram_users: ScramUsers = field(default_factory=dict)


class Broker:
    """An open broker; serves clients from `start` to `stop`. It is the first argument of every handler.

    Raises DirectoryError, StorageError or ConfigError when it can't be opened; nothing is locked then.
    """

    def __init__(self, config: Settings, timers: StoppableTimers, options: Options) -> None:
        self.config = config
        self.timers = timers
        self.node_id = node_id(config)
        self._options = options
        self.metrics = BrokerMetrics()
        # Invalid options are refused before a directory is created.
        choose(options.features, {}, options.kafka_version)
        self._claim = claim(options.log_dir)
        try:
            self.catalog = Catalog(options.log_dir, internal_topics=_internal_topics(config), make_id=options.make_id)
            self.features: Features = choose(options.features, self.catalog.features, options.kafka_version)
            ensure_meta(
                options.log_dir, cluster_id=self.catalog.cluster_id, node_id=self.node_id, make_id=options.make_id
            )
            if dict(self.features.levels) != dict(self.catalog.features):
                self.catalog.set_features(self.features.levels)
            self.features = replace(self.features, epoch=self.catalog.features_epoch)
            users = added(self.catalog.scram_users, options.scram_users)
            if users != self.catalog.scram_users:
                self.catalog.set_scram_users(users)
            self._apply_dynamic_configs()
            faults = FaultInjection(options.faults) if options.faults else None
            foundation = parts.Foundation(config=config, catalog=self.catalog, timers=timers, metrics=self.metrics)
            self.acls = parts.acls(foundation)
            self.logs = parts.open_logs(foundation, options.log_dir, faults, options.write_buffer_bytes)
            self.group_settings = ShareGroupConfigs(
                config,
                foundation.group_configs,
                lambda: self.features.levels[SHARE_VERSION],
            )
            self.group_log = GroupLog(self.catalog, self.logs, codec=config.integer("offsets.topic.compression.codec"))
            self.classic_groups = parts.classic_groups(foundation, self.group_log)
            surroundings = parts.group_surroundings(foundation, self.group_log, self.classic_groups)
            self.consumer_groups = parts.consumer_groups(foundation, surroundings)
            self.streams_groups = parts.streams_groups(foundation, surroundings)
            self.epoch_groups: Sequence[AnyEpochGroups] = (self.consumer_groups, self.streams_groups)
            self.classic_groups.replace_foreign = partial(replace_by_classic, self.epoch_groups)
            self.classic_groups.join_foreign = self.consumer_groups.join
            self.offset_commits = parts.offset_commits(
                foundation, self.group_log, self.classic_groups, self.epoch_groups
            )
            self.transactions = parts.transactions(foundation, self.logs, self.classic_groups.offsets)
            self.share_coordinator = parts.share_coordinator(
                foundation, self.logs, self.rules, is_on=lambda: self.share_version > 0
            )
            self.share_groups = parts.share_groups(
                foundation, self.group_log, self.share_coordinator, self.group_settings, self.rules
            )
            self.share_offsets = ShareOffsets(
                self.share_groups, topics=self.catalog, logs=self.logs, persister=self.share_coordinator
            )
            self.share_partitions = parts.share_partitions(
                foundation, self.logs, self.share_coordinator, self.group_settings
            )
            self.catalog.subscribe(_TopicEvents(self))
            self._security = {
                listener.name: ListenerSecurity(listener, config, self.catalog, timers)
                for listener in options.listeners
            }
        except BaseException:
            self._claim.release()
            raise
        self.apis = _apis(self.acls, faults)
        self._server = Server(Dispatcher(self, self.apis, self.metrics.requests), _limits(config))
        self._advertised: dict[str, tuple[str, int]] = {}
        self.addresses: list[tuple[str, int]] = []

    @property
    def cluster_id(self) -> str:
        """The cluster's id, created with the log directory."""
        return self.catalog.cluster_id

    @property
    def share_version(self) -> int:
        """The finalized level of share.version."""
        return self.features.share_version

    @property
    def group_version(self) -> int:
        """The finalized level of group.version."""
        return self.features.group_version

    @property
    def streams_version(self) -> int:
        """The finalized level of streams.version."""
        return self.features.streams_version

    @property
    def rules(self) -> RuleSet:
        """The rules of the coordinators of the chosen Kafka version."""
        return RULE_SETS[self.features.kafka_version]

    def set_features(self, levels: Mapping[str, int]) -> None:
        """Set levels of supported features, also for later starts. Raises StorageError."""
        changed = {**self.features.levels, **levels}
        self.catalog.set_features(changed)
        self.features = replace(self.features, levels=changed, epoch=self.catalog.features_epoch)

    @property
    def log_dir(self) -> Path:
        """The log directory."""
        return self._options.log_dir

    def advertised(self, listener: str) -> tuple[str, int]:
        """Host and port for clients that connected to a listener, as Kafka answers for the listener of a request."""
        return self._advertised.get(listener, ("", -1))

    async def start(self) -> None:
        """Load, then serve clients. Raises ListenError."""
        self.load()
        for listener in self._options.listeners:
            port = await self._server.listen(listener.name, listener.host, listener.port, self._security[listener.name])
            self._advertised[listener.name] = listener.advertised or (listener.host, port)
            self.addresses.append((listener.host, port))

    def load(self) -> None:
        """Load the coordinators from their logs, start all timers."""
        replays = {
            GroupKind.CLASSIC: self.classic_groups.replay,
            GroupKind.SHARE: self.share_groups.replay,
            **{groups.kind: groups.replay for groups in self.epoch_groups},
        }
        self.group_log.load(replays, self.classic_groups.offsets)
        self.classic_groups.start()
        self.share_groups.start()
        for groups in self.epoch_groups:
            groups.start()
        self.offset_commits.start()
        self.transactions.start()
        self.share_coordinator.start()
        self.logs.start()

    async def stop(self) -> None:
        """Close the connections, then the logs. Raises StorageError."""
        await self._server.stop()
        self.close()

    def close(self) -> None:
        """Stop the timers, close the logs in order, unlock the directory. Raises StorageError."""
        self.timers.stop()
        try:
            self.logs.close()
        finally:
            self._claim.release()

    # The broker's configuration that can change while it runs.

    def dynamic_configs(self, *, is_for_all: bool) -> dict[str, str]:
        """The dynamic configurations for all brokers, or for this node alone."""
        configs = {}
        for name, text in self.catalog.broker_configs.items():
            if name.startswith(FOR_ALL_BROKERS) == is_for_all:
                configs[name.removeprefix(FOR_ALL_BROKERS)] = text
        return configs

    def change_configs(
        self, *, for_all: Mapping[str, str], for_node: Mapping[str, str], changed: Collection[str]
    ) -> None:
        """Replace both kinds of dynamic configurations.

        A change that names a key store or a trust store of a listener reads it again, even with an unchanged value.

        Raises ConfigError when they contradict each other, StorageError; nothing has changed then.
        """
        self.config.change(_layered(for_all, for_node))
        try:
            reloads = [
                security.prepare_reload()
                for listener, security in self._security.items()
                if any(names_store(name, listener) for name in changed)
            ]
            self.catalog.set_broker_configs(
                {**{FOR_ALL_BROKERS + name: text for name, text in for_all.items()}, **for_node}
            )
        except BaseException:
            self._apply_dynamic_configs()
            raise
        for reload in reloads:
            reload()
        for topic in self.catalog.topics.values():
            self.logs.topic_changed(topic)

    def _apply_dynamic_configs(self) -> None:
        self.config.change(_layered(self.dynamic_configs(is_for_all=True), self.dynamic_configs(is_for_all=False)))


def _layered(for_all: Mapping[str, str], for_node: Mapping[str, str]) -> dict[str, tuple[str, Source]]:
    """Both kinds of dynamic configurations; a value for the node has precedence over a value for all brokers."""
    layered = {name: (text, Source.DYNAMIC_DEFAULT_BROKER) for name, text in for_all.items()}
    return layered | {name: (text, Source.DYNAMIC_BROKER) for name, text in for_node.items()}


class _TopicEvents:
    """Passes changes of topics on to the coordinators (catalog.TopicListener)."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def topic_changed(self, topic: Topic) -> None:
        """Groups compare their topics."""
        self._broker.share_groups.topics_changed()
        for groups in self._broker.epoch_groups:
            groups.topic_changed(topic)

    def topic_deleted(self, topic: Topic) -> None:
        """Delete the offsets, the share partitions and the state of the topic."""
        self._broker.offset_commits.topic_deleted(topic.name)
        self._broker.share_partitions.topic_deleted(topic.topic_id)
        self._broker.share_groups.topics_deleted([topic.topic_id])
        for groups in self._broker.epoch_groups:
            groups.topic_changed(topic)
        self._broker.share_coordinator.delete_topics([topic.topic_id])


def node_id(config: Settings) -> int:
    """node.id, else its older name broker.id, else 1. Raises ConfigError when the two differ."""
    configured, older = config.value("node.id"), config.integer("broker.id")
    if configured is not None and older >= 0 and older != configured:
        raise ConfigError(
            f"node.id={configured} and broker.id={older} differ, but name the same setting: set only node.id"
        )
    if isinstance(configured, int):
        return configured
    return older if older >= 0 else DEFAULT_NODE_ID


def _apis(acls: AclStore | None, faults: FaultInjection | None) -> Mapping[int, Api]:
    """The registered APIs, behind the guards of an authorizer, behind injected faults; without either as they are."""
    apis = registered() if acls is None else guarded(registered(), lambda: acls.authorizer)
    return apis if faults is None else faults.around(apis)


def _limits(config: Settings) -> Limits:
    frame_bytes_max = config.integer("socket.request.max.bytes")
    memory_bytes_max = config.integer("queued.max.request.bytes")
    return Limits(
        frame_bytes_max=frame_bytes_max,
        memory_bytes_max=memory_bytes_max if memory_bytes_max > 0 else 2 * frame_bytes_max,
        connections_max=config.integer("max.connections"),
        connections_per_host_max=config.integer("max.connections.per.ip"),
        idle_ms=config.integer("connections.max.idle.ms"),
        backlog=config.integer("socket.listen.backlog.size"),
    )


def _internal_topics(config: Settings) -> dict[str, InternalTopic]:
    """Configurations of internal topics: Kafka's, with this broker's partition counts and segment sizes."""
    prefixes = {
        "__consumer_offsets": "offsets.topic",
        "__share_group_state": "share.coordinator.state.topic",
        "__transaction_state": "transaction.state.log",
    }
    return {
        name: InternalTopic(
            partitions=config.integer(f"{prefix}.num.partitions"),
            configs={**INTERNAL_TOPICS[name].configs, "segment.bytes": str(config.integer(f"{prefix}.segment.bytes"))},
        )
        for name, prefix in prefixes.items()
    }
