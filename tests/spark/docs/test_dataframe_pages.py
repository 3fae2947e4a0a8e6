"""The how-to page of the DataFrame functions and the notebook of an incident do what they say."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import nbformat
import pytest
from nbclient import NotebookClient

from sharelens import frames
from tests.datasets import dataset

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCS = Path(__file__).parents[3] / "docs"
PAGE = DOCS / "how-to" / "use-dataframes.md"
PATIENCE_S = 300


def test_pages_name_functions_that_are_there() -> None:
    pages = [*DOCS.rglob("*.md"), *DOCS.rglob("*.ipynb")]
    names = {name for page in pages for name in re.findall(r"\bframes\.([a-z_]+)\(", page.read_text(encoding="utf-8"))}
    assert len(names) >= 10
    assert names <= set(frames.__all__)


@pytest.mark.soak
def test_the_code_of_the_page_runs(spark: "SparkSession") -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 4
    names: dict[str, Any] = {}
    for block in blocks:  # the workers of the session have a working directory of their own
        exec(compile(block.replace("./copy", str(dataset("dlq") / "logs")), str(PAGE), "exec"), names)
    assert names["spark"] is spark
    assert names["states"].count() > 0
    assert 0 < names["then"].count() <= names["states"].count()


@pytest.mark.soak
def test_the_incident_is_told_over_spark_connect(remote: str, monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = nbformat.read(DOCS / "notebooks" / "incident.ipynb", as_version=4)
    monkeypatch.setenv("SPARK_REMOTE", remote)
    monkeypatch.setenv("PYTHONPATH", str(DOCS.parent))
    NotebookClient(notebook, timeout=PATIENCE_S, kernel_name="python3").execute()
    tables = [output for cell in notebook.cells for output in cell.get("outputs", ()) if "data" in output]
    assert len(tables) >= 7
