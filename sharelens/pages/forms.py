"""The parameters of a question as the fields of a form."""

from collections.abc import Sequence
from dataclasses import dataclass

from sharelens.pages.address import Address, by_key
from sharelens.question_table.kinds import Choice, Flag
from sharelens.question_table.question import Parameter
from sharelens.question_table.table import question_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field: a flag, a choice (with its words) or a text. `texts`: a text for each input, at least one.

    `is_several`: a choice that takes several words.
    """

    key: str
    label: str
    hint: str
    texts: Sequence[str]
    is_flag: bool = False
    choices: Sequence[str] = ()
    is_several: bool = False
    is_required: bool = False
    placeholder: str = ""


def fields(address: Address) -> list[Field]:
    """The fields of the address's question, with its texts."""
    return [_field(key, parameter, address) for key, parameter in by_key(question_of(address.question)).items()]


def _field(key: str, parameter: Parameter, address: Address) -> Field:
    texts = [text for name, text in address.options if name == key]
    shown = texts if parameter.is_repeatable else texts[-1:]
    default = "" if parameter.default is None else parameter.shown_default or str(parameter.default)
    return Field(
        key=key,
        label=parameter.option_name.replace("_", " "),
        hint=parameter.help,
        texts=[*shown, ""] if parameter.is_repeatable else shown or [""],
        is_flag=isinstance(parameter.kind, Flag),
        choices=parameter.kind.words if isinstance(parameter.kind, Choice) else (),
        is_several=parameter.is_repeatable,
        is_required=parameter.is_required,
        placeholder=default or (parameter.metavar or ""),
    )
