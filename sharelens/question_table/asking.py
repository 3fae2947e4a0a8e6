"""Ask a question of the table: values of its parameters become arguments of its function."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from inspect import signature
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from sharelens.output import Answer, FindingCounts, Report, Stream
from sharelens.question_table.question import Command, Parameter, Question, Value
from sharelens.question_table.references import load
from sharelens.question_table.rules import has_value
from sharelens.source.request import Source

if TYPE_CHECKING:
    from sharelens.tables.port import Tables

SETTINGS, EVIDENCE = "settings", "evidence"


@dataclass(frozen=True, slots=True, kw_only=True)
class Surface:
    """What a surface shows of an answer: at most so many rows (None: all), as text for people or as data."""

    row_limit: int | None = None
    is_text: bool = False


def arguments(
    command: Command, values: Mapping[str, Any], composed: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """The arguments that values become, by name; `values`: those of all parameters, by their keys.

    What nobody typed and has no default is left out, so that a function's default counts. `composed`: arguments that
    are made of their parts already.

    Raises:
        UsageError: values break a rule, or can't be read.
    """
    typed = {
        parameter.key: values[parameter.key]
        for parameter in command.parameters
        if not parameter.part_of and not parameter.effect and values[parameter.key] not in (None, ())
    }
    early_values = compose(command.parameters, values, composed, is_after_rules=False)
    command.check(values)
    return {**typed, **early_values, **compose(command.parameters, values, early_values, is_after_rules=True)}


@contextmanager
def ask(
    question: Question, values: Mapping[str, Any], named_arguments: Mapping[str, Any], surface: Surface
) -> Iterator[Answer | Report | Stream]:
    """The answer of a question; a stream can be read in the block. `named_arguments`: the `arguments` of the values.

    Raises:
        SharelensError: the evidence can't be read, or has no answer.
    """
    function = function_of(question, values)
    names = signature(function).parameters.keys()
    offered = {**named_arguments, **question.fixed, "row_limit": surface.row_limit, "is_text": surface.is_text}
    with _opened(question, named_arguments["source"]) if names & {EVIDENCE, SETTINGS} else nullcontext() as evidence:
        if evidence is not None:
            offered |= {EVIDENCE: evidence, SETTINGS: evidence.settings.groups}
        yield function(**{name: offered[name] for name in names if name in offered})


def function_of(question: Question, values: Mapping[str, Any]) -> Callable[..., Answer | Report | Stream]:
    """The function that answers: that of the first variant whose parameter has a value, else the question's own."""
    variants = (function for key, function in question.variants.items() if has_value(values[key]))
    function: Callable[..., Answer | Report | Stream] = load(next(variants, question.function))
    return function


def findings(question: Question, answer: Answer | Report | Stream, fail_on: object) -> FindingCounts:
    """What --fail-on counts in an answer; `fail_on`: its value."""
    if not question.count_findings:
        assert isinstance(answer, Answer)
        return FindingCounts(count=answer.row_count)
    count = load(question.count_findings)
    counts = count(answer) if fail_on is True else count(answer, fail_on)
    return counts if isinstance(counts, FindingCounts) else FindingCounts(count=counts)


def _opened(question: Question, source: Source) -> "Tables":
    evidence: Tables = load("sharelens.tables.opening:open_evidence")(
        replace(source, **dict[str, Any](question.reads.value))
    )
    return evidence


def compose(
    parameters: Iterable[Parameter],
    values: Mapping[str, Any],
    composed: Mapping[str, Any] = MappingProxyType({}),
    *,
    is_after_rules: bool,
) -> dict[str, Any]:
    """The arguments that are made of parts, by name: those before or after the rules are checked, and `composed`."""
    parts: dict[Value, dict[str, Any]] = {}
    for parameter in parameters:
        for value in parameter.part_of:
            if value.is_after_rules is is_after_rules and value.argument not in composed:
                parts.setdefault(value, {})[parameter.key] = values[parameter.key]
    return {**composed, **{value.argument: load(value.make)(**parts_of) for value, parts_of in parts.items()}}
