"""The job `check`: every table's suites over a slice, results into gold.quality_result, gates closed or opened."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from jobs import books
from jobs.errors import JobError
from jobs.progress import Progress
from jobs.quality import results
from jobs.quality.checkpoints import Judge, Verdict
from jobs.quality.facts import Facts, counting, facts_of
from jobs.quality.rule import BLOCKING, FACTS, LEVELS, ROWS, SHAPE, Rule
from jobs.quality.slices import Scope, pieces, published, unpublished
from jobs.quality.suites import rules_of
from jobs.writing import writing
from sharelens.configuration.limits import DEFAULT_LIMITS, Limits
from sharelens.lake import scan
from sharelens.lake.commit import create_tables
from sharelens.lake.gates import Gate, closed
from sharelens.lake.lake import Lake
from sharelens.lake.tables import TABLES


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOptions:
    """What to check.

    `published`: the open cut, not what comes after it; `all_rows`: all rows, not only the newest runs'; `skip`: kinds
    that are left out; `now_ms`: the moment for freshness (None: the wall clock).
    """

    lake: Lake
    published: bool = False
    all_rows: bool = False
    levels: tuple[str, ...] = LEVELS
    tables: tuple[str, ...] = tuple(TABLES)
    skip: tuple[str, ...] = ()
    data_docs: Path | None = None
    limits: Limits = DEFAULT_LIMITS
    now_ms: int | None = None
    lock_timeout_s: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """A check: its number, its newest run, its slice, its results, and the gates that are now closed."""

    check_id: int
    run_id: int
    slice: str
    results: pa.Table
    closed: tuple[Gate, ...] = field(default=())

    @property
    def failed(self) -> tuple[str, ...]:
        """Tables of this check with a blocking expectation that was not met."""
        rows = self.results.to_pylist()
        return tuple(sorted({r["table_name"] for r in rows if r["level"] == BLOCKING and r["success"] is False}))


def check(options: CheckOptions, progress: Progress | None = None) -> Checked:
    """Checks a lake under its lock.

    Raises:
        LakeError: no lake there, or nothing published although the published cut is to be checked.
        LakeLockedError: a run holds it.
        JobError: Great Expectations is not installed, or there is nothing to check yet.
    """
    scan.ensure_lake(options.lake)
    with writing(options.lake, options.lock_timeout_s):
        return check_held(options, progress or Progress())


def check_held(options: CheckOptions, progress: Progress) -> Checked:
    """Checks a lake whose lock the caller holds."""
    scope = scope_of(options)
    judge = Judge(options.data_docs)
    check_id = results.next_check(options.lake)
    stamp = {
        "check_id": check_id,
        "run_id": scope.run,
        "cluster_id": results.cluster_of(options.lake),
        "slice": scope.text,
        "checked_ms": books.now_ms(),
    }
    now_ms = options.now_ms if options.now_ms is not None else books.now_ms()
    rows: list[dict[str, Any]] = []
    with counting() as connection:
        for number, table in enumerate(options.tables, 1):
            if table in scope.versions:
                rules = [rule for rule in rules_of(table, options.limits) if rule.level in options.levels]
                judged = [rule for rule in rules if rule.kind not in options.skip]
                verdicts = _judged(
                    judge,
                    scope,
                    table,
                    judged,
                    facts_of(scope, table, judged, now_ms, connection, options.limits.suppressions),
                )
                verdicts += [_unjudged(rule, "skipped") for rule in rules if rule.kind in options.skip]
                about = {"table_name": table, "version": scope.versions[table], "slice_rows": scope.rows(table)}
                rows += [{**stamp, **about, **_row(verdict)} for verdict in verdicts]
            progress.at("check", number, len(options.tables))
    judge.publish_docs()
    result_rows = results.table_of(rows)
    results.commit(options.lake, check_id, result_rows)
    return Checked(
        check_id=check_id, run_id=scope.run, slice=scope.text, results=result_rows, closed=closed(options.lake)
    )


def scope_of(options: CheckOptions) -> Scope:
    """The scope of a check: the options applied to the newest versions of the lake.

    Raises:
        JobError: no run has written anything yet.
    """
    if options.published:
        return published(scan.open_lake(options.lake), all_rows=options.all_rows)
    create_tables(options.lake)
    scope = unpublished(options.lake, all_rows=options.all_rows)
    if scope.run == 0:
        raise JobError(f"nothing to check in {options.lake}: no run has written to it; start with `sharelens run`")
    return scope


def _judged(judge: Judge, scope: Scope, table: str, rules: Sequence[Rule], facts: Facts) -> list[Verdict]:
    """The results of the rules. For a table with another shape, only the shape is checked."""
    about_facts = [rule for rule in rules if rule.about_facts and (facts.shape_is_known or rule.kind == SHAPE)]
    verdicts = judge.judge(FACTS, about_facts, [facts.table()])
    for verdict in verdicts:
        verdict.details = verdict.details or facts.details.get(verdict.rule.column, "")
    if not facts.shape_is_known:
        unsaid = [rule for rule in rules if rule.kind != SHAPE]
        return verdicts + [_unjudged(rule, "not judged: the table has another shape") for rule in unsaid]
    about_rows = [rule for rule in rules if not rule.about_facts]
    if about_rows:
        verdicts += judge.judge(ROWS, about_rows, pieces(scope.dataset(table), scope.where, table, about_rows))
    return verdicts


def _unjudged(rule: Rule, why: str) -> Verdict:
    return Verdict(rule=rule, success=None, details=why)


def _row(verdict: Verdict) -> dict[str, Any]:
    rule = verdict.rule
    return {
        "level": rule.level,
        "kind": rule.kind,
        "expectation": rule.name,
        "expectation_type": rule.expectation,
        "column_name": rule.column,
        "success": verdict.success,
        "unexpected_count": verdict.unexpected,
        "observed": verdict.observed,
        "details": verdict.details,
    }


__all__ = ["CheckOptions", "Checked", "check", "check_held"]
