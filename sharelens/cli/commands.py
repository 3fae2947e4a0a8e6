"""The commands by heading and name; the module of a command is imported when the command is looked up."""

from collections import UserDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

import click

from sharelens.cli import asking
from sharelens.output import say
from sharelens.question_table.table import QUESTIONS as BY_HEADING
from state_model.errors import SharelensError

QUESTION = "sharelens.cli.asking"
"""Stands for the module of a command that is a question of the table."""
QUESTIONS = {question.name: question for questions in BY_HEADING.values() for question in questions}
_MODULES: Mapping[str, Mapping[str, str]] = {
    "Into a lake": {},
    "An incident": {
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
COMMANDS: Mapping[str, Mapping[str, str]] = {
    heading: {**{question.name: QUESTION for question in BY_HEADING.get(heading, ())}, **modules}
    for heading, modules in _MODULES.items()
}
"""Heading -> name of a command -> the module that has it, in the order of a day's work; questions come first.

Commands that other packages provide follow below their headings (`sharelens.providers.COMMANDS`).
"""


class Commands(UserDict[str, Any]):
    """The commands by name. Each is imported when it is first looked up; `complete` is called on it then.

    Entry points are read for the list of all commands, and for a name that COMMANDS lacks.
    """

    def __init__(self, complete: Callable[[click.Command], None]) -> None:
        super().__init__()
        self._complete = complete
        self._modules: dict[str, dict[str, str]] = {heading: dict(names) for heading, names in COMMANDS.items()}
        self._has_provided = self._is_said = False
        self._list_names()

    def __getitem__(self, name: str) -> click.Command:
        """A command. Raises KeyError for a name that none has, ProviderError where its package can't be imported."""
        if name not in self.data:
            self._add_provided()
        if self.data[name] is None:
            self._add(name)
        command: click.Command = self.data[name]
        return command

    def __contains__(self, name: object) -> bool:
        """Whether a command has this name."""
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

    def _add(self, name: str) -> None:
        """Adds the command of a question, or all commands of a module."""
        if name in QUESTIONS:
            commands: Sequence[click.Command] = (asking.command_of(QUESTIONS[name]),)
        else:
            commands = import_module(next(names[name] for names in self._modules.values() if name in names)).COMMANDS
        for command in commands:
            self._complete(command)
            self.data[str(command.name)] = command

    def _add_provided(self) -> None:
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
