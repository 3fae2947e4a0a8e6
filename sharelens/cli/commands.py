"""The commands by heading and name; the module of a command is imported when the command is looked up."""

from collections import UserDict
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

import click

from sharelens.output import say
from state_model.errors import SharelensError

COMMANDS: Mapping[str, Mapping[str, str]] = {
    "Into a lake": {},
    "An incident": {
        "overview": "sharelens.cli.overview",
        "timeline": "sharelens.cli.timeline",
        "stalled": "sharelens.cli.incidents",
        "pinned": "sharelens.cli.incidents",
        "poison": "sharelens.cli.incidents",
        "dlq": "sharelens.cli.dlq",
        "redelivered": "sharelens.cli.forensics",
        "audit": "sharelens.cli.audit",
        "report": "sharelens.cli.report",
        "evidence": "sharelens.cli.evidence",
        "verify": "sharelens.cli.evidence",
    },
    "States and records": {
        "state": "sharelens.cli.questions",
        "records": "sharelens.cli.questions",
        "trace": "sharelens.cli.questions",
        "diff": "sharelens.cli.questions",
        "locate": "sharelens.cli.locate",
        "account": "sharelens.cli.forensics",
        "life": "sharelens.cli.forensics",
    },
    "Groups and figures": {
        "groups": "sharelens.cli.forensics",
        "describe": "sharelens.cli.groups_describe",
        "rebalances": "sharelens.cli.groups_rebalances",
        "configurations": "sharelens.cli.configurations",
        "lag": "sharelens.cli.measures",
        "latency": "sharelens.cli.options.durations",
        "attempts": "sharelens.cli.options.durations",
        "cost": "sharelens.cli.forensics",
        "what-if": "sharelens.cli.what_if",
        "advise": "sharelens.cli.what_if",
        "metrics": "sharelens.cli.export",
    },
    "A lake and its tables": {
        "status": "sharelens.cli.holdings",
        "tables": "sharelens.cli.tables",
        "sql": "sharelens.cli.holdings",
        "runbook": "sharelens.cli.runbooks",
    },
    "A broker and its load": {
        "broker": "sharelens.cli.broker",
        "workload": "sharelens.cli.workload",
        "simulate": "sharelens.cli.simulate",
    },
}
"""Heading -> name of a command -> the module that has it, in the order of a day's work.

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
            module = next(names[name] for names in self._modules.values() if name in names)
            for of_module in import_module(module).COMMANDS:
                self._complete(of_module)
                self.data[of_module.name] = of_module
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
