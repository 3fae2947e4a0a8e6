"""All mutations of streams groups by rule: logs that break it, and near ones that do not."""

from typing import Final

from tests.audit.cases import Table
from tests.audit.streams_assignment_cases import ASSIGNMENTS
from tests.audit.streams_configuration_cases import CONFIGURATIONS
from tests.audit.streams_epoch_cases import EPOCHS
from tests.audit.streams_log import GroupLog
from tests.audit.streams_order_cases import ORDER
from tests.audit.streams_target_cases import TARGETS

STREAMS: Final[tuple[Table[GroupLog], ...]] = (EPOCHS, ASSIGNMENTS, TARGETS, CONFIGURATIONS, ORDER)
