"""The forms of an answer."""

import csv
import io
import json
import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from sharelens.output import (
    TEXT_LIMIT,
    Answer,
    Form,
    Report,
    Shown,
    Stream,
    name_cell,
    name_column,
    number_column,
    number_text,
    plain,
    rows_of,
    say,
    show,
    time_column,
)
from sharelens.output.forms import write_rows
from sharelens.output.terminal import text_width, visible

HOSTILE = "a\nb\x1b[31m\x9b\u202e</script>\\"
ROWS = [
    {"group_id": "g", "partition": 0, "log_time_ms": 1_795_238_000_123, "spans": [{"first": 1, "last": 2}]},
    {"group_id": HOSTILE, "partition": -1, "log_time_ms": None, "spans": None},
]
SCHEMA = pa.schema(
    [
        ("group_id", pa.string()),
        ("partition", pa.int32()),
        ("log_time_ms", pa.int64()),
        ("spans", pa.list_(pa.struct([("first", pa.int64()), ("last", pa.int64())]))),
    ]
)
COLUMNS = (
    name_column("GROUP", "group_id"),
    number_column("PARTITION", "partition"),
    time_column("LOG-TIME", "log_time_ms"),
)
Captured = pytest.CaptureFixture[str]


def answer(**answer_fields: object) -> Answer:
    return Answer(table=pa.Table.from_pylist(ROWS, schema=SCHEMA), columns=COLUMNS, **answer_fields)  # type: ignore[arg-type]


def written(captured: Captured, document: Answer | Report, form: Form, limit: int | None = None) -> tuple[str, str]:
    show(document, Shown(form=form, limit=limit))
    return captured.readouterr()


def test_text_is_aligned_with_unknown_as_a_dash_and_names_escaped(capsys: Captured) -> None:
    out, _ = written(capsys, answer(summary="evidence: 1"), Form.TEXT)
    head, first, second, closing = out.splitlines()
    assert head.split() == ["GROUP", "PARTITION", "LOG-TIME"]
    assert first.split() == ["g", "0", "2026-11-21T05:13:20.123Z"]
    assert second == r"a\nb\x1b[31m\x9b\u202e</script>\\          -  -"
    assert closing == "evidence: 1"


def test_json_is_one_document_and_the_rest_goes_to_stderr(capsys: Captured) -> None:
    out, err = written(capsys, answer(summary="evidence: 1", warnings=("look",)), Form.JSON)
    assert json.loads(out) == ROWS
    assert out.isascii()
    assert err.splitlines() == ["warning: look", "evidence: 1"]


@pytest.mark.parametrize("columns", [(), ("n",)])
def test_json_of_every_answer_is_one_line(capsys: Captured, columns: tuple[str, ...]) -> None:
    stream = Stream(schema=many(5).table.schema, batches=iter(many(5).table.to_batches(2)))
    for shown in (many(0), many(5), stream, Report(parts={"one": many(5), "two": many(0)})):
        show(shown, Shown(form=Form.JSON, columns=columns if not isinstance(shown, Report) else ()))
        line = capsys.readouterr().out
        assert line.count("\n") == 1
        assert line.endswith("\n")
        assert json.loads(line) is not None


def test_json_is_written_row_by_row() -> None:
    class Pieces(io.StringIO):
        longest = 0

        def write(self, text: str) -> int:
            self.longest = max(self.longest, len(text))
            return super().write(text)

    out, table = Pieces(), many(5000).table
    write_rows(rows_of(table), table.schema, Form.JSON, out)
    assert json.loads(out.getvalue()) == table.to_pylist()
    assert out.longest < 20


def test_csv_is_exact_in_a_pipe_and_escaped_on_a_terminal(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    piped, _ = written(capsys, answer(), Form.CSV)
    assert list(csv.DictReader(io.StringIO(piped)))[1]["group_id"] == HOSTILE
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    shown, _ = written(capsys, answer(), Form.CSV)
    assert visible(HOSTILE) in shown
    assert not set("\x1b\x9b\u202e") & set(shown)


def test_json_lines_yaml_and_csv_say_the_same(capsys: Captured) -> None:
    lines, _ = written(capsys, answer(), Form.JSONL)
    assert [json.loads(line) for line in lines.splitlines()] == ROWS
    document, _ = written(capsys, answer(), Form.YAML)
    assert yaml.safe_load(document) == ROWS
    table, _ = written(capsys, answer(), Form.CSV)
    first, second = csv.DictReader(io.StringIO(table))
    assert json.loads(first["spans"]) == ROWS[0]["spans"]
    assert (second["group_id"], second["partition"], second["spans"]) == (HOSTILE, "-1", "")


@pytest.mark.parametrize(
    ("form", "no_rows"), [(Form.JSON, "[]\n"), (Form.YAML, "[]\n"), (Form.JSONL, ""), (Form.TEXT, "no row\n")]
)
def test_an_empty_answer_is_still_a_document(capsys: Captured, form: Form, no_rows: str) -> None:
    empty = Answer(table=SCHEMA.empty_table(), columns=COLUMNS, none="no row")
    assert written(capsys, empty, form)[0] == no_rows


def many(rows: int) -> Answer:
    return Answer(table=pa.table({"n": list(range(rows))}))


def test_text_stops_at_a_thousand_rows_and_says_how_many_more(capsys: Captured) -> None:
    out, _ = written(capsys, many(TEXT_LIMIT + 7), Form.TEXT)
    *rows, remainder_text = out.splitlines()
    assert len(rows) == TEXT_LIMIT + 1
    assert remainder_text == "... 7 more rows; --limit 1007 shows them all"


def test_other_forms_write_all_rows_unless_told(capsys: Captured) -> None:
    out, err = written(capsys, many(TEXT_LIMIT + 7), Form.JSON)
    assert len(json.loads(out)) == TEXT_LIMIT + 7
    assert err == ""
    out, err = written(capsys, many(5), Form.JSON, limit=2)
    assert json.loads(out) == [{"n": 0}, {"n": 1}]
    assert "3 more rows" in err


def test_a_report_is_an_object_in_json_and_titled_parts_in_text(capsys: Captured) -> None:
    report = Report(parts={"state_partitions": many(2), "gaps": many(0)}, summary="closing")
    out, err = written(capsys, report, Form.JSON)
    assert json.loads(out) == {"state_partitions": [{"n": 0}, {"n": 1}], "gaps": []}
    assert err == "closing\n"
    out, _ = written(capsys, report, Form.TEXT)
    assert out == "STATE PARTITIONS\nN\n0\n1\n\nGAPS\nnothing found\n\nclosing\n"
    assert yaml.safe_load(written(capsys, report, Form.YAML)[0])["gaps"] == []
    assert written(capsys, report, Form.CSV)[0] == "n\n0\n1\n"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (float("nan"), None),
        (1.5, 1.5),
        (Decimal("12"), 12),
        (Decimal("1.50"), "1.50"),
        (b"\x00\xff", "00ff"),
        (datetime(2026, 11, 21, tzinfo=UTC), "2026-11-21T00:00:00Z"),
        (date(2026, 11, 21), "2026-11-21"),
        (timedelta(seconds=2), 2000.0),
        ([(b"\x01",)], [["01"]]),
    ],
)
def test_values_that_json_lacks_become_ones_that_it_has(value: object, expected: object) -> None:
    assert plain(value) == expected


def test_columns_of_other_types_are_made_plain(capsys: Captured) -> None:
    table = pa.table({"at": pa.array([0], pa.timestamp("us", "UTC")), "raw": [b"\x01"], "nan": [float("nan")]})
    out, _ = written(capsys, Answer(table=table), Form.JSON)
    assert json.loads(out) == [{"at": "1970-01-01T00:00:00Z", "raw": "01", "nan": None}]
    out, _ = written(capsys, Answer(table=table), Form.TEXT)
    assert out.splitlines()[1].split() == ["1970-01-01T00:00:00Z", "01", "-"]


@given(st.text())
def test_nothing_that_moves_a_cursor_is_written(text: str) -> None:
    assert visible(text).isprintable()
    assert name_cell(text).isprintable()


@given(st.text(), st.text())
def test_two_names_never_look_the_same(name: str, other_name: str) -> None:
    assert (name_cell(name) == name_cell(other_name)) == (name == other_name)


@pytest.mark.parametrize(("name", "cell"), [("", '""'), ("-", '"-"'), ("a b", '"a b"'), (None, "-"), ('a"', '"a\\""')])
def test_a_name_that_would_blur_is_quoted(name: str | None, cell: str) -> None:
    assert name_cell(name) == cell


def test_an_unknown_number_is_a_dash_and_zero_is_zero() -> None:
    assert [number_text(value) for value in (None, -1, 0, 7)] == ["-", "-", "0", "7"]


def test_wide_and_combining_letters_are_measured_as_a_terminal_shows_them() -> None:
    assert [text_width(text) for text in ("ab", "注文", "e\u0301")] == [2, 4, 1]


def test_lines_on_stderr_are_escaped_too(capsys: Captured) -> None:
    say("group a\x1b[2Jb\nc")
    assert capsys.readouterr().err == "group a\\x1b[2Jb\\nc\n"
