"""Gives rows of gold.poison_record the causes of their dead letters, which may come in later runs than the rows.

The measure stage writes rows with the causes that state log, headers and settings imply; the reconciliation knows the
dead letters. Only rows that a dead letter changes are replaced: others, most of them final, stay in their files.

    row of an earlier run     5-9 unknown                a dead letter of 7 comes
    replaced by               5-6 unknown · 7 rejected by dead_letter · 8-9 unknown
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jobs import books
from jobs.measure.files import MeasureFiles, is_final
from jobs.measure.inputs import LakeInputs
from sharelens.lake.lake import Lake
from sharelens.lake.parquet import DataFile
from sharelens.lake.tables import TABLES
from sharelens.measures.catalog import OF_TABLE
from sharelens.measures.dlq.causes import LIFE, with_letter_causes

TABLE, STAGE = "gold.poison_record", "letter-causes"
ROW_KEY = ["cluster_id", *LIFE, "first_offset"]
VALUES = [*ROW_KEY, "last_offset", "cause", "cause_source"]
"""The columns in which a row differs from the one that it replaces."""
REPLACED = pa.schema([TABLES[TABLE].schema.field(name) for name in ROW_KEY])


def given_up(inputs: LakeInputs) -> pa.Table:
    """The rows of the table of a task's share partitions, with all its columns."""
    schema = pa.schema([field for field in TABLES[TABLE].schema if field.name != "is_final"])
    parts = []
    for final in (False, True):
        rows = inputs.lake.rows(TABLE, schema.names, coded=False, final=final).cast(schema)
        parts.append(rows.append_column("is_final", pa.repeat(final, rows.num_rows)))
    return pa.concat_tables(parts)


def write_causes(
    files: MeasureFiles, rows: pa.Table, stated_rows: pa.Table, reconciled: pa.Table, run: int
) -> pa.Table:
    """Writes the rows that dead letters change; returns the REPLACED rows.

    `rows`: of the table; `stated_rows`: the same without causes from dead letters; `reconciled`: DLQ_RECONCILIATION
    rows of them.
    """
    caused_rows = with_letter_causes(stated_rows, reconciled)
    new, old = _apart(caused_rows, rows), _apart(rows, caused_rows)
    runs = pa.repeat(pa.scalar(run, pa.int64()), new.num_rows)
    new = new.set_column(new.schema.get_field_index("run_id"), "run_id", runs)
    for is_final_row, write in ((False, files.write), (True, files.write_final)):
        write(new.filter(pc.field("is_final") == is_final_row).drop_columns(["is_final"]))
    return old.select(ROW_KEY).cast(REPLACED)


def commit_causes(lake: Lake, run: int, adds: Sequence[DataFile], replaced: pa.Table) -> None:
    """Commits the new rows in place of the replaced ones; without any, that the lake has causes, once."""
    kept_files, removes = _without(lake, replaced)
    if not adds and not removes and has_causes(lake):
        return
    books.commit(lake, TABLE, STAGE, run, [*adds, *kept_files], removes)


def has_causes(lake: Lake) -> bool:
    """Whether a run has given the rows the causes of dead letters; older versions did not."""
    return lake.transaction(TABLE, STAGE) is not None


def _apart(rows: pa.Table, other_rows: pa.Table) -> pa.Table:
    """The rows whose VALUES no other row has, in their order."""
    numbers = pa.array(np.arange(rows.num_rows))
    numbered = _comparable(rows).append_column("row", numbers)
    alone = numbered.join(_comparable(other_rows), VALUES, join_type="left anti", use_threads=False)
    return rows.take(alone.column("row").combine_chunks().sort())


def _comparable(rows: pa.Table) -> pa.Table:
    """VALUES of the rows, without nulls, which no join finds equal."""
    columns = {}
    for name in VALUES:
        column = rows.column(name)
        columns[name] = pc.fill_null(column, "" if pa.types.is_string(column.type) else -1)
    return pa.table(columns)


def _without(lake: Lake, replaced: pa.Table) -> tuple[list[DataFile], list[str]]:
    """New files with the rows that stay of the files that hold replaced rows, and the paths of these files."""
    if replaced.num_rows == 0:
        return [], []
    condition = pc.field("group_id").isin(pc.unique(replaced.column("group_id")))
    schema = pa.schema([field for field in TABLES[TABLE].schema if field.name != "is_final"])
    removes: list[str] = []
    with MeasureFiles(lake, OF_TABLE[TABLE]) as files:
        for fragment in lake.snapshot(TABLE).dataset().get_fragments(filter=condition):
            keys = fragment.to_table(schema=schema, columns=ROW_KEY)
            keys = keys.append_column("row", pa.array(np.arange(keys.num_rows)))
            replaced_at = (
                keys.join(replaced, ROW_KEY, join_type="left semi", use_threads=False).column("row").to_numpy()
            )
            if not len(replaced_at):
                continue
            removes.append(fragment.path)
            is_kept = np.ones(keys.num_rows, np.bool_)
            is_kept[replaced_at] = False
            if is_kept.any():
                kept_rows = fragment.to_table(schema=schema).filter(pa.array(is_kept))
                (files.write_final if is_final(fragment.path) else files.write)(kept_rows)
    return list(files.files), removes
