"""Writes docs/reference/quality.md and the gates' runbooks: python -m tools.write_quality_reference.

With --check it writes nothing and says by its exit code whether the pages are as they should be.
"""

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from jobs.quality.rule import BLOCKING, KINDS, LEVELS, SKIPPABLE, Rule
from jobs.quality.suites import rules_of
from sharelens.configuration.limits import Limits
from sharelens.lake.tables import TABLES
from tools.written_pages import write_or_check

DOCS = Path(__file__).parent.parent / "docs"
REFERENCE = DOCS / "reference" / "quality.md"
RUNBOOKS = DOCS / "runbooks" / "gates"
WRITTEN = "python -m tools.write_quality_reference"
THEN = "once it exits with 0, `sharelens publish --lake DIR`."
LIMITS = Limits(stale_ms=48 * 3_600_000, audit_blocks="warning")
HEAD = f"""# Quality gates

Written by `{WRITTEN}` from `jobs/quality/`. What `sharelens check` expects of every table; how to use it:
[gate your data](../how-to/gate-your-data.md). A suite and a checkpoint of Great Expectations has the name
`<layer>.<table>.rows` or `….facts` (its shape, what was counted); an expectation's severity is its level. A blocking
expectation that is not met closes the gate of its table, and nothing is published. Results: `gold.quality_result`
([columns](tables.md)).

| kind | what it holds | left out by |
|---|---|---|
"""
INTRODUCTIONS: dict[str, dict[str, str]] = yaml.safe_load(
    (Path(__file__).parent / "gate_runbooks.yaml").read_text(encoding="utf-8")
)
"""For each kind with blocking expectations: meaning, causes, remedies."""


def pages() -> dict[Path, str]:
    """Every page by its path."""
    rules = [rule for name in TABLES for rule in rules_of(name, LIMITS)]
    texts = {REFERENCE: reference(rules)}
    for kind in INTRODUCTIONS:
        blocking = [rule for rule in rules if rule.kind == kind and rule.level == BLOCKING]
        texts[RUNBOOKS / f"{kind}.md"] = runbook(kind, blocking)
    return texts


def reference(rules: Sequence[Rule]) -> str:
    """The page that lists every expectation."""
    lines = [HEAD.rstrip("\n")]
    lines += [
        f"| {kind} | {meaning} | {f'`--skip {kind}`' if kind in SKIPPABLE else '-'} |"
        for kind, meaning in KINDS.items()
    ]
    for name in TABLES:
        table_rules = [rule for rule in rules if rule.table == name]
        lines += ["", f"## {name}", "", "| expectation | level | kind | what is expected |", "|---|---|---|---|"]
        lines += [_row(rule) for level in LEVELS for rule in table_rules if rule.level == level]
    return "\n".join([*lines, ""])


def _row(rule: Rule) -> str:
    name = f"`{rule.name}`"
    if rule.level == BLOCKING:
        name = f"[{name}](../runbooks/gates/{rule.kind}.md#{rule.table.replace('.', '')})"
    return f"| {name} | {rule.level} | {rule.kind} | {rule.meaning} |"


def runbook(kind: str, rules: Sequence[Rule]) -> str:
    """The runbook of a kind: a heading a table, so that each expectation has its anchor."""
    words = INTRODUCTIONS[kind]
    lines = [
        f"# Gate closed: {kind}",
        "",
        f"Written by `{WRITTEN}`. The expectation: {KINDS[kind]}.",
        "",
        _wrapped(
            f"**What it means.** {words['means']} Questions still read the last publication; newer rows are hidden."
        ),
        "",
        _wrapped(f"**What to look at.** {words['look']} Everything the check saw:"),
        "",
        "```sh",
        'sharelens sql --lake DIR "SELECT table_name, expectation, observed, details FROM gold.quality_result',
        '  WHERE success = false ORDER BY check_id DESC, table_name LIMIT 20"',
        "```",
        "",
        _wrapped(f"**What to do.** {words['do']} Then `sharelens check --lake DIR`; {THEN}"),
    ]
    return "\n".join([*lines, *_by_table(rules), ""])


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def _by_table(rules: Sequence[Rule]) -> Iterator[str]:
    for name in dict.fromkeys(rule.table for rule in rules):
        yield from ("", f"## {name}", "")
        yield from (f"- `{rule.name}`: {rule.meaning}." for rule in rules if rule.table == name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the pages, or with --check says whether they are as they should be."""
    return write_or_check(pages(), arguments)


if __name__ == "__main__":
    raise SystemExit(main())
