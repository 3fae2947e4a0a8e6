"""The state and the configuration of a streams group that its records do not have."""

from typing import NamedTuple

from state_model.streams.topology import ConfiguredTopology


class Settings(NamedTuple):
    """The effective configuration of a group, under the names of Kafka's group configurations."""

    heartbeat_interval_ms: int = 5_000
    num_standby_replicas: int = 0
    initial_rebalance_delay_ms: int = 3_000
    assignment_interval_ms: int = 1_000
    max_size: int = 2_147_483_647


class SoftState(NamedTuple):
    """The state of a group that no record has; a restart begins with an empty one.

    Attributes:
        configured: the topology on the topics of the last heartbeat that looked at them.
        is_stale: a required topic was created, changed or deleted since.
        shutdown_member_id: the first member that requested the shutdown of the application.
        endpoint_epoch: raised when tasks of a member with an endpoint change.
        is_delayed: the timer of the initial rebalance delay runs.
    """

    configured: ConfiguredTopology | None = None
    is_stale: bool = False
    shutdown_member_id: str | None = None
    endpoint_epoch: int = 0
    is_delayed: bool = False
