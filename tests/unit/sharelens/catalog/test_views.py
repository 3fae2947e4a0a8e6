"""Readers of Delta tables that know nothing of ours read every table of the cut, by protocol 1."""

from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable

import sharelens
from sharelens.catalog.views import views
from sharelens.lake.scan import open_lake
from sharelens.lake.tables import TABLES
from tests.processes.in_process import recorded_lake

pytestmark = pytest.mark.slow

READER, WRITER = 1, 2
"""Versions of the protocol, as docs/reference/delta-protocol.md says."""
PAGE = Path(__file__).parents[4] / "docs" / "reference" / "delta-protocol.md"


@pytest.fixture(scope="module")
def lake() -> Path:
    return recorded_lake("dlq")


def in_order(rows: pa.Table, key: tuple[str, ...]) -> list[dict[str, object]]:
    return rows.sort_by([(name, "ascending") for name in key]).to_pylist()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_a_reader_of_delta_tables_sees_the_rows_of_the_cut(lake: Path, library: str) -> None:
    opened, rows_read = sharelens.open(lake), 0
    for view in views(open_lake(lake)):
        if view.snapshot is None:
            continue
        path, version = view.snapshot.storage.root, view.snapshot.version
        if library == "polars":
            rows = pl.read_delta(path, version=version).to_arrow()
        else:
            frame = DeltaTable(path, version=version).to_pandas(types_mapper=pd.ArrowDtype)
            rows = pa.Table.from_pandas(frame, preserve_index=False)
        expected = opened.arrow(view.table.name)
        actual = rows.select(expected.schema.names).cast(expected.schema)
        assert in_order(actual, view.table.key) == in_order(expected, view.table.key), view.table.name
        rows_read += actual.num_rows
    assert rows_read > 1000


def test_the_protocol_and_the_properties_are_those_of_the_page(lake: Path) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert f"reader version {READER}, writer version {WRITER}" in page
    for name in TABLES:
        if not (lake / name.replace(".", "/")).is_dir():
            continue
        table = DeltaTable(lake / name.replace(".", "/"))
        protocol = table.protocol()
        assert (protocol.min_reader_version, protocol.min_writer_version) == (READER, WRITER)
        assert not protocol.reader_features
        assert not protocol.writer_features
        assert all(f"`{key}`" in page for key in table.metadata().configuration)
