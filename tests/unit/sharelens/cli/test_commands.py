"""The table of commands: each name with the module that has it, which is imported for it alone."""

import subprocess
import sys
from importlib import import_module

import click
import pytest

from sharelens.cli.commands import MODULES, Commands


def test_each_module_has_the_commands_that_the_table_says() -> None:
    there = {
        command.name: name
        for name in set(MODULES.values())
        for command in import_module(f"sharelens.cli.{name}").COMMANDS
    }
    assert there == MODULES


def test_commands_are_completed_once_and_in_the_order_of_the_table() -> None:
    completed: list[click.Command] = []
    commands = Commands(completed.append)
    assert list(commands) == list(MODULES)
    assert completed == []
    state = commands["state"]
    assert (state.name, commands["state"]) == ("state", state)
    assert {command.name for command in completed} == {"state", "records", "trace", "diff"}  # those of its module
    assert len(completed) == 4


def test_an_unknown_name_has_no_command() -> None:
    assert Commands(lambda _: None).get("stat") is None


@pytest.mark.slow
def test_a_command_imports_the_modules_of_no_other_command() -> None:
    code = "import sys; from sharelens.cli import main; main(['state', '--help']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = {name for name in MODULES.values() if f"sharelens.cli.{name}" in done.stdout.splitlines()[-1].split()}
    assert imported == {"questions"}
