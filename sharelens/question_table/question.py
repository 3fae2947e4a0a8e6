"""A question and its parameters as values."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from enum import Enum
from typing import Any

from sharelens.question_table.kinds import Flag, Kind, Text
from sharelens.question_table.rules import Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """An argument of a function that is made of the values of one or more parameters.

    `make`: the function that gets these values by the names of the parameters, as MODULE:NAME. `is_after_rules`: it is
    made once the rules are checked, because it reads a file or has rules of its own.
    """

    argument: str
    make: str
    is_after_rules: bool = False


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a command.

    `option`: its name on a command line. `name`: the argument that it becomes, or its name for the values that it is
    `part_of`; empty: the option with underscores. `default`: the text or value without one typed; `shown_default`: the
    words for it in help pages. Without a default a value is None, of repeatable parameters an empty tuple.
    `is_for_surface`: functions don't get it. `effect`: a function that gets the value before other parameters are read,
    as MODULE:NAME; a text that it returns is the whole answer. `environment`: the variable that has the default.
    `bare_value`: the value of the option without one; empty: it needs a value.
    """

    option: str
    _: KW_ONLY
    help: str
    kind: Kind = field(default_factory=Text)
    metavar: str | None = None
    name: str = ""
    short_option: str = ""
    default: str | int | None = None
    shown_default: str = ""
    is_repeatable: bool = False
    is_required: bool = False
    part_of: tuple[Value, ...] = ()
    is_for_surface: bool = False
    effect: str = ""
    environment: str = ""
    bare_value: str = ""

    @property
    def key(self) -> str:
        """The name of its value."""
        return self.name or self.option_name

    @property
    def option_name(self) -> str:
        """The option without its dashes, with underscores: its name in an address."""
        return self.option.lstrip("-").replace("-", "_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command and its function (MODULE:NAME), which gets the arguments that parameters become.

    `summary`: the line in lists of commands. `help`: the text of its page.
    """

    name: str
    summary: str
    help: str
    examples: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    function: str
    rules: tuple[Rule, ...] = ()

    def check(self, values: Mapping[str, Any]) -> None:
        """Raises UsageError where values of the parameters, by their keys, break a rule."""
        for rule in self.rules:
            rule.check(self.name, values)


class Reads(Enum):
    """The logs that log directories must have for a question, as fields of `Source`."""

    STATE_LOG = (("needs_state_log", True),)
    STATE_LOG_OR_GROUP_LOG = (("takes_group_log", True),)
    ANY_LOG = (("needs_state_log", False),)
    LOGS_OF_SEVERAL_CLUSTERS = (("needs_state_log", False), ("sets_clusters_apart", True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Question(Command):
    """A command whose function gives an answer, and asks no more of a surface than to show it.

    The function gets those arguments that its signature names: what parameters become, `evidence` (opened by `reads`),
    `source`, `settings` (of groups), and `row_limit` and `is_text` of the surface. `variants`: by the key of a
    parameter the function that answers where it has a value. `rows`: the layouts of the answers' rows (MODULE:NAME), by
    what makes them differ from those of the plain question (empty), or by the part of a report. `fixed`: further
    arguments. `findings`: the noun of what --fail-on counts; `count_findings`: a function of the answer, and of the
    value of --fail-on if it takes one (empty: the rows count).
    """

    rows: Mapping[str, str]
    variants: Mapping[str, str] = field(default_factory=dict)
    reads: Reads = Reads.STATE_LOG
    fixed: Mapping[str, object] = field(default_factory=dict)
    findings: str = ""
    count_findings: str = ""


def flag(option: str, help_text: str, name: str = "") -> Parameter:
    """A parameter that is set or not."""
    return Parameter(option, help=help_text, kind=Flag(), name=name)


def parts(value: Value, *parameters: Parameter) -> tuple[Parameter, ...]:
    """The parameters as parts of a value too, but for those with an effect, which have none."""
    return tuple(
        parameter if parameter.effect else replace(parameter, part_of=(*parameter.part_of, value))
        for parameter in parameters
    )
