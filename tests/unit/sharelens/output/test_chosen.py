"""--columns: names as the table or JSON has them, in every form."""

import csv
import io
import json

import pyarrow as pa
import pytest
import yaml

from sharelens.output import Answer, Column, Form, Report, Shown, Stream, name_column, number_column, show
from sharelens.output.chosen import column_names
from state_model.errors import UsageError

TABLE = pa.table(
    {"cluster_id": ["c", "c"], "group_id": ["g", "h"], "first": [1, 5], "last": [4, 5], "state_batches": [[1], []]}
)
COLUMNS = (
    name_column("GROUP", "group_id"),
    Column(heading="RECORD-OFFSETS", cell=lambda row: f"{row['first']}-{row['last']}", fields=("first", "last")),
    number_column("FIRST", "first"),
)
ANSWER = Answer(table=TABLE, columns=COLUMNS, summary="closing")
Captured = pytest.CaptureFixture[str]


def written(captured: Captured, answer: Answer | Stream | Report, form: Form, *names: str) -> str:
    show(answer, Shown(form=form, columns=names))
    return captured.readouterr().out


def test_text_has_the_columns_in_the_order_of_the_names(capsys: Captured):
    out = written(capsys, ANSWER, Form.TEXT, "record_offsets", "Group", "CLUSTER-ID")
    assert [line.split() for line in out.splitlines()] == [
        ["RECORD-OFFSETS", "GROUP", "CLUSTER-ID"],
        ["1-4", "g", "c"],
        ["5-5", "h", "c"],
        ["closing"],
    ]


def test_a_field_name_means_its_column_in_text(capsys: Captured):
    assert written(capsys, ANSWER, Form.TEXT, "group_id").splitlines()[:2] == ["GROUP", "g"]


def test_headings_and_fields_name_the_same_in_the_forms_for_programs(capsys: Captured):
    names = ("record-offsets", "GROUP", "first")
    rows = [{"first": 1, "last": 4, "group_id": "g"}, {"first": 5, "last": 5, "group_id": "h"}]
    assert json.loads(written(capsys, ANSWER, Form.JSON, *names)) == rows
    assert [json.loads(line) for line in written(capsys, ANSWER, Form.JSONL, *names).splitlines()] == rows
    assert yaml.safe_load(written(capsys, ANSWER, Form.YAML, *names)) == rows
    head, first, _ = csv.reader(io.StringIO(written(capsys, ANSWER, Form.CSV, *names)))
    assert (head, first) == (["first", "last", "group_id"], ["1", "4", "g"])


def test_streams_have_them_too(capsys: Captured):
    def stream() -> Stream:
        return Stream(schema=TABLE.schema, batches=iter(TABLE.to_batches()), columns=COLUMNS)

    assert json.loads(written(capsys, stream(), Form.JSON, "last", "group")) == [
        {"last": 4, "group_id": "g"},
        {"last": 5, "group_id": "h"},
    ]
    assert written(capsys, stream(), Form.TEXT, "group").splitlines() == ["GROUP", "g", "h"]


def test_a_report_keeps_the_parts_that_have_one_of_the_columns(capsys: Captured):
    report = Report(parts={"groups": ANSWER, "others": Answer(table=pa.table({"n": [1], "cluster_id": ["d"]}))})
    assert json.loads(written(capsys, report, Form.JSON, "n")) == {"others": [{"n": 1}]}
    assert json.loads(written(capsys, report, Form.JSON, "cluster_id", "n"))["others"] == [{"cluster_id": "d", "n": 1}]
    assert written(capsys, report, Form.CSV, "n") == "n\n1\n"


@pytest.mark.parametrize("form", list(Form))
def test_an_unknown_name_is_refused_with_all_names(capsys: Captured, form: Form):
    with pytest.raises(UsageError) as refused:
        show(ANSWER, Shown(form=form, columns=("group", "offst")))
    assert str(refused.value) == (
        "--columns: no column 'offst'; columns: group, record_offsets, first, cluster_id, last, state_batches"
    )
    assert capsys.readouterr().out == ""


def test_each_name_of_the_list_can_be_typed(capsys: Captured):
    for name in column_names(ANSWER):
        assert written(capsys, ANSWER, Form.JSON, name)
        assert written(capsys, ANSWER, Form.TEXT, name)


def test_an_answer_without_rows_has_the_chosen_columns(capsys: Captured):
    empty = Answer(table=TABLE.schema.empty_table(), columns=COLUMNS)
    assert written(capsys, empty, Form.CSV, "last", "group") == "last,group_id\n"


def test_a_field_of_exactly_the_name_goes_before_one_that_differs_in_case(capsys: Captured):
    answer = Answer(table=pa.table({"a": [1], "A": [2]}))
    assert json.loads(written(capsys, answer, Form.JSON, "A")) == [{"A": 2}]
    assert written(capsys, answer, Form.TEXT, "A").splitlines()[1] == "2"
    assert json.loads(written(capsys, answer, Form.JSON, "a", "A")) == [{"a": 1, "A": 2}]


def test_a_heading_without_a_field_is_for_text_alone(capsys: Captured):
    answer = Answer(table=TABLE, columns=(*COLUMNS, Column(heading="AGE", cell=lambda row: "old")))
    assert written(capsys, answer, Form.TEXT, "age").splitlines() == ["AGE", "old", "old"]
    with pytest.raises(UsageError, match="--columns: age is a column of the text alone; fields: cluster_id, group_id"):
        show(answer, Shown(form=Form.JSON, columns=("age",)))
