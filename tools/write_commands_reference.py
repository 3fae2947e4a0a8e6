"""Writes the commands into docs/reference/commands.md: python -m tools.write_commands_reference [--check]."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click
import pyarrow as pa

from sharelens.cli.app import cli, headings
from sharelens.output.layouts import Layout
from sharelens.question_table.question import Question
from sharelens.question_table.references import load
from sharelens.question_table.table import QUESTIONS
from sharelens.questions.queries.definitions import spark_type
from state_model.columnar.schemas import comment, is_moment
from tools.written_pages import write_or_check

TARGET = Path(__file__).parent.parent / "docs" / "reference" / "commands.md"
HEAD = """# Commands

<!-- written by `python -m tools.write_commands_reference` from the table of questions and the commands -->

Every command with its options, and the rows of each question's answer. What answers share — the moment, completeness,
text on a terminal — is in [answers](answers.md). Exit codes: 0 answered, 1 failure, 2 usage, 3 findings (with
`--fail-on`), 130 interrupted; [more](answers.md#exit-codes).

A field is in every format under its name; its column in text has the heading. A field without a heading has no column
in text; `--columns` shows it.

## Options of many commands

"""
OPTION_HEAD = "| option | value | default | meaning |\n|---|---|---|---|\n"
FIELD_HEAD = "| field | heading | type | unit | meaning |\n|---|---|---|---|---|\n"
SHARED_BY = 8
"""An option of at least so many commands is described once."""
BY_NAME: Mapping[str, Question] = {question.name: question for group in QUESTIONS.values() for question in group}
UNITS = (("_bytes", "bytes"), ("bytes", "bytes"), ("_epoch", "epoch"), ("_per_minute", "1/min"), ("_per_second", "1/s"))
OFFSETS = re.compile(r"(.*_)?offset(_exclusive|_before|_after|_inferred)?")


def page() -> str:
    """The page."""
    commands = {heading: [(name, cli.commands[name]) for name in names] for heading, names in headings().items()}
    pairs = [pair for of_heading in commands.values() for name, command in of_heading for pair in _below(name, command)]
    counts = Counter(_option_row(option) for _, command in pairs for option in _options(command))
    shared = [row for row, count in counts.items() if count >= SHARED_BY]
    parts = [HEAD, OPTION_HEAD, *shared]
    for title, of_heading in commands.items():
        parts.append(f"\n## {title}\n")
        for name, command in of_heading:
            for command_name, each in _below(name, command):
                parts += _command(command_name, each, shared)
    return "".join(parts)


def _below(name: str, command: click.Command) -> Iterator[tuple[str, click.Command]]:
    """A command and those below it, by their words."""
    yield name, command
    if isinstance(command, click.Group):
        for word, subcommand in command.commands.items():
            yield from _below(f"{name} {word}", subcommand)


def _command(name: str, command: click.Command, shared: Sequence[str]) -> Iterator[str]:
    yield f"\n### {name}\n\n{_paragraphs(command.help or '')}\n"
    examples = [line.strip() for line in (command.epilog or "").splitlines() if line.startswith("  ")]
    if examples:
        yield "\n```shell\n" + "\n".join(examples) + "\n```\n"
    rows = {_option_row(option): option for option in _options(command)}
    if common := [option.opts[0] for row, option in rows.items() if row in shared]:
        yield f"\nOptions of many commands: {', '.join(f'`{option}`' for option in common)}.\n"
    if own_rows := [row for row in rows if row not in shared]:
        yield "\n" + OPTION_HEAD + "".join(own_rows)
    if name in BY_NAME:
        yield from _answers(BY_NAME[name])


def _paragraphs(text: str) -> str:
    """The text of a help page, a paragraph a line."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _options(command: click.Command) -> list[click.Parameter]:
    return [each for each in command.params if not getattr(each, "hidden", False)]


def _option_row(option: click.Parameter) -> str:
    context = click.Context(click.Command("sharelens"))
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    is_flag = getattr(option, "is_flag", False)
    value = "" if is_flag or isinstance(option, click.Argument) else f"`{option.make_metavar(context)}`"
    default = "required" if option.required else _default(option)
    words = " ".join((getattr(option, "help", None) or "").split())
    words, has_default, named = words.partition(" [default: ")
    shown = named.removesuffix("]") if has_default else default
    return f"| {names} | {_cell(value)} | {_cell(shown)} | {_cell(words)} |\n"


def _default(option: click.Parameter) -> str:
    """The default that help pages show; of two options for yes and no the second one's."""
    shown = getattr(option, "show_default", None)
    if option.secondary_opts and option.default is False:
        return f"`{option.secondary_opts[0]}`"
    return shown if isinstance(shown, str) else str(option.default) if shown else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _answers(question: Question) -> Iterator[str]:
    """The rows of a question's answers; fields that two layouts share are described once."""
    if question.findings:
        yield f"\nWith `--fail-on` it exits with 3 when there are findings: {question.findings}.\n"
    schemas: list[pa.Schema] = []
    for title, reference in question.rows.items():
        layout: Layout = load(reference)
        yield f"\n#### Rows{f' ({title})' if title else ''} of {question.name}\n\n"
        if layout.varies:
            yield f"Depends on the request or the rows: {layout.varies}.\n\n"
        if layout.schema in schemas:
            columns = ", ".join(f"`{column.heading}`" for column in layout.columns())
            yield f"The fields of the rows above; columns of the text: {columns}.\n"
        else:
            yield FIELD_HEAD + "".join(_field_row(layout, field) for field in layout.schema)
        schemas.append(layout.schema)


def _field_row(layout: Layout, field: pa.Field) -> str:
    titles = [column.heading for column in layout.columns() if field.name in column.fields]
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    named = ", ".join(f"`{title}`" for title in titles)
    return f"| `{field.name}` | {named} | {spark_type(kind)} | {unit_of(field.name)} | {_cell(comment(field))} |\n"


def unit_of(name: str) -> str:
    """The unit of a field by its name; empty: a number of what its meaning says, or no number."""
    if name.endswith("_ms"):
        return "epoch ms" if is_moment(name) else "ms"
    if OFFSETS.fullmatch(name):
        return "offset"
    return next((unit for ending, unit in UNITS if name.endswith(ending)), "")


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes the page, or with --check says whether it is as it should be."""
    return write_or_check({TARGET: page()}, arguments)


if __name__ == "__main__":
    raise SystemExit(main())
