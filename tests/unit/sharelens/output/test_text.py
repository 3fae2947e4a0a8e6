"""The text form in a pipe."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharelens.output import Column, name_column, number_column
from sharelens.output.cells import NAME_FIELDS, WIDEST_NAME
from sharelens.output.terminal import cut_in_the_middle, text_width, visible
from sharelens.output.text import write_table, write_vertical

COLUMNS: tuple[Column, ...] = (name_column("GROUP", "group"), number_column("LAG", "lag"))
ROWS = [{"group": "g", "lag": 7}, {"group": "注文", "lag": None}]


def test_every_column_stands_in_full_whatever_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    out = io.StringIO()
    write_table(iter([{"group": "g" * 200, "lag": 1}]), COLUMNS, "none", out)
    assert out.getvalue().splitlines()[1] == "g" * 200 + "    1"


@pytest.mark.parametrize("field", sorted(NAME_FIELDS))
def test_the_middle_of_a_long_name_is_left_out(field):
    out, name = io.StringIO(), "first" + "x" * 300 + "last"
    write_table(
        iter([{field: name, "lag": 1}, {field: "b", "lag": 2}]), [name_column("N", field), COLUMNS[1]], "none", out
    )
    head, first, second = out.getvalue().splitlines()
    assert first.startswith("firstx")
    assert first.endswith("xlast    1")
    assert "x…x" in first
    assert len(head) == len(first) == len(second) <= WIDEST_NAME + len("  LAG")
    vertical = io.StringIO()
    write_vertical([{field: name}], [name_column("N", field)], "none", vertical)
    assert name in vertical.getvalue()


@given(st.text(), st.integers(3, 40))
def test_a_text_that_is_cut_fits_and_keeps_both_ends(text, width):
    shown = visible(text).replace("…", "")
    short_text = cut_in_the_middle(shown, width)
    assert text_width(short_text) <= width
    if short_text != shown:
        beginning, _, end = short_text.partition("…")
        assert text_width(shown) > width
        assert shown.endswith(end)
        assert shown.startswith(beginning)


def test_vertical_text_has_a_line_a_column_for_each_row():
    out = io.StringIO()
    write_vertical(ROWS, COLUMNS, "none", out)
    assert out.getvalue() == "GROUP  g\nLAG    7\n\nGROUP  注文\nLAG    -\n"


def test_vertical_text_without_rows_says_so():
    out = io.StringIO()
    write_vertical([], COLUMNS, "no row", out)
    assert out.getvalue() == "no row\n"
