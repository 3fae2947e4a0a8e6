"""What the audit finds of damages of a state log that are planted into legal histories.

No damage (`state_log_damages`, by name in `operators`) knows a rule. `judge` says which damaged logs are illegal.
`python -m tests.audit.mutations` writes the table of detection, docs/reference/audit-detection.md.
"""

import functools
import random
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from sharelens.evidence.decoding import decode_rows
from sharelens.kafka_log.layout import scan_log_directory
from sharelens.kafka_log.schemas import LOG_RECORD
from sharelens.tables.logs.state import StateLog, state_logs
from state_model.audit.columnar.explained import with_causes
from state_model.audit.columnar.findings import findings
from state_model.audit.columnar.partition import PartitionAudit
from state_model.audit.table import RULES, is_tested
from tests.audit.between_detection import section as pairs_of_logs
from tests.audit.between_mutations import section as between_logs
from tests.audit.histories import LIMIT, Entry, History
from tests.audit.judge import LARGEST_LIMIT, illegal_offsets
from tests.audit.model_group_detection import of_consumers, of_streams
from tests.audit.operators import OPERATORS, Operator
from tests.audit.rule_cases.case_tables import section as rule_by_rule
from tests.audit.rule_cases.cause_cases import section as causes
from tests.audit.script import LOG_ROW
from tests.audit.state_log_damages import OPERATIONS, Log
from tests.datasets import dataset
from tests.once import computed_once

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "audit-detection.md"
VERSION = "4.4"
SEEDS = range(10)
RECORDED = ("v44", "dlq")
HEAD = """# Detection by the audit

Written by `python -m tests.audit.mutations`. Each damage is planted into legal histories of a share coordinator of
Kafka 4.4: simulated ones and state partitions of recorded brokers. A judge, which asks the coordinator's write side for
each record, says which of the damaged logs are illegal. A log counts as detected if the audit names an expected rule at
a record that the judge calls illegal. A legal log must have no error: some damages leave a log that a coordinator could
have written, and no audit can see them. *By counter*: logs that are illegal by the coordinator's update counter alone,
which can't be tested without the limit (rule 13). *One cause*: detected logs whose errors the audit traces back to one
of them (`cause_inferred`). The rules are the most frequent ones of severity error or warning.

| damage | illegal logs | detected | one cause | by counter | legal logs | rules | not seen, because |
|---|---|---|---|---|---|---|---|"""


@dataclass(kw_only=True)
class Detection:
    """What became of the damaged logs of an operator; `mistakes`: lines about misses and false alarms.

    `by_counter`: logs that are illegal by the coordinator's update counter alone, whose limit the log does not have.
    """

    legal: int = 0
    by_counter: int = 0
    illegal: int = 0
    detected: int = 0
    one_cause: int = 0
    rules: Counter[str] = field(default_factory=Counter)
    mistakes: list[str] = field(default_factory=list)


def log_records(entries: Log) -> pa.RecordBatch:
    """LOG_RECORD rows of a log, as the reader gives them."""
    rows = [
        {**LOG_ROW, "offset": entry.log_offset, "base_offset": entry.log_offset, "timestamp_ms": entry.timestamp_ms,
         "key": entry.key, "value": entry.value}
        for entry in entries
    ]  # fmt: skip
    return pa.RecordBatch.from_pylist(rows, schema=LOG_RECORD)


@functools.cache
def severities(version: str | None) -> dict[int, str]:
    """By the id of a rule that a state log alone can break its severity."""
    rules = [rule for rule in RULES if is_tested(rule, version, frozenset())]
    return {rule.id: severity for rule in rules if (severity := rule.severity_for(version))}


def audited(entries: Log, *, version: str | None = VERSION) -> list[dict[str, Any]]:
    """The findings (errors and warnings) of a log from offset 0 on."""
    rows = log_records(entries)
    audit = PartitionAudit(0, first_offset=0, log_start_offset=0, has_newest=True)
    times = rows.column("timestamp_ms").to_numpy()
    decoded = decode_rows(pa.Table.from_batches([rows]), times)
    audit.take(rows, times, decoded.records, decoded.problems)
    audit.close()
    listed = findings([audit], severities(version))
    return [row for row in with_causes(listed).to_pylist() if row["severity"] != "info"]


@functools.cache
def histories() -> tuple[tuple[Log, int], ...]:
    """Legal logs with their snapshot limits: simulated ones, and state partitions of recorded brokers of Kafka 4.4."""
    simulated = [(History(seed).run(OPERATIONS).entries, LIMIT) for seed in SEEDS]
    recorded = [
        recorded_log(log)
        for name in RECORDED
        for log in state_logs([scan_log_directory(str(dataset(name) / "logs"))], include_uncommitted=False)
    ]
    return (*simulated, *((log, LARGEST_LIMIT) for log in recorded if len(log) > 100))


def recorded_log(log: StateLog) -> Log:
    """The entries of a state log."""
    columns = ["offset", "timestamp_ms", "key", "value"]
    return [Entry(*row.values()) for chunk in log.read_raw() for row in chunk.records.select(columns).to_pylist()]


@functools.cache
def detection(operator: Operator) -> Detection:
    """Plants the damage into a history of each seed, and compares the audit with the judge."""
    return computed_once(f"detections/{operator.name}", lambda: _detection(operator))


def _detection(operator: Operator) -> Detection:
    result = Detection()
    for seed, (history, limit) in enumerate(histories()):
        try:
            log = operator.damage(history, random.Random(seed))
        except (IndexError, StopIteration):
            continue
        illegal = illegal_offsets(log, limit=None)
        rows = audited(log)
        result.rules.update({row["rule"] for row in rows})
        errors = [row["rule"] for row in rows if row["severity"] == "error"]
        if not illegal:
            is_legal = not illegal_offsets(log, limit=limit)
            result.legal += is_legal
            result.by_counter += not is_legal
            result.mistakes += [f"seed {seed}: false alarm {rule}" for rule in errors]
            continue
        result.illegal += 1
        placed = [
            row["rule"]
            for row in rows
            if row["rule"] in operator.rules
            and (row["first_log_offset"] in illegal or row["last_log_offset"] in illegal)
        ]
        if placed:
            result.detected += 1
            explained = [row["rule"] for row in rows if row["severity"] == "error" and row["cause_inferred"]]
            result.one_cause += len(errors) - len(explained) <= 1
        elif not operator.invisible:
            result.mistakes.append(f"seed {seed}: missed; illegal at {illegal[:5]}, the audit says {errors}")
    return result


def page() -> str:
    """The table of detection."""
    lines = [HEAD]
    for operator in OPERATORS:
        result = detection(operator)
        rules = ", ".join(
            f"`{rule}`" for rule in sorted(result.rules, key=lambda rule: (-result.rules[rule], rule))[:4]
        )
        why = operator.invisible if result.detected < result.illegal else "-"
        if not result.illegal:
            why = "a coordinator could have written the log"
        lines.append(
            f"| {operator.name} | {result.illegal} | {result.detected} | {result.one_cause} | {result.by_counter} "
            f"| {result.legal} | {rules or '-'} | {why} |"
        )
    return "\n".join(
        [*lines, "", between_logs(), pairs_of_logs(), causes(), rule_by_rule(), of_streams(), of_consumers()]
    )


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
