"""Notebooks carry no outputs, and the one about tables runs as it is."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[2] / "docs" / "notebooks"
PATIENCE_S = 300


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_outputs_are_stripped(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert code
    assert all(not cell.outputs and cell.execution_count is None for cell in code)


@pytest.mark.soak
@pytest.mark.slow
def test_tables_are_read_by_sql_pandas_and_polars(monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = nbformat.read(NOTEBOOKS / "tables.ipynb", as_version=4)
    monkeypatch.setenv("PYTHONPATH", str(NOTEBOOKS.parents[1]))
    NotebookClient(notebook, timeout=PATIENCE_S, kernel_name="python3").execute()
    assert all(cell.execution_count for cell in notebook.cells if cell.cell_type == "code")
