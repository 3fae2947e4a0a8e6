"""Settings of a simulation: sizes, limits, probabilities and intervals."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from sharelens.broker.errors import BrokerError
from sharelens.broker.features import KafkaVersion

MAX_PARTITION_LOGS: Final = 4_096


class SimulationError(BrokerError):
    """Raised when the settings of a simulation are invalid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """The behaviour of members, as probabilities from 0 to 1.

    At most one applies to the records of one partition in one fetch; else all of them are accepted.

    Attributes:
        singly: each record is acknowledged alone. mixed: one request with a type for each record.
        forgets: nothing is acknowledged, the lock times out. renews: the lock is renewed until the next poll.
        releases, rejects: of single records, the share that is released or rejected instead of accepted.
        dies, leaves: at a poll, the member dies, or leaves.
    """

    singly: float = 0.25
    mixed: float = 0.1
    forgets: float = 0.005
    renews: float = 0.01
    releases: float = 0.08
    rejects: float = 0.02
    dies: float = 0.0005
    leaves: float = 0.0005


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationSettings:
    """The settings of a simulation without its seed.

    Attributes:
        records: state records after which it ends; a few more may be written.
        members: of each group. batch_records: the largest batch of a producer.
        lock_duration_ms, delivery_count_limit: of all groups.
        has_dead_letters: share.version 2 and a topic for dead letters for each second group; needs Kafka 4.4.
        admin_interval_ms: between two operations of the admin (offsets reset or deleted, groups and topics deleted,
            partitions added); 0: no admin. restarts: of the broker, evenly spread.
        checkpoints: number of checkpoints, the end included.
        keeps_deliveries: whether the members' journal is written.
        streams_groups: applications of Kafka Streams beside the share groups, each of up to `streams_instances`.
        snapshot_update_records: updates between two snapshots of a share partition's state.
        duration_ms: virtual time after which it ends, whatever `records` says; 0: it ends by `records`.
        produced_ms: virtual time after which producers stop; 0: they go on.
        has_fixed_outcomes: the outcome of a delivery follows from the seed, the group, the offset and the delivery
            count alone, not from who got it when: simulations with different settings are then comparable.
    """

    records: int = 10_000
    groups: int = 6
    topics: int = 3
    partitions: int = 8
    members: int = 2
    state_partitions: int = 50
    batch_records: int = 80
    record_bytes: int = 24
    produce_interval_ms: int = 400
    poll_interval_ms: int = 200
    fetch_records: int = 300
    lock_duration_ms: int = 15_000
    delivery_count_limit: int = 5
    has_dead_letters: bool = False
    kafka_version: KafkaVersion = "4.3"
    admin_interval_ms: int = 20_000
    restarts: int = 0
    checkpoints: int = 10
    keeps_deliveries: bool = True
    streams_groups: int = 0
    streams_instances: int = 4
    snapshot_update_records: int = 500
    duration_ms: int = 0
    produced_ms: int = 0
    has_fixed_outcomes: bool = False
    habits: Habits = Habits()
    start_ms: int = 1_790_000_000_000

    def check(self) -> None:
        """Raise SimulationError for what can't be simulated."""
        for name in ("records", "groups", "topics", "partitions", "members", "state_partitions", "checkpoints"):
            if getattr(self, name) < 1:
                raise SimulationError(f"{name}={getattr(self, name)}: at least 1")
        logs = self.topics * self.partitions + 2 * self.state_partitions
        if logs > MAX_PARTITION_LOGS:
            raise SimulationError(f"{logs} partitions of all topics: at most {MAX_PARTITION_LOGS}")
        if self.has_dead_letters and self.kafka_version != "4.4":
            raise SimulationError("dead letters came with Kafka 4.4: ask for its rules")


PROFILES: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "steady": {},
        "single-records": {"habits": Habits(singly=0.9, mixed=0.0)},
        "slow-consumers": {"habits": Habits(forgets=0.2, renews=0.1), "lock_duration_ms": 15_000},
        "crash-loop": {"habits": Habits(dies=0.02, leaves=0.01), "restarts": 8},
        "poison": {"habits": Habits(mixed=0.5, releases=0.3, rejects=0.1), "delivery_count_limit": 3},
        "admin": {"admin_interval_ms": 2_000},
        "dead-letters": {
            "habits": Habits(mixed=0.5, releases=0.2, rejects=0.1),
            "has_dead_letters": True,
            "kafka_version": "4.4",
        },
        "streams": {
            "streams_groups": 2,
            "groups": 1,
            "restarts": 2,
            "produce_interval_ms": 5_000,
            "poll_interval_ms": 2_000,
            "batch_records": 20,
        },
        "many-groups": {"groups": 60, "members": 1, "partitions": 4},
    }
)
"""Differences from the defaults, by the name of a profile."""


def profile(name: str, **overrides: Any) -> SimulationSettings:
    """The settings of a profile, with some of them replaced."""
    return replace(SimulationSettings(), **{**PROFILES[name], **overrides})
