"""Command lines as the report writes them."""

import shlex

from sharelens.question_table.table import QUESTIONS
from sharelens.questions.answers.command_lines import command, cut_options
from sharelens.source.request import CutChoice, Source


def test_a_cut_goes_to_the_questions_that_take_it() -> None:
    cuts = {"--as-of": CutChoice(as_of_ms=0), "--at-offset": CutChoice(at_offsets={3: 7, 0: -1})}
    words = {"--as-of": ["--as-of=1970-01-01T00:00:00.000Z"], "--at-offset": ["--at-offset=0:-1", "--at-offset=3:7"]}
    for question in (each for questions in QUESTIONS.values() for each in questions):
        for option, cut in cuts.items():
            takes_it = any(parameter.option == option for parameter in question.parameters)
            assert cut_options(question.name, cut) == (words[option] if takes_it else []), question.name
    assert cut_options("state", CutChoice()) == []


def test_a_command_line_says_where_the_evidence_lies() -> None:
    source = Source(log_dirs=("/one", "-two"), cluster_id="c", include_uncommitted=True)
    words = shlex.split(command(source, "dlq plan", ["--out=x.json"]))
    expected = "sharelens dlq plan --log-dir /one --log-dir=-two --cluster-id=c --include-uncommitted --out=x.json"
    assert words == expected.split()


def test_an_archive_has_the_name_that_the_user_gave() -> None:
    inside = ("archive://s3://b/copies/log.tar!/one", "archive://s3://b/copies/log.tar!/two")
    source = Source(log_dirs=inside, named_dirs=("s3://b/copies",))
    assert shlex.split(command(source, "lag", [])) == ["sharelens", "lag", "--log-dir", "s3://b/copies"]
    assert "log.tar!/two" in command(Source(log_dirs=inside), "lag", [])
