"""The configurations of topics, with the broker's that stand in for them (TopicConfig, LogConfig)."""

from collections.abc import Mapping

from sharelens.broker.config.definitions import LONG_MAX, Definition, Kind, Value, table

MINUTE_MS = 60_000
HOUR_MS = 3_600_000


def _topic(
    name: str,
    kind: Kind,
    default: Value,
    doc: str,
    *,
    low: int | float | None = None,
    high: int | float | None = None,
    choices: tuple[str, ...] = (),
    synonyms: tuple[tuple[str, int], ...] = (),
) -> Definition:
    return Definition(
        name=name,
        kind=kind,
        default=default,
        doc=doc,
        low=low,
        high=high,
        choices=choices,
        synonyms=synonyms,
        is_dynamic=True,
    )


_RETENTION = (("log.retention.ms", 1), ("log.retention.minutes", MINUTE_MS), ("log.retention.hours", HOUR_MS))
_CODECS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")

TOPIC: Mapping[str, Definition] = table(
    (
        _topic(
            "cleanup.policy",
            Kind.LIST,
            ("delete",),
            "What happens to old segments.",
            choices=("compact", "delete"),
            synonyms=(("log.cleanup.policy", 1),),
        ),
        _topic(
            "compression.type",
            Kind.STRING,
            "producer",
            "Codec of the log.",
            choices=_CODECS,
            synonyms=(("compression.type", 1),),
        ),
        _topic("compression.gzip.level", Kind.INT, -1, "Level of gzip."),
        _topic("compression.lz4.level", Kind.INT, 9, "Level of lz4.", low=1, high=17),
        _topic("compression.zstd.level", Kind.INT, 3, "Level of zstd.", low=-131_072, high=22),
        _topic(
            "delete.retention.ms",
            Kind.LONG,
            86_400_000,
            "How long tombstones stay in a compacted log.",
            low=0,
            synonyms=(("log.cleaner.delete.retention.ms", 1),),
        ),
        _topic(
            "errors.deadletterqueue.group.enable",
            Kind.BOOLEAN,
            False,
            "Whether share groups may send dead letters here.",
        ),
        _topic(
            "file.delete.delay.ms",
            Kind.LONG,
            60_000,
            "How long deleted files stay on disk.",
            low=0,
            synonyms=(("log.segment.delete.delay.ms", 1),),
        ),
        _topic(
            "flush.messages",
            Kind.LONG,
            LONG_MAX,
            "Records after which the log is synced to disk.",
            low=1,
            synonyms=(("log.flush.interval.messages", 1),),
        ),
        _topic(
            "flush.ms",
            Kind.LONG,
            LONG_MAX,
            "Time after which the log is synced to disk.",
            low=0,
            synonyms=(("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
        ),
        _topic(
            "index.interval.bytes",
            Kind.INT,
            4096,
            "Bytes between entries of the offset index.",
            low=0,
            synonyms=(("log.index.interval.bytes", 1),),
        ),
        _topic("max.compaction.lag.ms", Kind.LONG, LONG_MAX, "Longest time a record stays uncompacted.", low=1),
        _topic(
            "max.message.bytes",
            Kind.INT,
            1_048_588,
            "Largest record batch.",
            low=0,
            synonyms=(("message.max.bytes", 1),),
        ),
        _topic(
            "message.timestamp.after.max.ms",
            Kind.LONG,
            HOUR_MS,
            "Latest time a producer may claim.",
            low=0,
            synonyms=(("log.message.timestamp.after.max.ms", 1),),
        ),
        _topic(
            "message.timestamp.before.max.ms",
            Kind.LONG,
            LONG_MAX,
            "Oldest time a producer may claim.",
            low=0,
            synonyms=(("log.message.timestamp.before.max.ms", 1),),
        ),
        _topic(
            "message.timestamp.type",
            Kind.STRING,
            "CreateTime",
            "Whose time records carry.",
            choices=("CreateTime", "LogAppendTime"),
            synonyms=(("log.message.timestamp.type", 1),),
        ),
        _topic(
            "min.cleanable.dirty.ratio",
            Kind.DOUBLE,
            0.5,
            "How much of a log is dirty before it is compacted.",
            low=0,
            high=1,
            synonyms=(("log.cleaner.min.cleanable.ratio", 1),),
        ),
        _topic(
            "min.compaction.lag.ms",
            Kind.LONG,
            0,
            "Shortest time a record stays uncompacted.",
            low=0,
            synonyms=(("log.cleaner.min.compaction.lag.ms", 1),),
        ),
        _topic(
            "min.insync.replicas",
            Kind.INT,
            1,
            "Replicas that must have a write; there is one.",
            low=1,
            synonyms=(("min.insync.replicas", 1),),
        ),
        _topic("preallocate", Kind.BOOLEAN, False, "Whether segments are reserved on disk."),
        _topic(
            "retention.bytes",
            Kind.LONG,
            -1,
            "How much of a partition is kept; -1: all.",
            synonyms=(("log.retention.bytes", 1),),
        ),
        _topic(
            "retention.ms",
            Kind.LONG,
            168 * HOUR_MS,
            "How long records are kept; -1: for ever.",
            low=-1,
            synonyms=_RETENTION,
        ),
        _topic(
            "segment.bytes",
            Kind.INT,
            1 << 30,
            "Size at which a segment is rolled.",
            low=1 << 20,
            synonyms=(("log.segment.bytes", 1),),
        ),
        _topic(
            "segment.index.bytes",
            Kind.INT,
            10 << 20,
            "Largest offset index.",
            low=4,
            synonyms=(("log.index.size.max.bytes", 1),),
        ),
        _topic("segment.jitter.ms", Kind.LONG, 0, "How much earlier a segment may be rolled.", low=0),
        _topic(
            "segment.ms",
            Kind.LONG,
            168 * HOUR_MS,
            "Age at which a segment is rolled.",
            low=1,
            synonyms=(("log.roll.ms", 1), ("log.roll.hours", HOUR_MS)),
        ),
        _topic("unclean.leader.election.enable", Kind.BOOLEAN, False, "Without meaning on a single node."),
    )
)
"""All definitions by name."""
