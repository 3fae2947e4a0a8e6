"""One expectation, without importing the library: a table, a level, and the arguments of a Great Expectation."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow.compute as pc

BLOCKING, WARNING = "blocking", "warning"
NOT_NULL, BETWEEN = "ExpectColumnValuesToNotBeNull", "ExpectColumnValuesToBeBetween"
IN_SET, CONTAIN_SET = "ExpectColumnValuesToBeInSet", "ExpectColumnDistinctValuesToContainSet"
UNIQUE, MAX_BETWEEN = "ExpectColumnValuesToBeUnique", "ExpectColumnMaxToBeBetween"
NOT_BELOW = "ExpectColumnPairValuesAToBeGreaterThanB"
"""The classes of Great Expectations that rules are."""
LEVELS = (BLOCKING, WARNING)
SHAPE, NULLABILITY, KEYS, RANGES = "shape", "nullability", "keys", "ranges"
REFERENCES, STAGE, FRESHNESS, VOLUME, AUDIT = "references", "stage", "freshness", "volume", "audit"
EVIDENCE = "evidence"
KINDS = {
    SHAPE: "the columns, their types and their nullability are those that this version of sharelens writes",
    NULLABILITY: "a column that is declared not null has no null",
    KEYS: "a key occurs once",
    RANGES: "values are in range and agree with each other",
    REFERENCES: "the row that another row refers to exists",
    STAGE: "the stage of the table has read the newest version of the stage before it",
    FRESHNESS: "the evidence is recent",
    VOLUME: "a run brings about as many rows as the runs before it",
    AUDIT: "no finding of the audit stands that is not suppressed",
    EVIDENCE: "what other logs list is in the evidence, and can be read",
}
ROWS, FACTS = "rows", "facts"
"""Views of a table: each has a suite."""
SKIPPABLE = (FRESHNESS, VOLUME)
"""Kinds that mean nothing for an old copy of a log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """Rows of a table, by `columns`, that must have their like in `parent`, by `parent_columns`.

    `ordered`: a pair of columns in which offsets run, so that only the part of the parent in reach is read.
    `covers`: instead of the last pair being equal, the parent's (first, end) columns enclose the last of `columns`.
    `or_later`: a column of both in which the parent may have a larger value.
    """

    parent: str
    columns: tuple[str, ...]
    parent_columns: tuple[str, ...]
    ordered: bool = False
    covers: tuple[str, str] | None = None
    or_later: str | None = None
    only: pc.Expression | None = None
    parent_only: pc.Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One expectation of a table.

    `expectation`: class of Great Expectations, with `arguments`. It looks at the slice's rows, or at the facts
    (`about_facts`: what was counted over the slice and its surroundings, see `jobs.quality.facts`). `computed`: the
    column is made for the rule from others of the row.
    """

    table: str
    name: str
    kind: str
    level: str
    expectation: str
    arguments: Mapping[str, Any]
    meaning: str
    about_facts: bool = False
    computed: pc.Expression | None = None
    reference: Reference | None = None
    needs: tuple[str, ...] = field(default=())

    @property
    def column(self) -> str:
        """The column it is about; several are joined by a comma."""
        arguments = self.arguments
        return str(arguments.get("column") or f"{arguments['column_A']},{arguments['column_B']}")


def suite_name(table: str, view: str) -> str:
    """`<layer>.<table>.<view>`."""
    return f"{table}.{view}"
