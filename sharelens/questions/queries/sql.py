"""Ad hoc SQL by DuckDB: one SELECT over the tables of the published cut, without access to files or the network."""

import re
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import chain, count
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sharelens.lake.bounded_scan import BoundedDataset
from sharelens.lake.scan import Cut
from sharelens.lake.tables import TABLES
from sharelens.lake.view_columns import NAMED_TABLES, NAMES, view_query
from sharelens.output import Stream, name_cell
from sharelens.parameters.times import DAY_MS, FIRST_MS, LAST_MS, lasted
from sharelens.tables.lakes.published import readable
from state_model.errors import SharelensError, UsageError

LAYERS = ("bronze", "silver", "gold")
ABOUT_ALL = re.compile(r"\b(show|describe|summarize|information_schema|pg_catalog|duckdb_\w+)\b", re.IGNORECASE)
AS_SPARK = "CREATE MACRO explode(items) AS unnest(items)"
"""Spark's name for it, so that one text suits both engines."""
SHOW_TABLES = re.compile(r"\s*show\s+(all\s+)?tables\s*;?\s*", re.IGNORECASE)
"""Answered from the documented names: the engines list views of their own beside them."""
UNKNOWN_TABLE = re.compile(r'Table with name "?(.*?)"? does not exist')
"""How DuckDB says so; it then suggests catalogues of its own."""
LOCKS = (
    "SET enable_external_access = false",
    "SET autoinstall_known_extensions = false",
    "SET autoload_known_extensions = false",
    "SET python_enable_replacements = false",
    "SET TimeZone = 'UTC'",
    "SET lock_configuration = true",
)
BATCH_ROWS = 1 << 12
AGAIN_S = 0.02
MEBIBYTE = 1 << 20
DAY_UNITS = {"D": 1, "s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
"""By the unit of a date or timestamp how many of it a day has."""
FIRST_DAY, LAST_DAY = (FIRST_MS // DAY_MS, LAST_MS // DAY_MS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a query: bytes of memory, and of disk for larger results; how long the engine may compute.

    The engine does not count the memory of single texts; who needs a bound of these gives the process one.
    """

    memory_bytes: int = 1 << 30
    spill_bytes: int = 10 << 30
    time_ms: int | None = None


DEFAULT_LIMITS = Limits()


@contextmanager
def sql(
    lake: Cut,
    query: str,
    parameters: Mapping[str, str | int | None] | None = None,
    *,
    row_limit: int | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Iterator[Stream]:
    """The result of a query, computed as its rows are read; `parameters` are the values of its `$name` markers.

    `row_limit`: rows that will be read at most, for the engine to stop behind one more.

    Raises:
        UsageError: not exactly one SELECT, or SQL that DuckDB refuses.
        SharelensError: the query failed while it ran.
    """
    if SHOW_TABLES.fullmatch(query):
        yield table_names()
        return
    ensure_one_select(query)
    with (
        tempfile.TemporaryDirectory(prefix="sharelens-sql-") as folder,
        _engine(limits.time_ms) as (connection, computed, opened),
    ):

        def begin() -> pa.RecordBatchReader:
            connection.execute(AS_SPARK)
            _offer_tables(connection, lake, query)
            _set_limits(connection, limits, folder)
            for lock in LOCKS:
                connection.execute(lock)
            with _plain_errors():
                relation = connection.sql(query, params=dict(parameters or {}))
                reader = (relation if row_limit is None else relation.limit(row_limit + 1)).to_arrow_reader(BATCH_ROWS)
            opened.callback(reader.close)
            return reader

        reader = computed(begin)
        yield with_distinct_names(reader.schema, _batches(reader, computed))


@contextmanager
def _engine(
    time_ms: int | None,
) -> Iterator[tuple[duckdb.DuckDBPyConnection, Callable[[Callable[[], Any]], Any], ExitStack]]:
    """A connection, what calls a function in the thread of the engine, and what is closed before the connection.

    All calls together may take `time_ms`; what the caller does between them does not count.

    While its main thread computes in C, Python hears no Ctrl-C, or C code drops it. At the end the engine is
    interrupted until it has stopped: it forgets what came before a query began, and waits for threads of its own.
    """
    opened = ExitStack()
    with ThreadPoolExecutor(1) as thread:
        thread.submit(int)  # the thread starts before the engine has a call that Ctrl-C could leave behind
        connection = thread.submit(duckdb.connect, ":memory:").result()
        try:
            yield connection, _within(time_ms, thread), opened
        finally:
            closed = thread.submit(opened.close)
            while wait([closed], AGAIN_S).not_done:
                connection.interrupt()
            thread.submit(connection.close)


def _within(time_ms: int | None, thread: ThreadPoolExecutor) -> Callable[[Callable[[], Any]], Any]:
    """What calls a function in a thread, and raises SharelensError once its calls took longer than that."""
    left_s = None if time_ms is None else time_ms / 1000

    def computed(call: Callable[[], Any]) -> Any:
        nonlocal left_s
        begun = time.monotonic()
        try:
            return thread.submit(call).result(left_s)
        except TimeoutError:
            raise SharelensError(
                f"sql: the query took longer than {lasted(time_ms)}; narrow it, or raise --timeout"
            ) from None
        finally:
            left_s = None if left_s is None else max(0.0, left_s - (time.monotonic() - begun))

    return computed


def with_distinct_names(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Stream:
    """The rows of a query under the names that DuckDB gives to the columns of a subquery: `a`, `a_1` for a, a.

    A row of JSON has a name once, so that two columns of one name would be one value.
    """
    names: list[str] = []
    used: set[str] = set()
    for name in schema.names:
        numbered = (f"{name}_{number}" for number in count(1))
        names.append(next(label for label in chain([name], numbered) if label.lower() not in used))
        used.add(names[-1].lower())
    fields = [field.with_name(name) for field, name in zip(schema, names, strict=True)]
    renamed = (_of_calendar(batch.rename_columns(names)) for batch in batches)
    return Stream(schema=pa.schema(fields), batches=renamed, none="no rows")


def _of_calendar(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch; SharelensError where a date or a timestamp is outside the years that the output can write."""
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if _is_beyond(column):
            raise SharelensError(
                f"sql: column {name_cell(name)} has a date outside the years 1 to 9999; CAST it AS VARCHAR to see it"
            )
    return batch


def _is_beyond(column: pa.Array) -> bool:
    """Whether a date or timestamp in a column, or nested in it, is outside the years 1 to 9999."""
    kind = column.type
    if pa.types.is_struct(kind):
        return any(_is_beyond(column.field(number)) for number in range(kind.num_fields))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _is_beyond(column.flatten())
    if pa.types.is_map(kind):
        return _is_beyond(column.keys) or _is_beyond(column.items)
    if not pa.types.is_date(kind) and not pa.types.is_timestamp(kind):
        return False
    per_day = DAY_UNITS[kind.unit if pa.types.is_timestamp(kind) else "ms" if pa.types.is_date64(kind) else "D"]
    span = pc.min_max(column.cast(pa.int32() if pa.types.is_date32(kind) else pa.int64()))
    first, last = span["min"].as_py(), span["max"].as_py()
    return first is not None and not (FIRST_DAY * per_day <= first and last < (LAST_DAY + 1) * per_day)


def table_names() -> Stream:
    """The answer to SHOW TABLES: every table by the name that a query takes."""
    names = pa.table({"name": list(TABLES), "comment": [table.comment for table in TABLES.values()]})
    return Stream(schema=names.schema, batches=iter(names.to_batches()), none="no tables")


def _batches(reader: pa.RecordBatchReader, computed: Callable[[Callable[[], Any]], Any]) -> Iterator[pa.RecordBatch]:
    def read() -> pa.RecordBatch | None:
        return next(reader, None)

    while True:
        with _plain_errors():
            batch = computed(read)
        if batch is None:
            return
        yield batch


def _set_limits(connection: duckdb.DuckDBPyConnection, limits: Limits, folder: str) -> None:
    connection.execute(f"SET memory_limit = '{max(1, limits.memory_bytes // MEBIBYTE)}MiB'")
    connection.execute(f"SET max_temp_directory_size = '{limits.spill_bytes // MEBIBYTE}MiB'")
    connection.execute("SET temp_directory = '{}'".format(folder.replace("'", "''")))


@contextmanager
def _plain_errors() -> Iterator[None]:
    """Errors of the engine as our own, in one line."""
    try:
        yield
    except duckdb.CatalogException as error:
        message = _first_line(error)
        unknown = UNKNOWN_TABLE.search(message)
        raise UsageError(f"sql: {message if unknown is None else unknown_table(unknown[1])}") from error
    except (
        duckdb.ParserException,
        duckdb.BinderException,
        duckdb.PermissionException,
    ) as error:
        raise UsageError(f"sql: {_first_line(error)}") from error
    except duckdb.OutOfMemoryException as error:
        raise SharelensError(f"sql: {_first_line(error)}; narrow the query, or raise --memory and --spill") from error
    except MemoryError as error:
        raise SharelensError("sql: no memory is left; narrow the query, or raise --memory") from error
    except (duckdb.Error, pa.ArrowException) as error:
        raise SharelensError(f"sql: {_first_line(error)}") from error


def unknown_table(name: str) -> str:
    """The error about a table that a query names, with the names of tables of a lake that are like it."""
    names_of: dict[str, list[str]] = {}
    for table in TABLES:
        names_of.setdefault(table.partition(".")[2], []).append(table)
    short = name.rpartition(".")[2].lower()
    alike = [short] if short in names_of else get_close_matches(short, names_of)
    meant = ", ".join(table for each in alike for table in names_of[each])
    suggestion = f"did you mean {meant}? " if meant else ""
    return f"no table {name_cell(name)}; {suggestion}`sharelens tables --lake DIR` lists the tables"


def ensure_one_select(query: str) -> None:
    """UsageError for anything but one SELECT (WITH, VALUES, FROM-first and DESCRIBE count as one)."""
    try:
        statements = duckdb.extract_statements(query)
    except duckdb.Error as error:
        raise UsageError(f"sql: {_first_line(error)}") from error
    kinds = [statement.type.name for statement in statements]
    if kinds != ["SELECT"]:
        raise UsageError(f"sql: one SELECT is allowed, this is: {', '.join(kinds) or 'nothing'}")


def _offer_tables(connection: duckdb.DuckDBPyConnection, lake: Cut, query: str) -> None:
    """Creates views layer.table over the tables whose names occur in the query; the others are not opened."""
    for layer in LAYERS:
        connection.execute(f"CREATE SCHEMA {layer}")
    words = set(re.findall(r"\w+", query.lower()))
    about_all = ABOUT_ALL.search(query) is not None
    offered = [name for name in TABLES if about_all or name.partition(".")[2] in words]
    for name in dict.fromkeys([*offered, *([NAMES] if {*offered} & {*NAMED_TABLES} else [])]):
        rows = readable(lake, name)
        if rows is None:
            rows = TABLES[name].schema.empty_table()
        elif isinstance(rows, ds.FileSystemDataset):
            rows = BoundedDataset.of(rows)
        connection.register(_relation(name), rows)
    for name in offered:  # our own names, not the user's
        rows_of_view = view_query(TABLES[name], _relation(name), _relation(NAMES))
        connection.execute(f"CREATE VIEW {name} AS {rows_of_view}")


def _relation(name: str) -> str:
    """The name of a table's rows in the engine."""
    return "_" + name.replace(".", "_")


def _first_line(error: Exception) -> str:
    return " ".join(str(error).split("\n\n", 1)[0].split())
