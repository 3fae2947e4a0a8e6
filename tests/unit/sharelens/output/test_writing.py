"""Where the lines of an answer go: the document to stdout, remarks about it to stderr."""

import io
import json
import sys

import pyarrow as pa
import pytest

from sharelens.output import Answer, Form, Report, Shown, show


@pytest.mark.parametrize("form", [Form.JSON, Form.TEXT])
def test_a_document_is_the_last_line_where_both_streams_are_one(form: Form, monkeypatch: pytest.MonkeyPatch) -> None:
    merged = io.StringIO()
    monkeypatch.setattr(sys, "stdout", merged)
    monkeypatch.setattr(sys, "stderr", merged)
    rows = Answer(table=pa.table({"a": [1, 2]}), columns=(), summary="two rows", warnings=("a gap",), none="none")
    for answer in (rows, Report(parts={"rows": rows}, headline="all is well", summary="two rows", warnings=("a gap",))):
        show(answer, Shown(form=form, limit=1))
        last = merged.getvalue().splitlines()[-1]
        if form is Form.JSON:
            assert json.loads(last) in ([{"a": 1}], {"verdict": "all is well", "rows": [{"a": 1}]})
        else:
            assert last == "two rows"
