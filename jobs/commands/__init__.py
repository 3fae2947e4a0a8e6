"""The commands of the pipeline, which the entry point group `sharelens.commands` adds to the command line."""

from collections.abc import Mapping
from typing import Final

COMMANDS: Final[Mapping[str, Mapping[str, str]]] = {
    "Into a lake": {
        "run": "jobs.commands.stages",
        "ingest": "jobs.commands.stages",
        "decode": "jobs.commands.stages",
        "replay": "jobs.commands.stages",
        "measure": "jobs.commands.stages",
        "audit-log": "jobs.commands.stages",
        "publish": "jobs.commands.stages",
    },
    "A lake and its tables": {
        "check": "jobs.commands.check",
        "maintain": "jobs.commands.maintain",
        "upgrade": "jobs.commands.upgrade",
        "doctor": "jobs.commands.doctor",
    },
    "A broker and its load": {"demo": "jobs.commands.demo"},
}
"""Heading -> name of a command -> the module that has it."""
