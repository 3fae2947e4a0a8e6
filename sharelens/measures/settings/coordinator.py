"""The share coordinator's configuration by the settings of brokers."""

from collections.abc import Iterable

from sharelens.measures.settings.observations import Observation
from sharelens.measures.settings.over_time import (
    BROKER_CONFIG,
    COLD_SNAPSHOT_INTERVAL,
    COORDINATOR_DEFAULTS,
    UPDATES_PER_SNAPSHOT,
    Setting,
)
from state_model.audit.coordinator_config import CoordinatorConfig


def coordinator_config(observations: Iterable[Observation]) -> CoordinatorConfig | None:
    """The share coordinator's configuration by the files of the brokers, from the oldest one on; None without one."""
    files = [observation for observation in observations if observation.kind == BROKER_CONFIG]
    values: dict[str, list[int]] = {name: [] for name in COORDINATOR_DEFAULTS}
    for file in files:
        written = {entry.name: entry.value for entry in file.entries}
        for name, default in COORDINATOR_DEFAULTS.items():
            number = Setting(value=written.get(name, str(default))).number
            if number is None:
                return None
            values[name].append(number)
    if not files:
        return None
    updates, from_ms = values[UPDATES_PER_SNAPSHOT], min(file.from_ms for file in files)
    return CoordinatorConfig(min(updates), max(updates), min(values[COLD_SNAPSHOT_INTERVAL]), from_ms)
