"""Writes docs/reference/audit-rules.md from the table of rules: python -m tools.write_audit_reference [--check]."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from sharelens.measures.settings.audit_needs import SETTING_OF_NEED
from sharelens.tables.logs.between_logs import GIVEN_BY_LOGS
from state_model.audit.columnar.finding_schema import FINDING
from state_model.audit.common_causes import EVENTS, WIDE
from state_model.audit.explanation import impact_line, needs_text, severity_text
from state_model.audit.rule import Rule
from state_model.audit.table import SECTIONS, is_tested
from tools.written_pages import write_or_check

TARGET = Path(__file__).parent.parent / "docs" / "reference" / "audit-rules.md"
HEAD = """# Rules of the audit

Written by `python -m tools.write_audit_reference` from `state_model/audit/`. `sharelens audit --log-dir DIR` tests
these invariants of the share coordinator on every record of a state log, in the process, without a JVM:

```sh
sharelens audit --log-dir /var/kafka-copy --kafka-version 4.3 --fail-on error
sharelens audit --explain snapshot_epoch_skips
```

An error is what no healthy broker of the version writes. A warning is legal, but has a cause that is worth knowing.
Info is a remark (`--severity info`). Without `--kafka-version` (after an upgrade, too, as several versions wrote the
log then) a rule has the lowest severity of all versions. A finding is a rule that a share partition violates in a state
partition: how often, first and last log offset and time, the difference of the first time, and the records that prove
it (in JSON as topic, partition, offset; in text as state partition:offset, with the topic where it is another one).

Each rule has an impact: what a violation can have done to records of the user topic. `none`, `wrong_lag` (the lag that
Kafka shows), `wrong_delivery_count` (more or fewer deliveries than the limit allows), `delivered_again`, `lost` (never
processed), `delivered_again_or_lost`, `processed_twice` (by two members of a streams or consumer group), `stuck` (not
delivered until somebody acts). A finding names the record offsets as far as the rule knows them. `cause_inferred` names
what explains a finding: the rule of another one, which is then the one to report, or an event ([causes](#causes)). A
finding is `incomplete` where records are missing before it (a hole of the log, a record that can't be decoded): they
may be its cause.

Only committed records are tested. Updates without an earlier snapshot, and states behind a gap of the log up to the
next snapshot, are left out of rules that compare with a state. The audit computes the states itself, offset range by
offset range, and compares them with those of the replay (rule 46).

Rules between logs are tested where the log directories have the logs. They have no common cut, so a mismatch counts
only when it outlasts 60 s of evidence in both. Compaction of `__consumer_offsets` removes records: rules compare with
records that are there. A rule that needs log directories is not tested over a lake; the answer names what is not
tested, and what it needs.

A finding that is known is suppressed by rule and place, with a reason and a last day, in the setting `audit` of
[conf](../../conf/base/audit.yaml) or in the file of `--suppressions`. It is then neither listed nor counted; the answer
says how many are suppressed, `--show-suppressed` lists them, and a suppression whose day is over is a warning.

What the audit finds of planted damages: [detection](audit-detection.md).

## Fields of a finding
"""
CAUSES_HEAD = """## Causes

`cause_inferred` follows from the findings alone, over log directories and in a lake. In one share partition a finding
explains another if its record lies in the state with which the other one compares. A finding about a log, a group or
the number of partitions explains findings of other share partitions:

| finding | explains |
|---|---|"""
EVENTS_HEAD = """
An event has no finding of its own; several findings that agree on it show it:

| event | meaning |
|---|---|"""


def page() -> str:
    """The page."""
    return "\n".join(
        [HEAD, *_fields(), *_causes(), *(line for title, rules in SECTIONS.items() for line in _section(title, rules))]
    )


def _fields() -> Iterator[str]:
    yield "| field | meaning |"
    yield "|---|---|"
    for field in FINDING:
        yield f"| `{field.name}` | {field.metadata[b'comment'].decode()} |"
        if field.name == "group_id":
            yield "| `topic` | name of the user topic; null: unknown |"
    yield ""


def _causes() -> Iterator[str]:
    yield CAUSES_HEAD
    for code, wide in WIDE.items():
        where = " of the same group" if wide.in_group else ""
        yield f"| `{code}` | {', '.join(f'`{effect}`' for effect in sorted(wide.effects))}{where} |"
    yield EVENTS_HEAD
    yield from (f"| `{code}` | {words} |" for code, words in EVENTS.items())
    yield ""


def _section(title: str, rules: Sequence[Rule]) -> Iterator[str]:
    yield f"## {title}"
    yield ""
    for rule in rules:
        yield from _rule(rule)


def _rule(rule: Rule) -> Iterator[str]:
    mark = "" if rule.is_legal or _can_be_tested(rule) else " (not tested)"
    yield f"### {rule.code}{mark}"
    yield ""
    yield f"Rule {rule.label}: {rule.title}."
    yield ""
    yield f"- severity: {severity_text(rule)}"
    yield f"- why: {rule.why}"
    yield f"- needs: {needs_text(rule)}"
    yield f"- impact: {impact_line(rule)}"
    yield f"- what to do: {rule.remedy}"
    yield f"- source: {rule.source}"
    yield ""


def _can_be_tested(rule: Rule) -> bool:
    """Whether options of the command and log directories give all that the rule needs."""
    return any(is_tested(rule, version, SETTING_OF_NEED.keys() | GIVEN_BY_LOGS) for version in ("4.1", "4.4"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the page, or with --check says whether it is as it should be."""
    return write_or_check({TARGET: page()}, arguments)


if __name__ == "__main__":
    raise SystemExit(main())
