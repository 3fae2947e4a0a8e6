"""The broker's configurations that take effect here, with Kafka 4.3's names, defaults and bounds."""

from collections.abc import Mapping

from sharelens.broker.config.definitions import INT_MAX, LONG_MAX, Definition, Kind, table
from sharelens.broker.config.security_keys import FAILURE_DELAY, SECURITY, listener_definition
from state_model.consumer.assignors import ASSIGNORS
from state_model.consumer.expressions import REFRESH_INTERVAL_MS, REFRESH_MIN_INTERVAL_MS

ASSIGNOR_CLASSES = {
    f"org.apache.kafka.coordinator.group.assignor.{name.capitalize()}Assignor": name for name in ASSIGNORS
}
"""Kafka's classes of the assignors, which name them too."""
MIGRATION_POLICIES = ("bidirectional", "upgrade", "downgrade", "disabled")
STANDARD_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
"""The only authorizer."""


def _number(
    kind: Kind, name: str, default: int | None, doc: str, low: int | None, high: int | None, dynamic: bool
) -> Definition:
    return Definition(name=name, kind=kind, default=default, doc=doc, low=low, high=high, is_dynamic=dynamic)


def _int(
    name: str, default: int | None, doc: str, low: int | None = None, high: int | None = None, *, dynamic: bool = False
) -> Definition:
    return _number(Kind.INT, name, default, doc, low, high, dynamic)


def _long(
    name: str, default: int | None, doc: str, low: int | None = None, high: int | None = None, *, dynamic: bool = False
) -> Definition:
    return _number(Kind.LONG, name, default, doc, low, high, dynamic)


def _flag(name: str, default: bool, doc: str, *, dynamic: bool = False) -> Definition:
    return Definition(name=name, kind=Kind.BOOLEAN, default=default, doc=doc, is_dynamic=dynamic)


def _text(name: str, default: str | None, doc: str, *choices: str, dynamic: bool = False) -> Definition:
    return Definition(name=name, kind=Kind.STRING, default=default, doc=doc, choices=choices, is_dynamic=dynamic)


def _list(name: str, default: tuple[str, ...], doc: str, *choices: str, dynamic: bool = False) -> Definition:
    return Definition(name=name, kind=Kind.LIST, default=default, doc=doc, choices=choices, is_dynamic=dynamic)


def _intervals(kind: str) -> tuple[Definition, ...]:
    """The times of groups of a kind, with the bounds of what one group may set."""
    session, heartbeat, assignment = (
        f"{name}.ms" for name in ("session.timeout", "heartbeat.interval", "assignment.interval")
    )
    return (
        _int(f"group.{kind}.{session}", 45_000, f"Silence after which a member of a {kind} group has left.", 1),
        _int(f"group.{kind}.min.{session}", 45_000, f"Shortest session timeout that a {kind} group may set.", 1),
        _int(f"group.{kind}.max.{session}", 60_000, f"Longest session timeout that a {kind} group may set.", 1),
        _int(f"group.{kind}.{heartbeat}", 5_000, f"How often members of {kind} groups report.", 1),
        _int(f"group.{kind}.min.{heartbeat}", 5_000, f"Shortest interval that a {kind} group may set.", 1),
        _int(f"group.{kind}.max.{heartbeat}", 15_000, f"Longest interval that a {kind} group may set.", 1),
        _int(
            f"group.{kind}.{assignment}",
            1_000,
            f"Shortest time between two assignments of a {kind} group.",
            0,
            dynamic=True,
        ),
        _int(f"group.{kind}.min.{assignment}", 0, f"Shortest assignment interval that a {kind} group may set.", 0),
        _int(f"group.{kind}.max.{assignment}", 15_000, f"Longest assignment interval that a {kind} group may set.", 0),
    )


_NETWORK = (
    _list("listeners", ("PLAINTEXT://:9092",), "Addresses to listen on; an empty host is the loopback address."),
    _list("advertised.listeners", (), "Addresses in the answers to clients; the bound ones when empty."),
    _list("listener.security.protocol.map", (), "Security protocol of each listener name."),
    _list("controller.listener.names", (), "Listener names of controllers; those listeners are not served."),
    _int("socket.request.max.bytes", 100 << 20, "Largest request; a larger frame closes its connection.", 1),
    _int("socket.listen.backlog.size", 50, "Connections that may wait to be accepted.", 1),
    _long("queued.max.request.bytes", -1, "Memory for unfinished requests and unsent answers; -1: two largest ones."),
    _int("max.connections", INT_MAX, "Connections in all.", 0, dynamic=True),
    _int("max.connections.per.ip", INT_MAX, "Connections of one address.", 0, dynamic=True),
    _long("connections.max.idle.ms", 600_000, "Silent connections are closed after this time."),
    FAILURE_DELAY,
    _int("fetch.max.bytes", 55 << 20, "Most bytes in one answer to a fetch.", 1024),
    _int("node.id", None, "Id of this node.", 0),
    _int("broker.id", -1, "Older name of node.id."),
    _text("broker.rack", None, "Rack of this node, for clients and for the metadata hash of streams groups."),
)

_LOG = (
    _text("log.dir", None, "The log directory, when log.dirs is not set."),
    _text("log.dirs", None, "The log directory; one only."),
    _int("log.segment.bytes", 1 << 30, "Size at which a segment is rolled.", 1 << 20, dynamic=True),
    _long("log.roll.ms", None, "Age at which a segment is rolled; log.roll.hours when not set.", 1, dynamic=True),
    _int("log.roll.hours", 168, "Age at which a segment is rolled.", 1),
    _long("log.retention.ms", None, "How long records are kept; -1: for ever.", dynamic=True),
    _int("log.retention.minutes", None, "How long records are kept, when log.retention.ms is not set."),
    _int("log.retention.hours", 168, "How long records are kept, when neither of the finer ones is set."),
    _long("log.retention.bytes", -1, "How much of a partition is kept; -1: all.", dynamic=True),
    _long("log.retention.check.interval.ms", 300_000, "How often retention is checked.", 1),
    _flag("log.cleaner.enable", True, "Whether compacted topics are compacted."),
    _long("log.cleaner.backoff.ms", 15_000, "Time between two checks for logs to compact.", 1),
    _long(
        "log.cleaner.delete.retention.ms", 86_400_000, "How long tombstones stay in a compacted log.", 0, dynamic=True
    ),
    Definition(
        name="log.cleaner.min.cleanable.ratio",
        kind=Kind.DOUBLE,
        default=0.5,
        doc="How much of a log is dirty before it is compacted.",
        low=0,
        high=1,
        is_dynamic=True,
    ),
    _long("log.cleaner.min.compaction.lag.ms", 0, "Shortest time a record stays uncompacted.", 0, dynamic=True),
    _list("log.cleanup.policy", ("delete",), "What happens to old segments.", "compact", "delete", dynamic=True),
    _int("log.index.interval.bytes", 4096, "Bytes between entries of the offset index.", 0, dynamic=True),
    _int("log.index.size.max.bytes", 10 << 20, "Largest offset index.", 4, dynamic=True),
    _long(
        "log.flush.interval.messages", LONG_MAX, "Records after which a partition is synced to disk.", 1, dynamic=True
    ),
    _long("log.flush.interval.ms", None, "Time after which a partition is synced to disk.", dynamic=True),
    _long("log.flush.scheduler.interval.ms", LONG_MAX, "Time between two checks for partitions to sync.", 1),
    _int("log.flush.offset.checkpoint.interval.ms", 60_000, "How often recovery points are written.", 0),
    _int("log.flush.start.offset.checkpoint.interval.ms", 60_000, "How often log start offsets are written.", 0),
    _long("replica.high.watermark.checkpoint.interval.ms", 5_000, "How often high watermarks are written.", 1),
    _long("log.segment.delete.delay.ms", 60_000, "How long deleted files stay on disk.", 0, dynamic=True),
    _text(
        "log.message.timestamp.type",
        "CreateTime",
        "Whose time records carry.",
        "CreateTime",
        "LogAppendTime",
        dynamic=True,
    ),
    _long("log.message.timestamp.before.max.ms", LONG_MAX, "Oldest time a producer may claim.", 0, dynamic=True),
    _long("log.message.timestamp.after.max.ms", 3_600_000, "Latest time a producer may claim.", 0, dynamic=True),
    _text(
        "compression.type",
        "producer",
        "Codec of the log.",
        "uncompressed",
        "zstd",
        "lz4",
        "snappy",
        "gzip",
        "producer",
        dynamic=True,
    ),
    _int("message.max.bytes", 1_048_588, "Largest record batch.", 0, dynamic=True),
    _int("producer.id.expiration.ms", 86_400_000, "How long an idle producer is remembered.", 1, dynamic=True),
)

_TOPICS = (
    _flag("auto.create.topics.enable", True, "Whether a Metadata request may create a missing topic."),
    _flag("delete.topic.enable", True, "Whether topics can be deleted."),
    _int("num.partitions", 1, "Partitions of a topic that is created without a number.", 1),
    _int("min.insync.replicas", 1, "Replicas that must have a write; there is one.", 1, dynamic=True),
)

_CODEC = "Codec of the topic: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."

_GROUPS = (
    _int("group.min.session.timeout.ms", 6_000, "Shortest session timeout of a classic member."),
    _int("group.max.session.timeout.ms", 1_800_000, "Longest session timeout of a classic member."),
    _int("group.initial.rebalance.delay.ms", 3_000, "How long an empty classic group waits for more members."),
    _int("group.max.size", INT_MAX, "Most members of a classic group.", 1),
    _int("offset.metadata.max.bytes", 4_096, "Longest text beside a committed offset."),
    _int("offsets.topic.num.partitions", 50, "Partitions of __consumer_offsets.", 1),
    _int("offsets.topic.segment.bytes", 100 << 20, "Segment size of __consumer_offsets.", 1),
    _int("offsets.topic.compression.codec", 0, _CODEC, 0, 4),
    _int("offsets.retention.minutes", 10_080, "How long offsets of an empty group are kept.", 1),
    _long("offsets.retention.check.interval.ms", 600_000, "Time between two checks for expired offsets.", 1),
    _int("transaction.state.log.num.partitions", 50, "Partitions of __transaction_state.", 1),
    _int("transaction.state.log.segment.bytes", 100 << 20, "Segment size of __transaction_state.", 1),
    _int("transaction.max.timeout.ms", 900_000, "Longest transaction timeout that a producer may request.", 1),
    _int("transactional.id.expiration.ms", 604_800_000, "How long an idle transactional id is kept.", 1),
    _int(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        10_000,
        "How often overdue transactions are aborted.",
        1,
    ),
)

_SHARE_GROUPS = (
    _int("group.share.delivery.count.limit", 5, "Deliveries after which a record is archived.", 2, 10),
    _int("group.share.min.delivery.count.limit", 2, "Lowest limit that a group may set.", 2, 5),
    _int("group.share.max.delivery.count.limit", 10, "Highest limit that a group may set.", 5, 25),
    _int("group.share.record.lock.duration.ms", 30_000, "How long an acquired record stays locked.", 1_000, 3_600_000),
    _int("group.share.min.record.lock.duration.ms", 15_000, "Shortest lock that a group may set.", 1_000, 30_000),
    _int("group.share.max.record.lock.duration.ms", 60_000, "Longest lock that a group may set.", 30_000, 3_600_000),
    _int("group.share.partition.max.record.locks", 2_000, "Records in flight of a share partition.", 100, 10_000),
    _int(
        "group.share.min.partition.max.record.locks", 100, "Fewest records in flight that a group may set.", 100, 2_000
    ),
    _int(
        "group.share.max.partition.max.record.locks",
        4_000,
        "Most records in flight that a group may set.",
        2_000,
        10_000,
    ),
    _int("group.share.max.share.sessions", 2_000, "Share sessions of this broker.", 1),
    _int("group.share.max.size", 200, "Most members of a share group.", 1, 1_000),
    *_intervals("share"),
    _list("group.share.assignors", ("simple",), "Assignors; there is one.", "simple"),
    _int("group.share.initialize.retry.interval.ms", 30_000, "When a failed initialisation is tried again.", 1),
    _int("share.coordinator.state.topic.num.partitions", 50, "Partitions of __share_group_state.", 1),
    _int("share.coordinator.state.topic.segment.bytes", 100 << 20, "Segment size of __share_group_state.", 1),
    _int("share.coordinator.state.topic.compression.codec", 0, _CODEC, 0, 4),
    _int("share.coordinator.snapshot.update.records.per.snapshot", 500, "Updates between two snapshots.", 0, 500),
    _int(
        "share.coordinator.state.topic.prune.interval.ms", 300_000, "How often redundant state records are deleted.", 1
    ),
    _int(
        "share.coordinator.cold.partition.snapshot.interval.ms",
        300_000,
        "How often idle share partitions get a snapshot.",
        1,
    ),
    _text(
        "errors.deadletterqueue.topic.name.prefix",
        "dlq.",
        "Prefix of the names of dead-letter topics; empty: any name.",
    ),
    _flag("errors.deadletterqueue.auto.create.topics.enable", False, "Whether missing dead-letter topics are created."),
)


def _migration_fault(text: str) -> str | None:
    return None if text.lower() in MIGRATION_POLICIES else f"takes {', '.join(MIGRATION_POLICIES)}"


def _assignors_fault(text: str) -> str | None:
    names = [name.strip() for name in text.split(",")]
    return None if all(names) and len(set(names)) == len(names) else "takes each assignor once, and at least one"


_CONSUMER_GROUPS = (
    *_intervals("consumer"),
    _int("group.consumer.max.size", INT_MAX, "Most members of a consumer group.", 1),
    Definition(
        name="group.consumer.assignors",
        kind=Kind.LIST,
        default=tuple(ASSIGNORS),
        choices=(*ASSIGNORS, *ASSIGNOR_CLASSES),
        check=_assignors_fault,
        doc="Assignors of consumer groups; the first is the default.",
    ),
    Definition(
        name="group.consumer.migration.policy",
        kind=Kind.STRING,
        default="bidirectional",
        check=_migration_fault,
        doc="Whether groups with members change between the classic and the consumer protocol.",
    ),
    _int(
        "group.consumer.regex.refresh.interval.ms",
        REFRESH_INTERVAL_MS,
        "When regular expressions of a consumer group are resolved again at the latest.",
        REFRESH_MIN_INTERVAL_MS,
    ),
)

_STREAMS_GROUPS = (
    *_intervals("streams"),
    _int("group.streams.num.standby.replicas", 0, "Standby tasks of each stateful task.", 0),
    _int("group.streams.max.standby.replicas", 2, "Most standby tasks that a streams group may set.", 0),
    _int(
        "group.streams.initial.rebalance.delay.ms", 3_000, "How long an empty streams group waits for more members.", 0
    ),
    _int("group.streams.max.size", INT_MAX, "Most members of a streams group.", 1),
    _list(
        "group.coordinator.rebalance.protocols",
        ("classic", "consumer", "streams"),
        "Protocols of groups; without `consumer` or `streams` groups of that kind are off.",
        "classic",
        "consumer",
        "share",
        "streams",
    ),
)


def _authorizer_fault(text: str) -> str | None:
    return (
        None
        if text in ("", STANDARD_AUTHORIZER)
        else f"takes {STANDARD_AUTHORIZER}; without it, everyone may do everything"
    )


def _super_users_fault(text: str) -> str | None:
    untyped = next((user for user in text.split(";") if user.strip() and ":" not in user), None)
    return None if untyped is None else f"write User:{untyped.strip()}, and ';' between two users"


_AUTHORIZER = (
    Definition(
        name="authorizer.class.name",
        kind=Kind.STRING,
        default="",
        doc=f"{STANDARD_AUTHORIZER}: ACLs say who may do what; empty: everyone may do everything.",
        check=_authorizer_fault,
    ),
    Definition(
        name="super.users",
        kind=Kind.STRING,
        default="",
        doc="Principals that may do everything, such as User:admin, with ; between them.",
        check=_super_users_fault,
    ),
    _flag("allow.everyone.if.no.acl.found", False, "Whether resources that no ACL covers are open to everyone."),
)

BROKER: Mapping[str, Definition] = table(
    (
        *_NETWORK,
        *SECURITY.values(),
        *_LOG,
        *_TOPICS,
        *_GROUPS,
        *_CONSUMER_GROUPS,
        *_SHARE_GROUPS,
        *_STREAMS_GROUPS,
        *_AUTHORIZER,
    )
)
"""All definitions by name."""


def broker_definition(key: str) -> Definition | None:
    """The definition of a key of the broker or of one of its listeners; None for a key without effect here."""
    return BROKER.get(key) or listener_definition(key)
