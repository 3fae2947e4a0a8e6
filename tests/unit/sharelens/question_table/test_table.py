"""The table of questions and the functions that it names fit each other."""

import inspect
import re
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Union, get_args, get_origin

import pytest

from sharelens.question_table.asking import Surface
from sharelens.question_table.question import Parameter, Question, Value
from sharelens.question_table.references import load
from sharelens.question_table.rules import OneOf
from sharelens.question_table.table import QUESTIONS

ALL_QUESTIONS = {question.name: question for questions in QUESTIONS.values() for question in questions}
OFFERED = {"evidence", "settings", *Surface.__dataclass_fields__}
"""What a function gets besides the arguments that parameters become."""
COLLECTIONS = (tuple, Sequence, Collection, Iterable)
Signature = dict[str, inspect.Parameter]


def functions(question: Question) -> list[Callable[..., Any]]:
    return [load(reference) for reference in (question.function, *question.variants.values())]


def parts(question: Question) -> dict[Value, list[Parameter]]:
    values: dict[Value, list[Parameter]] = {}
    for parameter in question.parameters:
        for value in parameter.part_of:
            values.setdefault(value, []).append(parameter)
    return values


def signature(function: Callable[..., Any]) -> Signature:
    return dict(inspect.signature(function).parameters)


def is_optional(parameter: Parameter) -> bool:
    return not parameter.is_required and parameter.default is None and parameter.kind.value is not bool


def takes(annotation: Any, parameter: Parameter, *, without_value: bool) -> bool:
    """Whether values of a parameter fit an annotation; `without_value`: None too."""
    alternatives = get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)
    if parameter.is_repeatable:
        return any(
            get_origin(each) in COLLECTIONS and get_args(each)[0] == parameter.kind.value for each in alternatives
        )
    return parameter.kind.value in alternatives and (not without_value or type(None) in alternatives)


def text_of(annotation: Any) -> str:
    """An annotation without the modules of its names; those of modules that take time to import are texts."""
    text = annotation.__qualname__ if isinstance(annotation, type) and not get_args(annotation) else str(annotation)
    return re.sub(r"\w+\.", "", text).replace("dict[", "Mapping[")


def arguments(question: Question) -> Iterator[tuple[str, Parameter | Value]]:
    """Each argument that functions can get, with what it is made of."""
    for parameter in question.parameters:
        if not parameter.part_of and not parameter.effect:
            yield parameter.key, parameter
    for value in parts(question):
        yield value.argument, value


@pytest.mark.parametrize("name", ALL_QUESTIONS)
def test_functions_get_every_argument_that_they_need(name: str) -> None:
    question = ALL_QUESTIONS[name]
    offered = dict(arguments(question))
    for function in functions(question):
        for argument in signature(function).values():
            if argument.default is not inspect.Parameter.empty:
                continue
            assert argument.name in {*offered, *OFFERED, *question.fixed}, function
            source = offered.get(argument.name)
            assert not (
                isinstance(source, Parameter) and is_optional(source) and not chosen_by(question, function, source)
            )


def chosen_by(question: Question, function: Callable[..., Any], parameter: Parameter) -> bool:
    """Whether a variant answers only where a parameter has a value."""
    reference = question.variants.get(parameter.key)
    return reference is not None and load(reference) is function


@pytest.mark.parametrize("name", ALL_QUESTIONS)
def test_every_parameter_reaches_a_function_with_its_type(name: str) -> None:
    question = ALL_QUESTIONS[name]
    signatures = [signature(function) for function in functions(question)]
    for argument, source in arguments(question):
        annotations = [each[argument].annotation for each in signatures if argument in each]
        if isinstance(source, Parameter):
            is_read_otherwise = source.is_for_surface or argument in question.variants
            assert annotations or is_read_otherwise, argument
            assert all(takes(annotation, source, without_value=False) for annotation in annotations), argument
        else:
            result = inspect.signature(load(source.make)).return_annotation
            assert annotations or argument in {"source", "shown"}, argument
            assert {text_of(annotation).removesuffix(" | None") for annotation in annotations} <= {
                text_of(result).removesuffix(" | None")
            }, argument
    for fixed in question.fixed:
        assert any(fixed in each for each in signatures)


@pytest.mark.parametrize("name", ALL_QUESTIONS)
def test_values_are_made_of_their_parts(name: str) -> None:
    for value, parameters in parts(ALL_QUESTIONS[name]).items():
        names = signature(load(value.make))
        open_names = [each for each in names.values() if each.kind is inspect.Parameter.VAR_KEYWORD]
        required = {each.name for each in names.values() if each.default is inspect.Parameter.empty}
        keys = {parameter.key for parameter in parameters}
        assert required - {each.name for each in open_names} <= keys
        for parameter in parameters:
            annotation = (open_names[0] if parameter.key not in names else names[parameter.key]).annotation
            assert takes(annotation, parameter, without_value=is_optional(parameter)), (value.make, parameter.key)


@pytest.mark.parametrize("name", ALL_QUESTIONS)
def test_rules_and_variants_are_about_parameters(name: str) -> None:
    question = ALL_QUESTIONS[name]
    keys = [parameter.key for parameter in question.parameters]
    assert len(keys) == len(set(keys))
    assert set(question.variants) <= set(keys)
    question.check(dict.fromkeys(keys, ()) | {"groups": ("g",)} | {key: None for key in keys if key.endswith("_ms")})
    for rule in question.rules:
        if isinstance(rule, OneOf):
            words = load(rule.words)
            assert rule.message.format(words="").strip()
            rule.check(name, {rule.name: words})


@pytest.mark.parametrize("name", ALL_QUESTIONS)
def test_what_fail_on_counts_is_named(name: str) -> None:
    question = ALL_QUESTIONS[name]
    assert ("fail_on" in {parameter.key for parameter in question.parameters}) == bool(question.findings)
    if question.count_findings:
        assert callable(load(question.count_findings))
