"""The text form in a pipe."""

import io

from sharelens.output import Column, name_column, number_column
from sharelens.output.text import write_table, write_vertical

COLUMNS: tuple[Column, ...] = (name_column("GROUP", "group"), number_column("LAG", "lag"))
ROWS = [{"group": "g", "lag": 7}, {"group": "注文", "lag": None}]


def test_every_column_stands_in_full_whatever_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    out = io.StringIO()
    write_table(iter([{"group": "g" * 200, "lag": 1}]), COLUMNS, "none", out)
    assert out.getvalue().splitlines()[1] == "g" * 200 + "    1"


def test_vertical_text_has_a_line_a_column_for_each_row():
    out = io.StringIO()
    write_vertical(ROWS, COLUMNS, "none", out)
    assert out.getvalue() == "GROUP  g\nLAG    7\n\nGROUP  注文\nLAG    -\n"


def test_vertical_text_without_rows_says_so():
    out = io.StringIO()
    write_vertical([], COLUMNS, "no row", out)
    assert out.getvalue() == "no row\n"
