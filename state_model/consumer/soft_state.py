"""The state and the configuration of a consumer group that its records do not have."""

import re
from collections.abc import Callable, Mapping
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


class Settings(NamedTuple):
    """The effective configuration of a group, under the names of Kafka's group configurations.

    Attributes:
        assignors: `group.consumer.assignors` by their names; the first is the default.
        regex_error: why a regular expression is invalid; None: it is valid.
    """

    assignors: Mapping[str, Assignor]
    heartbeat_interval_ms: int = 5_000
    assignment_interval_ms: int = 1_000
    max_size: int = 2_147_483_647
    regex_error: Callable[[str], str | None] = regex_error


class SoftState(NamedTuple):
    """The state of a group that no record has; a restart begins with an empty one.

    Attributes:
        refresh_deadline_ms: the first heartbeat from then on computes the metadata hash again. 0: the next one, after
            a subscribed topic was created, changed or deleted.
    """

    refresh_deadline_ms: int = 0
