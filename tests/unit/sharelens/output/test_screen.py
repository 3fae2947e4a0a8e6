"""Tables on a terminal, as functions: which columns fit, and what their cells become."""

import io
import subprocess
import sys

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sharelens.output import Column, Shown, by_importance, name_column, number_column
from sharelens.output.screen import LEAST_WIDTH, WIDTH_SAMPLE, cut, fit, folded, without_repeats, write_screen
from sharelens.output.terminal import text_width


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def written(rows: list[dict[str, object]], columns: tuple[Column, ...], shown: Shown | None = None) -> list[str]:
    out = io.StringIO()
    write_screen(iter(rows), columns, "no row", shown or Shown(), out)
    return out.getvalue().splitlines()


def numbers(count: int, width: int) -> tuple[Column, ...]:
    return tuple(number_column(f"C{number}".ljust(width, "X"), f"c{number}") for number in range(count))


def row_of(columns: tuple[Column, ...], value: object) -> dict[str, object]:
    return {column.fields[0]: value for column in columns}


def test_columns_that_do_not_fit_are_left_out_and_named():
    columns = numbers(10, 12)
    head, _, _, *left_out = written([row_of(columns, 1), row_of(columns, 2)], columns)
    assert head.split() == [column.heading for column in columns[:5]]
    names = ", ".join(column.heading for column in columns[5:])
    assert " ".join(left_out) == f"left out: {names}; --wide shows all columns"
    assert max(map(len, (head, *left_out))) <= 80


def test_important_columns_come_first_and_the_others_behind_them():
    columns = by_importance(numbers(3, 4), "C2XX NOT-IN-THIS-ANSWER C0XX")
    assert written([row_of(columns, 1)] * 2, columns)[0].split() == ["C2XX", "C0XX", "C1XX"]


def test_wide_shows_all_columns_in_full():
    columns = (*numbers(10, 12), name_column("NAME", "name"))
    rows = [row_of(columns, 1) | {"name": "n" * 300}] * 2
    head, first, second = written(rows, columns, Shown(wide=True))
    assert head.split() == [column.heading for column in columns]
    assert first == second
    assert first.endswith("  " + "n" * 300)


def test_columns_that_were_named_are_all_shown():
    columns = numbers(10, 12)
    head, *_ = written([row_of(columns, 1)] * 2, columns, Shown(columns=tuple(c.heading for c in columns)))
    assert head.split() == [column.heading for column in columns]


def test_a_long_name_leaves_room_for_the_figures():
    columns = (name_column("GROUP", "group"), name_column("TOPIC", "topic"), number_column("LAG", "lag"))
    head, first, _ = written([{"group": "g" * 90, "topic": "t" * 90, "lag": 12345}] * 2, columns)
    assert head.split() == ["GROUP", "TOPIC", "LAG"]
    assert text_width(first) <= 80
    assert first.endswith("  12345")
    assert "g…" in first


def test_numbers_are_never_cut_off():
    columns = (number_column("N", "n"), name_column("NAME", "name"))
    rows = [{"n": 1, "name": "x"}] * 1000 + [{"n": 123456789, "name": "y"}]
    assert written(rows, columns)[-1] == "123456789  y"


def test_a_column_with_a_short_form_gets_the_width_that_is_left():
    widths = []

    def short(row: object, width: int) -> str:
        widths.append(width)
        return "s" * min(width, 60)

    columns = (name_column("GROUP", "group"), Column(heading="RANGES", cell=lambda row: "r" * 500, short=short))
    _, first, *_ = written([{"group": "g" * 30}] * 2, columns)
    assert text_width(first) == 80
    assert min(widths) == 80 - 30 - 2


def test_one_row_is_shown_vertically_with_long_values_below_themselves():
    columns = (name_column("GROUP", "group"), Column(heading="WHY", cell=lambda row: "word " * 40))
    lines = written([{"group": "g"}], columns)
    assert lines[0] == "GROUP  g"
    assert lines[1].startswith("WHY    word word")
    assert {line[:7] for line in lines[2:]} == {" " * 7}
    assert max(map(len, lines)) <= 80


def test_one_row_is_a_table_where_it_is_to_be_wide():
    columns = (name_column("GROUP", "group"), number_column("LAG", "lag"))
    assert written([{"group": "g", "lag": 1}], columns, Shown(wide=True)) == ["GROUP  LAG", "g        1"]


def test_rows_behind_the_first_thousand_are_written_as_they_are_read():
    out, read = io.StringIO(), []
    columns = (number_column("N", "n"), name_column("NAME", "name"))

    def rows():
        for number in range(WIDTH_SAMPLE + 10):
            read.append(len(out.getvalue().splitlines()))
            yield {"n": number, "name": "x" * 100}

    write_screen(rows(), columns, "no row", Shown(), out)
    assert read[:WIDTH_SAMPLE] == [0] * WIDTH_SAMPLE
    assert read[WIDTH_SAMPLE:] == list(range(WIDTH_SAMPLE + 1, WIDTH_SAMPLE + 11))


def test_no_row_says_so():
    assert written([], numbers(2, 3)) == ["no row"]


def test_leading_names_are_left_blank_where_they_repeat_and_numbers_stay():
    columns = (
        name_column("GROUP", "group"),
        name_column("TOPIC", "topic"),
        number_column("PARTITION", "partition"),
        number_column("OFFSET", "offset"),
        name_column("CAUSE", "cause"),
    )
    lines = [
        ["g", "t", "0", "5", "c"],
        ["g", "t", "0", "5", "c"],
        ["g", "u", "0", "5", "c"],
        ["h", "u", "0", "5", "c"],
    ]
    assert [" ".join(cell or "." for cell in line) for line in without_repeats(lines, columns)] == [
        "g t 0 5 c",
        ". . . 5 c",
        ". u 0 5 c",
        "h u 0 5 c",
    ]


def test_an_unknown_value_and_the_only_cell_of_a_line_always_stand():
    columns = (name_column("A", "a"), name_column("B", "b"))
    assert list(without_repeats([["-", "b"], ["-", "b"]], columns)) == [["-", "b"], ["-", "b"]]
    assert list(without_repeats([["a"], ["a"]], columns[:1])) == [["a"], ["a"]]


@given(st.lists(st.tuples(st.booleans(), st.integers(1, 300)), min_size=1, max_size=30), st.integers(20, 300))
def test_what_fits_is_as_wide_as_the_screen_at_most(shapes: list[tuple[bool, int]], width: int):
    columns = [
        Column(heading="H" * min(5, natural), cell=str, right=right, rank=rank)
        for rank, (right, natural) in enumerate(shapes)
    ]
    fitted = fit(columns, [natural for _, natural in shapes], width)
    assert fitted.columns[0] is columns[0]
    assert len(fitted.columns) + len(fitted.left_out) == len(columns)
    total = sum(fitted.widths) + 2 * (len(fitted.widths) - 1)
    assert total <= width or len(fitted.columns) == 1
    naturals = {id(column): natural for column, (_, natural) in zip(columns, shapes, strict=True)}
    for column, room in zip(fitted.columns, fitted.widths, strict=True):
        assert room == naturals[id(column)] if column.right else room <= naturals[id(column)]
        assert room >= min(naturals[id(column)], LEAST_WIDTH)


@given(st.text(st.characters(exclude_categories=["C", "M", "Z"]), min_size=2), st.integers(2, 40))
@example("0\u1160", 2)  # Hangul's filler, which other letters take in
def test_a_cut_cell_has_the_width_at_most(text: str, width: int):
    assert text_width(cut(text, width)) <= width


def test_folded_text_loses_no_word():
    text = " ".join(f"word{number}" for number in range(60))
    lines = folded(text, 40)
    assert " ".join(lines) == text
    assert max(map(len, lines)) <= 40
    assert folded("short", 40) == ["short"]


@pytest.mark.slow
def test_a_pipe_imports_nothing_of_the_terminal():
    code = (
        "import sys; import pyarrow as pa; from sharelens.output import Answer, Shown, show\n"
        "show(Answer(table=pa.table({'a': [1, 2], 'b': ['x' * 500] * 2})), Shown())\n"
        "print([name for name in sys.modules if name.startswith('rich') or name == 'sharelens.output.screen'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
