"""The audit: findings by rule, and the rules that the evidence does not allow."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.conditions import filter_rows
from sharelens.findings.signs import Audited
from sharelens.measures.settings.audit_needs import needs_met
from sharelens.output import UNKNOWN, Answer, Column, Report, Row, number_text
from sharelens.output.layouts import Layout
from sharelens.output.terminal import visible
from sharelens.output.wording import counted, place
from sharelens.parameters.filters import KeyFilter
from sharelens.questions.answers.checked import audited_with_coordinators
from sharelens.questions.answers.completeness import closing_line
from sharelens.questions.answers.naming import ensure_known, resolve
from sharelens.questions.answers.shape import TOPIC
from sharelens.tables.port import Tables
from sharelens.tables.where import Span, Where
from state_model.audit.columnar.finding_schema import FINDING
from state_model.audit.columnar.suppressed import sifted
from state_model.audit.common_causes import EVENTS
from state_model.audit.rule import Need, Rule
from state_model.audit.severities import ERROR, SEVERITIES, WARNING
from state_model.audit.suppression import Suppression
from state_model.audit.table import BY_CODE, BY_ID, RULES, is_tested, untested_by_need
from state_model.columnar.schemas import column
from state_model.errors import UsageError
from state_model.topics import STATE_TOPIC

UNTESTED = pa.schema(
    [
        column("needs", pa.list_(pa.string()), "evidence that is missing"),
        column("rules", pa.list_(pa.string()), "codes of the rules that need it"),
    ]
)
MEANING = "An error is what no healthy broker writes; a warning is legal, but has a cause."
CLEAR = "The coordinators wrote what they must: no error, no warning."
LISTED_FINDING = FINDING.insert(FINDING.get_field_index("topic_id"), TOPIC)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditChoice:
    """What is audited: rules (empty: all), the Kafka version (None: unknown), the least severity that is listed.

    Findings that `suppressions` cover are left out, or with `shows_suppressed` are a part of their own.
    """

    rules: tuple[Rule, ...] = ()
    version: str | None = None
    severity: str = "warning"
    suppressions: tuple[Suppression, ...] = ()
    shows_suppressed: bool = False


def audit(evidence: Tables, key_filter: KeyFilter, span: Span, choice: AuditChoice) -> Report:
    """The answer to `sharelens audit`.

    Raises:
        TooMuchError: the state log is larger than --max-bytes.
        LakeError: no run has audited the lake.
        UsageError: the evidence has none of the names, or the chosen rules are never findings.
    """
    keys = resolve(evidence, key_filter)
    source = evidence.audited(Where(span=span))
    available = source.available | needs_met(evidence.settings.groups)
    chosen = [rule for rule in RULES if not choice.rules or rule in choice.rules]
    if all(rule.is_legal for rule in chosen):
        codes = ", ".join(rule.code for rule in chosen)
        raise UsageError(f"--rule: {codes} is what healthy brokers do, and never a finding; --explain says why")
    testable = [rule for rule in chosen if source.has_state_log or not rule.needs_state_log]
    severities = {
        rule.id: rule.severity_for(choice.version) or ""
        for rule in testable
        if rule.id in source.proven or is_tested(rule, choice.version, available)
    }
    condition = keys.expression()
    counts = source.counts(severities, condition)
    if not counts:
        ensure_known(evidence, key_filter, keys)
    worse = SEVERITIES[: SEVERITIES.index(choice.severity) + 1]
    suppressible = {rule for suppression in choice.suppressions for rule in suppression.rules}
    listed = {rule for rule, severity in severities.items() if severity in worse or BY_ID[rule].code in suppressible}
    rows = filter_rows(source.rows(severities, listed), condition)
    untested = untested_by_need([rule for rule in testable if rule.id not in source.proven], choice.version, available)
    if len(testable) < len(chosen):
        untested[Need.STATE_LOG,] = [rule for rule in chosen if rule.needs_state_log and not rule.is_legal]
    names = evidence.names(rows.column("topic_id").drop_null().unique().to_pylist())
    parted = sifted(with_topics(rows, names), choice.suppressions, datetime.now(UTC).date())
    counts.subtract(parted.suppressed.column("severity").to_pylist())
    is_listed = pc.is_in(pc.field("severity"), pa.array(worse))
    shown, suppressed = parted.counting.filter(is_listed), parted.suppressed.filter(is_listed)
    parts = {"findings": Answer(table=shown, columns=LAYOUT.columns(), none=_none(worse), digest=_by_rule(shown))}
    if choice.shows_suppressed:
        parts["suppressed"] = Answer(table=suppressed, columns=SUPPRESSED_LAYOUT.columns(), none="no finding")
    parts["not_tested"] = Answer(
        table=_untested(untested), columns=UNTESTED_LAYOUT.columns(), none="no rule", is_limited=False
    )
    return Report(
        parts=parts,
        summary="\n".join(
            [
                _counts(counts, choice, len(severities), parted.suppressed.num_rows),
                *_events(shown),
                closing_line(evidence),
            ]
        ),
        warnings=(*source.warnings(chosen), *parted.warnings),
    )


def _counts(findings_of: Mapping[str, int], choice: AuditChoice, tested: int, suppressed: int) -> str:
    counts = ", ".join(f"{severity} {findings_of.get(severity, 0)}" for severity in SEVERITIES)
    version = f"Kafka {choice.version}" if choice.version else "any Kafka version (--kafka-version narrows it)"
    info_hint = (
        "; --severity info lists all" if choice.severity != SEVERITIES[-1] and findings_of.get(SEVERITIES[-1]) else ""
    )
    hidden = "" if choice.shows_suppressed else " (--show-suppressed lists them)"
    without = f"; {suppressed} suppressed{hidden}" if suppressed else ""
    return f"findings: {counts}{without}; {counted(tested, 'rule')} tested, for {version}{info_hint}"


def _events(rows: pa.Table) -> Iterator[str]:
    """A line for each event that explains some of the findings, which have no finding of it among them."""
    counts = Counter(rows.column("cause_inferred").to_pylist())
    for code, words in EVENTS.items():
        if counts[code]:
            yield f"cause {code} of {counted(counts[code], 'finding')}: {words}"


def _none(listed: Sequence[str]) -> str:
    return f"no finding of severity {' or '.join(listed)}"


def checked_audit(evidence: Tables, key_filter: KeyFilter, span: Span, choice: AuditChoice) -> Report:
    """The answer to `sharelens audit`, with what the coordinators of a running cluster say; errors as in `audit`."""
    report = audit(evidence, key_filter, span, choice)
    return audited_with_coordinators(evidence, report, resolve(evidence, key_filter))


def published_answer(audited: Audited) -> Answer:
    """The findings as rows, with their counts in words."""
    counts = Counter(audited.rows.column("severity").to_pylist())
    suppressed = f" {counted(audited.suppressed, 'finding')} suppressed." if audited.suppressed else ""
    totals = f"{counted(counts[ERROR], 'error')}, {counted(counts[WARNING], 'warning')}. {MEANING}"
    return Answer(
        table=audited.rows,
        columns=LAYOUT.columns(audited.rows.column_names),
        summary=f"{totals if counts else CLEAR}{suppressed}",
        none="no error, no warning",
    )


def findings_from(answered: Report, severity: str) -> int:
    """The number of listed findings of a severity or a worse one."""
    worse = SEVERITIES[: SEVERITIES.index(severity) + 1]
    severities = answered.parts["findings"].table.column("severity")
    return int(pc.sum(pc.is_in(severities, value_set=pa.array(worse))).as_py() or 0)


def _by_rule(rows: pa.Table) -> Answer:
    """One row a rule, in the order of the findings."""
    grouped = rows.group_by(["severity", "rule", "impact", "title"], use_threads=False).aggregate(
        [([], "count_all"), ("count", "sum")]
    )
    return Answer(table=grouped, columns=RULE_LAYOUT.columns())


def with_topics(rows: pa.Table, names: Mapping[str, str]) -> pa.Table:
    """The findings with the names of their topics (null: unknown)."""
    topics = pa.array([names.get(topic_id) for topic_id in rows.column("topic_id").to_pylist()], pa.string())
    return rows.add_column(FINDING.get_field_index("topic_id"), TOPIC, topics)


def _untested(untested: dict[tuple[Need, ...], list[Rule]]) -> pa.Table:
    rows = [
        {"needs": [need.value for need in needs], "rules": [rule.code for rule in rules]}
        for needs, rules in untested.items()
    ]
    return pa.Table.from_pylist(rows, schema=UNTESTED)


def _place_cell(row: Row) -> str:
    partition = row["partition"]
    return place(row["topic"], row["topic_id"], partition) if isinstance(partition, int) else UNKNOWN


def _offsets_cell(row: Row) -> str:
    first, last = row["first_log_offset"], row["last_log_offset"]
    return number_text(first) if first == last else f"{first}-{last}"


def _difference_cell(row: Row) -> str:
    return visible(f"{row['field']}: expected {row['expected']}, seen {row['seen']}")


def _needs_cell(row: Row) -> str:
    needs = row["needs"]
    return ", ".join(needs) if isinstance(needs, list) else UNKNOWN


def _rules_cell(row: Row) -> str:
    """Numbers, which --explain takes; the codes would fill the screen."""
    rules = row["rules"]
    return ", ".join(dict.fromkeys(BY_CODE[code].label for code in rules)) if isinstance(rules, list) else ""


def _records_cell(row: Row) -> str:
    records = row["records"]
    if not isinstance(records, list):
        return UNKNOWN
    return " ".join(map(_record_text, records))


def _record_text(record: Row) -> str:
    """`partition:offset` of a record of the state log; others with their topic."""
    at = f"{record['partition']}:{record['offset']}"
    return at if record["topic"] == STATE_TOPIC else f"{record['topic']}-{at}"


LAYOUT = Layout(
    schema=LISTED_FINDING,
    fields="severity rule group_id topic state_partition first_log_offset count first_seen_ms last_seen_ms field "
    "records impact_text cause_inferred completeness title",
    headings={"impact_text": "EFFECT", "cause_inferred": "CAUSE", "completeness": "EVIDENCE"},
    cells=(
        Column(heading="TOPIC-PARTITION", cell=_place_cell, fields=("topic", "topic_id", "partition")),
        Column(heading="LOG-OFFSETS", cell=_offsets_cell, right=True, fields=("first_log_offset", "last_log_offset")),
        Column(heading="DIFFERENCE", cell=_difference_cell, fields=("field", "expected", "seen"), folds=True),
        Column(heading="RECORDS", cell=_records_cell, fields=("records",)),
    ),
    sentences="impact_text title",
    important="SEVERITY RULE GROUP TOPIC-PARTITION DIFFERENCE EFFECT COUNT LOG-OFFSETS CAUSE STATE-PARTITION "
    "FIRST-SEEN EVIDENCE RECORDS LAST-SEEN",
)
SUPPRESSED_LAYOUT = Layout(
    schema=pa.schema(
        [
            *LISTED_FINDING,
            column("until", pa.string(), "last day of the suppression"),
            column("reason", pa.string(), "reason of the suppression"),
        ]
    ),
    fields="rule group_id topic state_partition count until reason",
    cells=LAYOUT.cells,
    sentences="reason",
)
RULE_LAYOUT = Layout(
    schema=pa.schema(
        [
            *(LISTED_FINDING.field(name) for name in ("severity", "rule", "impact", "title")),
            column("count_all", pa.int64(), "findings of the rule"),
            column("count_sum", pa.int64(), "records that violate the rule"),
        ]
    ),
    fields="severity rule impact count_all count_sum title",
    headings={"count_all": "FINDINGS", "count_sum": "RECORDS"},
    sentences="title",
    important="SEVERITY RULE IMPACT FINDINGS RECORDS TITLE",
)
UNTESTED_LAYOUT = Layout(
    schema=UNTESTED,
    fields="rules needs",
    cells=(
        Column(heading="RULES", cell=_rules_cell, fields=("rules",), folds=True),
        Column(heading="NEEDS", cell=_needs_cell, fields=("needs",), folds=True),
    ),
)
