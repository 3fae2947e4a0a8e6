"""Writes the catalogue into docs/reference/measures.md: python -m tools.write_measures_reference [--check]."""

from collections.abc import Sequence
from pathlib import Path

from sharelens.measures.catalog import MEASURES, Definition, Measure
from sharelens.measures.figures import FIGURES
from tools.written_pages import write_or_check

TARGET = Path(__file__).parent.parent / "docs" / "reference" / "measures.md"
BEGIN = "<!-- written by `python -m tools.write_measures_reference` from `sharelens/measures/catalog.py` -->"
END = "<!-- end of what is written -->"
HEAD = """## The catalogue

Each number has one definition, which tables, commands, SQL, DataFrames, pages and metrics share: under the same name
stands the same figure everywhere. What counts something else has another name and says so (*of records settled since*,
*of the last hour*, *without a record*). The columns of a measure are those of its [table](tables.md), or of the rows of
its [command](commands.md).

| figure | counts | unit | of | shown by |
|---|---|---|---|---|
"""
MEASURES_HEAD = """
| measure | a row is | its numbers count | from | kept in | an increment replaces |
|---|---|---|---|---|---|
"""


def catalogue() -> str:
    """The written part of the page, without its marks."""
    figures = "\n".join(
        f"| `{name}` | {figure.population} | {figure.unit} | `{figure.measure}` | {', '.join(figure.shown)} |"
        for name, figure in FIGURES.items()
    )
    rows = "\n".join(_row(name, measure) for name, measure in MEASURES.items())
    return f"{HEAD}{figures}\n{MEASURES_HEAD}{rows}\n"


def _row(name: str, measure: Definition) -> str:
    table, rule = "-", "-"
    if isinstance(measure, Measure):
        table, rule = f"[`{measure.table}`](tables.md)", measure.rule.name.lower()
    inputs = ", ".join(f"`{name_of_input}`" for name_of_input in measure.inputs)
    return f"| `{name}` | {measure.description} | {measure.population} | {inputs} | {table} | {rule} |"


def page(text: str) -> str:
    """The page, whatever is written between the marks of `text`."""
    before, _, rest = text.partition(BEGIN)
    return f"{before}{BEGIN}\n{catalogue()}{END}{rest.partition(END)[2]}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the page, or with --check says whether it is as it should be."""
    return write_or_check({TARGET: page(TARGET.read_text(encoding="utf-8"))}, arguments)


if __name__ == "__main__":
    raise SystemExit(main())
