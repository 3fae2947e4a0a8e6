"""The audit as a DataFrame names each rule of a state log as that of one process does: each case is a partition."""

from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from sharelens import frames
from sharelens.frames.envelopes import LOG_START
from sharelens.frames.shapes import spark_schema
from sharelens.kafka_log.schemas import LOG_RECORD
from sharelens.measures.settings.observations import settings_of
from state_model.audit.columnar.findings import findings, misplacements
from state_model.audit.table import RULES
from tests.audit.rule_cases.case_tables import OF_STATE_LOG
from tests.audit.rule_cases.cases import cases_of
from tests.audit.script import log_rows, partition_audit
from tests.settings_in_files import group_configs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
LIMIT = 5
SORTED = {"log_offset_goes_back"}
"""Rules that no DataFrame breaks: its records come in the order of their offsets."""
ELSEWHERE = {"replay_disagrees", "archiving_before_4_4"}
COLUMNS = ("rule", "state_partition", "group_id", "partition", "first_log_offset", "last_log_offset", "count", "field",
    "at", "expected", "seen")  # fmt: skip


@pytest.mark.soak
def test_every_rule_of_a_state_log(spark: "SparkSession") -> None:
    cases = [case for case in cases_of(*OF_STATE_LOG) if case.rule not in SORTED]
    scripts = [case.make().limited(LIMIT) for case in cases]
    audits = [partition_audit(script, number) for number, script in enumerate(scripts)]
    misplacements(audits, (None, None))
    severities = {rule.id: rule.severity for rule in RULES if rule.severity and not rule.is_legal}
    expected = rows_of(findings(audits, severities))
    rows = [
        {**row, "partition": number, "topic_id": TOPIC_ID}
        for number, script in enumerate(scripts)
        for row in log_rows(script)
    ]
    starts = [
        {"log_topic_id": TOPIC_ID, "state_partition": number, "log_start_offset": script.log_start_offset}
        for number, script in enumerate(scripts)
    ]
    log_records = spark.createDataFrame(pa.Table.from_pylist(rows, LOG_RECORD).to_pylist(), spark_schema(LOG_RECORD))
    log_starts = spark.createDataFrame(starts, spark_schema(LOG_START))
    computed = frames.audit_findings(
        log_records, log_starts=log_starts, settings=settings_of((group_configs(g=LIMIT, h=LIMIT),)).groups
    )
    assert rows_of(computed.toArrow()) == expected
    broken = {case.rule for case in cases} - ELSEWHERE
    assert broken <= {row[0] for row in expected}


def rows_of(table: pa.Table) -> Counter[tuple[Any, ...]]:
    """The findings, each as a tuple."""
    names = [name for name in COLUMNS if name in table.column_names]
    return Counter(tuple(row[name] for name in names) for row in table.to_pylist())
