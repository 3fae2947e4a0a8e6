"""The state and the configuration of a consumer group that its records do not have."""

import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, NamedTuple

from state_model.consumer.targets import Assignor

METADATA_REFRESH_INTERVAL_MS: Final = 2_147_483_647


def regex_error(regex: str) -> str | None:
    """Why Python does not compile a regular expression; None: it does. Kafka compiles with RE2/J, which knows less."""
    try:
        re.compile(regex)
    except re.error as error:
        return error.msg
    return None


class MigrationPolicy(Enum):
    """`group.consumer.migration.policy`: which groups change their protocol while they have members."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"
    """Classic members can't join a consumer group that has members either."""

    @property
    def may_upgrade(self) -> bool:
        """Whether a classic group may become a consumer group."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE)

    @property
    def may_downgrade(self) -> bool:
        """Whether a consumer group whose members are all classic ones may become a classic group."""
        return self in (MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE)


class Settings(NamedTuple):
    """The effective configuration of a group, under the names of Kafka's group configurations.

    Attributes:
        assignors: `group.consumer.assignors` by their names; the first is the default.
        classic_max_size: `group.max.size`, for the classic group that a consumer group becomes.
        regex_error: why a regular expression is invalid; None: it is valid.
    """

    assignors: Mapping[str, Assignor]
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    max_size: int = 2_147_483_647
    classic_max_size: int = 2_147_483_647
    migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL
    regex_error: Callable[[str], str | None] = regex_error


class SoftState(NamedTuple):
    """The state of a group that no record has; a restart begins with an empty one.

    Attributes:
        refresh_deadline_ms: the first heartbeat from then on computes the metadata hash again. 0: the next one, after
            a subscribed topic was created, changed or deleted.
    """

    refresh_deadline_ms: int = 0


def refreshed(now_ms: int) -> SoftState:
    """The state after the metadata hash was computed."""
    return SoftState(refresh_deadline_ms=now_ms + METADATA_REFRESH_INTERVAL_MS)
