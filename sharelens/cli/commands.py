"""The commands by heading and name; the module of a command is imported when the command is looked up."""

from collections import UserDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from sharelens.output import say
from state_model.errors import SharelensError

if TYPE_CHECKING:
    from sharelens.question_table.question import Question

QUESTION = "sharelens.cli.asking"
"""Stands for the module of a command that is a question of the table."""
MODULES: Mapping[str, Mapping[str, str]] = {
    "Into a lake": {},
    "An incident": {
        "explore": "sharelens.pages.command",
        "report": "sharelens.cli.report",
        "evidence": "sharelens.cli.evidence",
        "verify": "sharelens.cli.evidence",
    },
    "States and records": {},
    "Groups and figures": {"metrics": "sharelens.cli.export"},
    "A lake and its tables": {
        "tables": "sharelens.cli.tables",
        "sql": "sharelens.cli.sql",
        "runbook": "sharelens.cli.runbooks",
    },
    "A broker and its load": {
        "broker": "sharelens.cli.broker",
        "workload": "sharelens.cli.workload",
        "simulate": "sharelens.cli.simulate",
    },
}
"""Heading -> name of a command that is no question -> the module that has it, in the order of a day's work.

Questions of the table come before them, and commands that other packages provide follow below their headings
(`sharelens.providers.COMMANDS`).
"""


def own_commands() -> dict[str, dict[str, str]]:
    """Heading -> name of a command of this package -> its module, or QUESTION."""
    questions = questions_by_heading()
    return {
        heading: {**{question.name: QUESTION for question in questions.get(heading, ())}, **modules}
        for heading, modules in MODULES.items()
    }


def questions_by_heading() -> "Mapping[str, tuple[Question, ...]]":
    """The table of questions."""
    from sharelens.question_table.table import QUESTIONS  # deferred: --version does without

    return QUESTIONS


class Commands(UserDict[str, Any]):
    """The commands by name. Each is made or imported when it is first looked up; `complete` is called on it then.

    Entry points are read for the list of all commands, and for a name that no command of this package has.
    """

    def __init__(self, complete: Callable[[click.Command], None]) -> None:
        super().__init__()
        self._complete = complete
        self._modules: dict[str, dict[str, str]] = {}
        self._has_provided = self._is_said = False

    def __getitem__(self, name: str) -> click.Command:
        """A command. Raises KeyError for a name that none has, ProviderError where its package can't be imported."""
        if name not in self:
            raise KeyError(name)
        if self.data[name] is None:
            self._add(name)
        command: click.Command = self.data[name]
        return command

    def __contains__(self, name: object) -> bool:
        """Whether a command has this name. Raises ProviderError where a package can't be imported."""
        self._add_own()
        if name not in self.data:
            self._add_provided()
        return name in self.data

    def __iter__(self) -> Iterator[str]:
        """All names, in the order of the headings; without those of a package that can't be imported, which is said."""
        try:
            self._add_provided()
        except SharelensError as error:
            if not self._is_said:
                say(f"sharelens: commands are missing: {error}")
            self._is_said = True
        return iter(self.data)

    def by_heading(self) -> dict[str, list[str]]:
        """Heading -> names of commands."""
        list(self)
        return {heading: list(names) for heading, names in self._modules.items() if names}

    def short_help(self, name: str, limit: int) -> str:
        """The line of a command in the list of commands; a question's command isn't made for it."""
        questions = (question for each in questions_by_heading().values() for question in each if question.name == name)
        question = next(questions, None)
        return self[name].get_short_help_str(limit) if question is None else question.summary

    def _add(self, name: str) -> None:
        """Adds the command of a question, or all commands of a module."""
        place = next(names[name] for names in self._modules.values() if name in names)
        module = import_module(place)
        commands: Iterable[click.Command] = (module.command(name),) if place == QUESTION else module.COMMANDS
        for command in commands:
            self._complete(command)
            self.data[str(command.name)] = command

    def _add_own(self) -> None:
        if not self._modules:
            self._modules = own_commands()
            self._list_names()

    def _add_provided(self) -> None:
        self._add_own()
        if self._has_provided:
            return
        from sharelens import providers  # deferred: it imports importlib.metadata, which costs a question 20 ms

        for table in providers.provided(providers.COMMANDS):
            for heading, names in table.items():
                self._modules.setdefault(heading, {}).update(names)
        self._has_provided = True
        self._list_names()

    def _list_names(self) -> None:
        names = [name for names in self._modules.values() for name in names]
        self.data = {name: self.data.get(name) for name in names}
