"""Commands from the table of questions, and its parameters as options of other commands."""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import click

from sharelens.cli.interrupts import unwinding_on_sigterm
from sharelens.cli.moments import dated, has_undated
from sharelens.cli.options import common as options
from sharelens.output import Answer, FindingCounts, Form, Report, Shown, Stream, say, show, tell
from sharelens.question_table import kinds
from sharelens.question_table.asking import Surface, arguments, ask, compose, findings
from sharelens.question_table.question import Parameter, Question
from sharelens.question_table.references import load
from sharelens.question_table.table import question_of
from sharelens.source.request import Source
from state_model.errors import UsageError

INCOMPLETE, FINDINGS, UNJUDGED = 1, 3, 4
SOURCE = "source"
SHOWN_BY: Mapping[str, str] = {"overview": "sharelens.cli.overview:show_overview"}
"""The function that shows the answer of a question in its own way; others are shown by `show_answer`."""
SUBCOMMANDS: Mapping[str, str] = {"dlq": "sharelens.cli.dlq:plan"}
"""By the name of a question the command below its own."""
Shower = Callable[[Callable[[], AbstractContextManager[Any]], Shown, Mapping[str, Any]], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry:
    """A question with the values of its parameters, and how its answer is to be shown."""

    question: Question
    values: Mapping[str, Any]
    named_arguments: Mapping[str, Any]
    shown: Shown

    def answer(self, surface: Surface) -> AbstractContextManager[Answer | Report | Stream]:
        """The answer; a stream can be read in the block. Errors as `question_table.asking.ask`."""
        return ask(self.question, self.values, self.named_arguments, surface)


def command(name: str) -> click.Command:
    """The command of the question of a name."""
    question = question_of(name)

    def answer(**values: Any) -> None:
        if not _has_subcommand(question.name):
            _answer(question, values)

    page: dict[str, Any] = {
        "params": [click.Option(names, **settings) for names, settings in map(_option, question.parameters)],
        "callback": answer,
        "help": inspect.cleandoc(question.help),
        "short_help": question.summary,
        "epilog": options.examples(*question.examples),
    }
    if question.name not in SUBCOMMANDS:
        return click.Command(question.name, **page)
    return click.Group(question.name, commands=[load(SUBCOMMANDS[question.name])], invoke_without_command=True, **page)


def parameters(*declared: Parameter) -> Callable[[options.Command], options.Command]:
    """Adds parameters to a command that is no question; its function gets the arguments that they become."""
    parts = [parameter for parameter in declared if parameter.part_of]

    def add(command: options.Command) -> options.Command:
        @functools.wraps(command)
        def gathered(*args: Any, **values: Any) -> Any:
            values, composed = _dated(parts, values)
            part_values = {parameter.key: values.pop(parameter.key) for parameter in parts}
            early_values = compose(parts, part_values, composed, is_after_rules=False)
            named_arguments = compose(parts, part_values, early_values, is_after_rules=True)
            close_with_command(named_arguments.get(SOURCE))
            return command(*args, **named_arguments, **values)

        return options.stacked(gathered, [option(parameter) for parameter in declared])

    return add


def _dated(declared: Iterable[Parameter], values: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The values with moments in the place of what has no date yet, and the source where it was composed for them."""
    if not has_undated(values):
        return values, {}
    of_source = [
        replace(parameter, part_of=tuple(value for value in parameter.part_of if value.argument == SOURCE))
        for parameter in declared
    ]
    composed = compose(of_source, values, is_after_rules=False)
    if not composed:
        return values, {}
    from sharelens.tables.ends import evidence_end

    return dated(values, evidence_end(composed[SOURCE])), composed


def option(parameter: Parameter) -> Callable[[options.Command], options.Command]:
    """A parameter as an option of a command; its value has the parameter's key."""
    names, settings = _option(parameter)
    return click.option(*names, **settings)


def close_with_command(source: Source | None) -> None:
    """Ends the connections to a cluster, and removes the copy of its logs, when the command ends."""
    if source is not None and source.live is not None:
        context = click.get_current_context()
        context.with_resource(unwinding_on_sigterm())
        context.call_on_close(source.live.close)


def fail_on_findings(counts: FindingCounts, noun: str, *, allows_unknown: bool = False) -> None:
    """Exits with code 3 where there are findings, with 4 where there is none and something is not judged."""
    if counts.count:
        say(f"sharelens: {counts.count} {noun} (--fail-on)")
        raise click.exceptions.Exit(FINDINGS)
    if counts.unjudged and not allows_unknown:
        say(f"sharelens: no {noun}, {counts.unjudged} not judged (--fail-on; --allow-unknown exits with 0)")
        raise click.exceptions.Exit(UNJUDGED)


def _has_subcommand(name: str) -> bool:
    """Whether a command below follows, before which options are a usage error."""
    context = click.get_current_context()
    subcommand = context.invoked_subcommand
    if subcommand is None:
        return False
    typed = click.core.ParameterSource.COMMANDLINE
    if any(context.get_parameter_source(key) is typed for key in context.params):
        raise UsageError(f"{name}: options follow the subcommand: sharelens {name} {subcommand} --lake ...")
    return True


def inquiry(question: Question, values: dict[str, Any]) -> Inquiry:
    """The question with the values of a command's context; what it opens closes with that context.

    Raises:
        UsageError: values break a rule.
        SharelensError: a file of settings can't be read.
    """
    values, composed = _dated(question.parameters, values)
    named_arguments = arguments(question, values, composed)
    close_with_command(named_arguments[SOURCE])
    shown: Shown = named_arguments.pop("shown")
    return Inquiry(question=question, values=values, named_arguments=named_arguments, shown=shown)


def _answer(question: Question, values: dict[str, Any]) -> None:
    asking = inquiry(question, values)
    shown, values = asking.shown, dict(asking.values)
    counts_rows = values.get("fail_on") and question.count_findings
    surface = Surface(row_limit=None if counts_rows else shown.row_limit, is_text=shown.form is Form.TEXT)
    shower: Shower = load(SHOWN_BY[question.name]) if question.name in SHOWN_BY else show_answer
    answer = shower(functools.partial(asking.answer, surface), shown, values)
    if values.get("fail_on"):
        counts = findings(question, answer, values["fail_on"])
        fail_on_findings(counts, question.findings, allows_unknown=bool(values.get("allow_unknown")))


def show_answer(
    once: Callable[[], AbstractContextManager[Answer | Report | Stream]], shown: Shown, values: Mapping[str, Any]
) -> Answer | Report | Stream:
    """Shows an answer and warns of missing evidence; with --require-complete, exits 1 when a row is not complete."""
    with once() as answer:
        show(with_what_it_lacks(answer) if isinstance(answer, Answer) else answer, shown)
    if values.get("require_complete") and isinstance(answer, Answer):
        _ensure_complete(answer)
    return answer


def _ensure_complete(answer: Answer) -> None:
    if "completeness" not in answer.table.column_names:
        return
    from sharelens.questions.answers.completeness import incomplete_rows

    counts = answer.all_rows
    incomplete = incomplete_rows(answer.table.column("completeness")) if counts is None else counts.incomplete
    if incomplete:
        say(f"sharelens: {incomplete} of {answer.row_count} rows are not complete (--require-complete)")
        raise click.exceptions.Exit(INCOMPLETE)


def with_what_it_lacks(answer: Answer) -> Answer:
    """The answer with a warning of topics without a name."""
    from sharelens.questions.answers.missing import nameless, unnamed_topics

    counts = answer.all_rows
    unnamed = unnamed_topics(answer.table) if counts is None else nameless(counts.unnamed_topics)
    return replace(answer, warnings=(*answer.warnings, *unnamed))


def _option(parameter: Parameter) -> tuple[list[str], dict[str, Any]]:
    """Names and settings of a click option."""
    names = [name for name in (parameter.option, parameter.short_option, parameter.key) if name]
    settings: dict[str, Any] = {
        "help": parameter.help,
        "metavar": parameter.metavar,
        "multiple": parameter.is_repeatable,
        "required": parameter.is_required,
        "envvar": parameter.environment or None,
    }
    if isinstance(parameter.kind, kinds.Flag):
        settings["is_flag"] = True
    else:
        settings["type"] = _type(parameter.kind)
    if parameter.bare_value:
        settings |= {"is_flag": False, "flag_value": parameter.bare_value}
    if parameter.default is not None:
        is_shown_as_is = parameter.shown_default == str(parameter.default)
        settings |= {"default": parameter.default, "show_default": is_shown_as_is or parameter.shown_default}
    if parameter.effect:
        settings |= {"is_eager": True, "expose_value": False, "callback": _effect(parameter.effect)}
    return names, settings


def _type(kind: kinds.Kind) -> click.ParamType[Any]:
    match kind:
        case kinds.Number(least=None, largest=None):
            return click.INT
        case kinds.Number():
            return click.IntRange(kind.least, kind.largest)
        case kinds.Choice():
            return click.Choice(kind.words)
        case kinds.Time():
            return options.Time(kind.rounding)
        case kinds.Duration():
            return options.Duration(kind.bare_unit, least_ms=kind.least_ms, takes_auto=kind.takes_auto)
        case kinds.Size():
            return options.Size()
        case kinds.Names():
            return options.Names()
        case kinds.Address():
            return options.Address()
        case kinds.NewPath():
            return options.NewPath()
        case _:
            return click.STRING


def _effect(reference: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def call(context: click.Context, _: click.Parameter, value: Any) -> None:
        text = None if value in (None, ()) else load(reference)(value)
        if text is not None:
            tell(text)
            context.exit()

    return call
