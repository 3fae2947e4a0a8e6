"""The needs of audit rules that the settings of groups and brokers meet."""

from collections.abc import Mapping
from typing import Final

from sharelens.measures.settings.over_time import DELIVERY_COUNT_LIMIT, MAX_RECORD_LOCKS, GroupSettings
from state_model.audit.rule import Need

SETTING_OF_NEED: Final[Mapping[Need, str]] = {
    Need.DELIVERY_COUNT_LIMIT: DELIVERY_COUNT_LIMIT,
    Need.RECORD_LOCKS: MAX_RECORD_LOCKS,
}


def needs_met(settings: GroupSettings) -> frozenset[Need]:
    """The needs whose setting is known for some group at some time: it is its own, the broker's, or Kafka's default."""
    return frozenset(need for need, name in SETTING_OF_NEED.items() if _is_known(settings, name))


def _is_known(settings: GroupSettings, name: str) -> bool:
    return any(
        period.broker is not None or any(name in group_settings for group_settings in (period.groups or {}).values())
        for period in settings.periods()
    )
