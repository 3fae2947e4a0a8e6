"""A lake in Python: its tables at one published cut for Arrow, pandas, Polars, DuckDB and Spark, and named queries."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.dataset as ds

from sharelens.lake.scan import Cut, open_lake
from sharelens.lake.tables import TABLES
from state_model.errors import UsageError

if TYPE_CHECKING:
    import duckdb
    import pandas as pd
    import polars as pl
    from pyspark.sql import DataFrame, SparkSession


class OpenLake:
    """The tables of a lake at the cut that was published when it was opened: later runs change no answer.

    Times are `*_ms` (epoch milliseconds, int64) and `*_time` (timestamps in UTC), as `docs/reference/tables.md` says.
    """

    def __init__(self, lake: str | os.PathLike[str]) -> None:
        self._cut: Cut = open_lake(lake)

    @property
    def tables(self) -> list[str]:
        """The names of the tables, as `gold.lag`."""
        return list(TABLES)

    def dataset(self, table: str) -> ds.Dataset:
        """The table as an Arrow dataset: nothing is read yet, and conditions go to the files.

        Raises:
            UsageError: no such table.
        """
        from sharelens.tables.lakes.published import readable

        rows = readable(self._cut, self._name(table))
        if rows is None:
            rows = TABLES[table].schema.empty_table()
        return rows if isinstance(rows, ds.Dataset) else ds.dataset(rows)

    def arrow(self, table: str, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows in memory, in any order; `columns`: these alone.

        Raises:
            UsageError: no such table, or no such column in it.
        """
        dataset = self.dataset(table)
        for name in columns or ():
            if name not in dataset.schema.names:
                raise UsageError(f"{table} has no column {name!r}; columns: {', '.join(dataset.schema.names)}")
        return dataset.to_table(columns=None if columns is None else list(columns))

    def pandas(self, table: str, columns: Sequence[str] | None = None) -> "pd.DataFrame":
        """The rows as pandas data with Arrow's types, so that null integers stay integers; errors as in `arrow`."""
        import pandas as pd

        return self.arrow(table, columns).to_pandas(types_mapper=pd.ArrowDtype)

    def polars(self, table: str) -> "pl.LazyFrame":
        """The table as a lazy frame: conditions and columns go to the files."""
        import polars as pl

        return pl.scan_pyarrow_dataset(self.dataset(table))

    def duckdb(self, table: str, connection: "duckdb.DuckDBPyConnection | None" = None) -> "duckdb.DuckDBPyRelation":
        """The table as a relation of a connection (None: DuckDB's default one)."""
        import duckdb

        return (connection or duckdb.default_connection()).from_arrow(self.dataset(table))

    def spark(self, session: "SparkSession", table: str) -> "DataFrame":
        """The table as a DataFrame of a session with Delta, at the version of the cut.

        `sharelens.configure_spark` configures the builder of such a session.

        Raises:
            LakeError: the lake lies in an object store.
        """
        self._cut.lake.ensure_local()
        reader = session.read.format("delta")
        if self._name(table) in self._cut.versions:
            reader = reader.option("versionAsOf", self._cut.versions[table])
        return reader.load(self._cut.lake.table_storage(table).root)

    def register(self, session: "SparkSession", *, prefix: str = "") -> list[str]:
        """Registers the tables in the catalog of a session with Delta, as views at the cut; the names of the views.

        `prefix` begins the names of the schemas `bronze`, `silver` and `gold`. Views of an older cut are replaced.

        Raises:
            UsageError: a prefix that is no identifier.
            SharelensError: the catalog refuses a view, as where a table has its name.
        """
        from sharelens.catalog.registration import register

        return register(session, self._cut, prefix=prefix)

    def sql(self, query: str, **parameters: str | int | None) -> pa.Table:
        """The rows of one SELECT over the tables by DuckDB; `$name` in it stands for a parameter.

        Raises:
            UsageError: not exactly one SELECT, or SQL that DuckDB refuses.
        """
        from sharelens.questions.queries.sql import sql

        with sql(self._cut, query, parameters) as stream:
            return stream.read_all().table

    @property
    def queries(self) -> list[str]:
        """The names of the named queries; `sharelens sql --list` shows what each tells."""
        from sharelens.questions.queries.named import names

        return names()

    def query(self, name: str, **parameters: str | int) -> pa.Table:
        """The rows of a named query.

        Raises:
            UsageError: there is no such query, or it has no such parameter.
        """
        from sharelens.questions.queries.named import named_query

        chosen = named_query(name)
        return self.sql(chosen.duckdb_sql, **chosen.values([f"{word}={value}" for word, value in parameters.items()]))

    def _name(self, table: str) -> str:
        if table not in TABLES:
            raise UsageError(f"no table {table!r} in a lake; tables: {', '.join(TABLES)}")
        return table
