"""The profiles as data: records, members and faults of a workload."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Kind(StrEnum):
    """How members acknowledge a record; its value carries the kind."""

    ORDINARY = "ordinary"
    """Accepted."""
    FLAKY = "flaky"
    """Released at its first delivery, then accepted."""
    POISON = "poison"
    """Released at every delivery, until the delivery count limit."""
    REJECTED = "rejected"
    """Rejected."""
    SLOW = "slow"
    """At its first delivery the whole batch is acknowledged after its locks have timed out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """`shares`: fractions of the kinds other than ordinary. `group_config`: beside limit, locks and heartbeats."""

    name: str
    doc: str
    shares: Mapping[Kind, float] = field(default_factory=dict)
    partitions: int = 4
    groups: int = 1
    members: int = 2
    crashing_members: int = 0
    resets: int = 0
    is_transactional: bool = False
    sends_dead_letters: bool = False
    delivery_count_limit: int = 5
    group_config: Mapping[str, str] = field(default_factory=dict)


_ALL: Final = (
    Profile(name="steady", doc="two members accept what comes", shares={Kind.FLAKY: 0.02}),
    Profile(
        name="poison",
        doc="records that no delivery gets done",
        shares={Kind.POISON: 0.03, Kind.REJECTED: 0.02, Kind.FLAKY: 0.05},
        delivery_count_limit=3,
    ),
    Profile(
        name="slow-consumer",
        doc="members that hold records for longer than their locks",
        shares={Kind.SLOW: 0.01},
    ),
    Profile(
        name="crash-loop",
        doc="member processes that are killed again and again",
        shares={Kind.FLAKY: 0.02},
        members=1,
        crashing_members=2,
        delivery_count_limit=10,
    ),
    Profile(
        name="offset-resets",
        doc="start offsets that an admin moves between rounds",
        shares={Kind.FLAKY: 0.05, Kind.REJECTED: 0.02},
        partitions=2,
        resets=2,
    ),
    Profile(
        name="dead-letters",
        doc="rejected and poisonous records go to a dead-letter topic (share.version 2)",
        shares={Kind.POISON: 0.03, Kind.REJECTED: 0.03},
        sends_dead_letters=True,
        delivery_count_limit=2,
    ),
    Profile(
        name="transactions",
        doc="a transactional producer that aborts every fourth time; the group reads committed records",
        shares={Kind.FLAKY: 0.02},
        is_transactional=True,
        group_config={"share.isolation.level": "read_committed"},
    ),
    Profile(
        name="many-groups",
        doc="many groups of one member each on the same topic",
        shares={Kind.FLAKY: 0.02, Kind.REJECTED: 0.01},
        partitions=2,
        groups=8,
        members=1,
    ),
)

STREAMS: Final = Profile(
    name="streams",
    doc="an application of Kafka Streams: instances come, go, are killed and bounced; then another topology",
)
"""The profile of sharelens.workloads.streams, without share groups."""

CONSUMER: Final = Profile(
    name="consumer",
    doc="a classic group becomes a consumer group: members come, go, are killed, bounced; one has a regular expression",
)
"""The profile of sharelens.workloads.consumers, without share groups."""

PROFILES: Final[Mapping[str, Profile]] = MappingProxyType({profile.name: profile for profile in _ALL})
