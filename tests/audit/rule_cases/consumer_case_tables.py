"""All mutations of consumer groups by rule: logs that break it, and near ones that do not."""

from typing import Final

from tests.audit.model_group_log import GroupLog
from tests.audit.rule_cases.cases import Table
from tests.audit.rule_cases.consumer_epoch_cases import ASSIGNMENTS, EPOCHS
from tests.audit.rule_cases.consumer_order_cases import ORDER, TARGETS

CONSUMER: Final[tuple[Table[GroupLog], ...]] = (EPOCHS, ASSIGNMENTS, TARGETS, ORDER)
