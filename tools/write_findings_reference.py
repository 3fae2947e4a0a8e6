"""Writes docs/reference/findings.md from the table of rules: python -m tools.write_findings_reference [--check]."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from sharelens.findings.finding import ERROR, FINDING, INFO, WARNING
from sharelens.findings.rule import About, Need, Rule
from sharelens.findings.rules import ORDER, RULES
from tools.written_pages import write_or_check

TARGET = Path(__file__).parent.parent / "docs" / "reference" / "findings.md"
HEAD = """# Findings

Written by `python -m tools.write_findings_reference` from `sharelens/findings/`. `sharelens overview`, the report and
`--fail-on` judge by these rules; the first line is their verdict.

For a subject a rule answers *found*, *clear* or *not judged*. It is not judged only where an input that decides is
absent and values that agree with the evidence give both clear and a warning or an error. Where only size, age or cause
is unknown, the text says so. Missing evidence never makes a finding about trouble.

| order | first line |
|---|---|
| errors found | `ERROR: GROUP: ...` |
| no verdict: the state log is missing, or none of it can be read | `NO VERDICT: ...; what to copy` |
| errors that can't be judged | `no error found by 11 of 12 rules; what is not judged (what settles it)` |
| warnings found, then warnings that can't be judged | `WARNING: GROUP: ...` |
| information alone | `nothing is wrong: ...` |

`overview --fail-on [error|warning|not-judged]` exits with 3 where something is found, with 4 where nothing is found and
something is not judged (`--allow-unknown`: 0). *Now* is known by `--now`, a running cluster, the times of checkpoint
files or the metadata log; a plain copy loses those times, and then durations are lower bounds.

Known findings are suppressed by kind and place, with a reason and a last day, in the setting `findings` of
[conf](../../conf/base/findings.yaml).

Never claimed: lock time-outs (their bytes are those of a release), who holds a lock, and renewals.
"""


def page() -> str:
    """The page."""
    return "\n".join([HEAD, *_fields(), *_order(), *(line for rule in RULES for line in _rule(rule)), *_needs()])


def _fields() -> Iterator[str]:
    yield "## Fields of a finding\n"
    yield "| field | meaning |"
    yield "|---|---|"
    for field in FINDING:
        yield f"| `{field.name}` | {field.metadata[b'comment'].decode()} |"
    yield ""


def _order() -> Iterator[str]:
    yield "## Order\n"
    for severity in (ERROR, WARNING, INFO):
        kinds = ", ".join(" = ".join(f"`{kind}`" for kind in row) for row in ORDER[severity])
        yield f"{severity}: {kinds}\n"
    yield "Within a kind the largest size comes first, then the oldest.\n"
    yield "## Rules\n"


def _rule(rule: Rule) -> Iterator[str]:
    about = ", about the evidence" if rule.about is About.EVIDENCE else ""
    yield f"### {rule.kind} ({rule.subject})\n"
    yield f"{', '.join(rule.severities)}{about}. {rule.when}\n"
    facts = {
        "Threshold": rule.threshold,
        "Decided by": _names(rule.decisive),
        "Sharpened by": _names(rule.refining),
    }
    yield from (f"- {name}: {text}" for name, text in facts.items() if text)
    yield ""


def _names(needs: Sequence[Need]) -> str:
    return ", ".join(need.value[0] for need in needs)


def _needs() -> Iterator[str]:
    yield "## What brings an input\n"
    yield "| input | what brings it |"
    yield "|---|---|"
    yield from (f"| {need.value[0]} | {need.remedy} |" for need in Need)
    yield ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the page; with --check only says by 1 that it is not up to date."""
    return write_or_check({TARGET: page()}, arguments)


if __name__ == "__main__":
    raise SystemExit(main())
