"""The configurations of groups (resource type 32), with the broker's bounds (Kafka's GroupConfig)."""

from collections.abc import Mapping
from dataclasses import dataclass

from sharelens.broker.config.definitions import Definition, Kind, table
from sharelens.broker.config.durations import duration_ms
from sharelens.broker.errors import ConfigError

BY_DURATION = "by_duration:"
GROUP_KINDS = ("consumer", "share", "streams")
"""The kinds of groups with configurations; each has a session timeout, a heartbeat and an assignment interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounded:
    """The broker's configurations that bound a group's configuration; a number is a fixed bound."""

    low: str | int
    high: str


def _offset_reset(text: str) -> str | None:
    """The error in a share.auto.offset.reset value; None for a valid one."""
    if text in ("earliest", "latest"):
        return None
    if text.startswith(BY_DURATION):
        try:
            duration_ms(text.removeprefix(BY_DURATION))
        except ConfigError:
            return f"takes {BY_DURATION} with a positive duration such as PT1H30M"
        return None
    return f"takes earliest, latest or {BY_DURATION}PnDTnHnMn.nS"


def _numeric(kind: str, name: str, low: int, doc: str) -> Definition:
    """A number with a default of the broker; `kind` is one of GROUP_KINDS."""
    return Definition(
        name=f"{kind}.{name}",
        kind=Kind.INT,
        default=None,
        doc=doc,
        low=low,
        is_dynamic=True,
        synonyms=((f"group.{kind}.{name}", 1),),
    )


_INTERVALS = {
    "session.timeout.ms": (1, "Silence after which a member of a {} group has left."),
    "heartbeat.interval.ms": (1, "How often members of a {} group report."),
    "assignment.interval.ms": (0, "Shortest time between two assignments of a {} group."),
}

_SHARE = {
    "record.lock.duration.ms": (1_000, "How long an acquired record stays locked."),
    "delivery.count.limit": (2, "Deliveries after which a record is archived."),
    "partition.max.record.locks": (100, "Records in flight of a share partition."),
}

_STREAMS = {
    "num.standby.replicas": (0, "Standby tasks of each stateful task."),
    "initial.rebalance.delay.ms": (0, "How long an empty streams group waits for more members."),
}


def _between(kind: str, name: str) -> Bounded:
    return Bounded(low=f"group.{kind}.min.{name}", high=f"group.{kind}.max.{name}")


BOUNDS: Mapping[str, Bounded] = {
    **{f"{kind}.{name}": _between(kind, name) for kind in GROUP_KINDS for name in _INTERVALS},
    **{f"share.{name}": _between("share", name) for name in _SHARE},
    "streams.num.standby.replicas": Bounded(low=0, high="group.streams.max.standby.replicas"),
}

GROUP: Mapping[str, Definition] = table(
    (
        *(
            _numeric(kind, name, low, doc.format(kind))
            for kind in GROUP_KINDS
            for name, (low, doc) in _INTERVALS.items()
        ),
        *(_numeric("share", name, low, doc) for name, (low, doc) in _SHARE.items()),
        *(_numeric("streams", name, low, doc) for name, (low, doc) in _STREAMS.items()),
        Definition(
            name="share.auto.offset.reset",
            kind=Kind.STRING,
            default="latest",
            check=_offset_reset,
            is_dynamic=True,
            doc="Start of a share partition without a start offset.",
        ),
        Definition(
            name="share.isolation.level",
            kind=Kind.STRING,
            default="read_uncommitted",
            is_dynamic=True,
            choices=("read_committed", "read_uncommitted"),
            doc="Whether records of open transactions are delivered.",
        ),
        Definition(
            name="share.renew.acknowledge.enable",
            kind=Kind.BOOLEAN,
            default=True,
            is_dynamic=True,
            doc="Whether members may renew their locks.",
        ),
        Definition(
            name="errors.deadletterqueue.topic.name",
            kind=Kind.STRING,
            default="",
            is_dynamic=True,
            doc="Topic for records that the group gave up; empty: none. Needs share.version 2.",
        ),
        Definition(
            name="errors.deadletterqueue.copy.record.enable",
            kind=Kind.BOOLEAN,
            default=False,
            is_dynamic=True,
            doc="Whether dead letters carry key and value.",
        ),
    )
)
"""All definitions by name."""
