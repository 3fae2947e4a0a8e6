"""The slice of a check: rows of the runs since the last cut, at fixed versions, in bounded pieces."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from jobs import books
from jobs.quality.rule import Rule
from sharelens.lake import scan
from sharelens.lake.lake import Lake
from sharelens.lake.tables import TABLES

PIECE_ROWS = 1 << 18
"""Rows that are judged at once; more come in pieces, so that memory has a bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The lake at fixed versions, and the runs (after `after_run`, up to `run`) whose rows are judged."""

    lake: Lake
    versions: Mapping[str, int]
    after_run: int
    run: int

    def dataset(self, table: str) -> ds.Dataset:
        """A table at its version."""
        return self.lake.snapshot(table, self.versions[table]).dataset()

    @property
    def where(self) -> pc.Expression:
        """The condition on run_id."""
        return (pc.field("run_id") > self.after_run) & (pc.field("run_id") <= self.run)

    @property
    def text(self) -> str:
        """The slice for people: run_id 4..6."""
        return f"run_id {self.after_run + 1}..{self.run}"

    def rows(self, table: str) -> int:
        """How many rows of a table the slice has."""
        return int(self.dataset(table).count_rows(filter=self.where))


def unpublished(lake: Lake, *, all_rows: bool) -> Scope:
    """The newest versions; rows of the runs that the last publication lacks, or of the last run when it lacks none."""
    versions = {name: lake.version(name) for name in TABLES}
    run = max(books.done(lake, stage) for stage in books.MARKER if stage != "publish")
    before = [cut for cut in _publications(lake) if cut < run]
    return Scope(lake=lake, versions=versions, after_run=0 if all_rows else max(before, default=0), run=run)


def published(cut: scan.Cut, *, all_rows: bool) -> Scope:
    """The versions of the open cut; rows of the runs since the cut before it."""
    books_now = {name: cut.lake.version(name) for name in scan.UNLISTED}
    run = int(str(cut.publication["run_id"]))
    before = [number for number in _publications(cut.lake) if number < run]
    versions = {name: version for name, version in {**cut.versions, **books_now}.items() if version >= 0}
    return Scope(lake=cut.lake, versions=versions, after_run=0 if all_rows else max(before, default=0), run=run)


def _publications(lake: Lake) -> list[int]:
    rows = lake.snapshot(scan.PUBLICATION).dataset().to_table(columns=["run_id"])
    return list(rows.column("run_id").to_pylist())


def columns_for(table: str, rules: Sequence[Rule]) -> dict[str, pc.Expression]:
    """What the rules about rows need: columns, computed ones, and of lists and bytes only whether they are there."""
    schema = TABLES[table].schema
    columns: dict[str, pc.Expression] = {}
    for rule in rules:
        if rule.about_facts:
            continue
        if rule.computed is not None:
            columns[rule.column] = rule.computed
            continue
        for name in rule.needs or (rule.column,):
            columns[name] = pc.field(name) if _is_plain(schema.field(name).type) else _presence(name)
    return columns


def _is_plain(kind: pa.DataType) -> bool:
    return not (pa.types.is_nested(kind) or pa.types.is_binary(kind))


def _presence(name: str) -> pc.Expression:
    return pc.if_else(pc.field(name).is_valid(), pc.scalar(True), pa.scalar(None, pa.bool_()))


def pieces(rows: ds.Dataset, where: pc.Expression, table: str, rules: Sequence[Rule]) -> Iterator[pa.Table]:
    """A table's rows with the columns that the rules need, PIECE_ROWS at most in one; none without rows."""
    scanner = rows.scanner(columns=columns_for(table, rules), filter=where, batch_size=1 << 16)
    batches: list[pa.RecordBatch] = []
    count = 0
    for batch in scanner.to_batches():
        if count and count + batch.num_rows > PIECE_ROWS:
            yield pa.Table.from_batches(batches)
            batches, count = [], 0
        batches.append(batch)
        count += batch.num_rows
    if count:
        yield pa.Table.from_batches(batches)
