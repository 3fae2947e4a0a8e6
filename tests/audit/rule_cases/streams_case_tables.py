"""All mutations of streams groups by rule: logs that break it, and near ones that do not."""

from typing import Final

from tests.audit.model_group_log import GroupLog
from tests.audit.rule_cases.cases import Table
from tests.audit.rule_cases.streams_assignment_cases import ASSIGNMENTS
from tests.audit.rule_cases.streams_configuration_cases import CONFIGURATIONS
from tests.audit.rule_cases.streams_epoch_cases import EPOCHS
from tests.audit.rule_cases.streams_order_cases import ORDER
from tests.audit.rule_cases.streams_target_cases import TARGETS

STREAMS: Final[tuple[Table[GroupLog], ...]] = (EPOCHS, ASSIGNMENTS, TARGETS, CONFIGURATIONS, ORDER)
