"""The commands by heading and name; the module of a command is imported when the command is looked up."""

from collections import UserDict
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import click

COMMANDS: Mapping[str, Mapping[str, str]] = {
    "Into a lake": {
        "run": "compute",
        "ingest": "compute",
        "decode": "compute",
        "replay": "compute",
        "measure": "compute",
        "audit-log": "compute",
        "publish": "compute",
    },
    "An incident": {
        "overview": "overview",
        "timeline": "timeline",
        "stalled": "incidents",
        "pinned": "incidents",
        "poison": "incidents",
        "dlq": "dlq",
        "redelivered": "forensics",
        "audit": "audit",
        "report": "report",
        "evidence": "evidence",
        "verify": "evidence",
    },
    "States and records": {
        "state": "questions",
        "records": "questions",
        "trace": "questions",
        "diff": "questions",
        "locate": "locate",
        "account": "forensics",
        "life": "forensics",
    },
    "Groups and figures": {
        "groups": "forensics",
        "describe": "groups_describe",
        "rebalances": "groups_rebalances",
        "configurations": "configurations",
        "lag": "measures",
        "latency": "durations",
        "attempts": "durations",
        "cost": "forensics",
        "what-if": "what_if",
        "advise": "what_if",
        "metrics": "export",
    },
    "A lake and its tables": {
        "status": "holdings",
        "tables": "tables",
        "sql": "holdings",
        "check": "quality",
        "runbook": "runbooks",
        "maintain": "maintain",
        "upgrade": "upgrade",
        "doctor": "upkeep",
    },
    "A broker and its load": {
        "broker": "broker",
        "workload": "workload",
        "simulate": "simulate",
        "demo": "upkeep",
    },
}
"""Heading -> name of a command -> the module of this package that has it, in the order of a day's work."""
MODULES: Mapping[str, str] = {name: module for commands in COMMANDS.values() for name, module in commands.items()}


class Commands(UserDict[str, Any]):
    """The commands of MODULES by name. Each is imported when it is first looked up; `complete` is called on it then."""

    def __init__(self, complete: Callable[[click.Command], None]) -> None:
        super().__init__(dict.fromkeys(MODULES))
        self._complete = complete

    def __getitem__(self, name: str) -> click.Command:
        """A command. Raises KeyError for a name that none has."""
        if self.data[name] is None:
            for of_module in import_module(f"sharelens.cli.{MODULES[name]}").COMMANDS:
                self._complete(of_module)
                self.data[of_module.name] = of_module
        command: click.Command = self.data[name]
        return command
