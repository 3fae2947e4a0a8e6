"""The table of commands: each name with the module that has it, which is imported for it alone."""

import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points

import click
import pytest

import jobs.commands
from sharelens.cli.commands import COMMANDS, QUESTION, QUESTIONS, Commands
from sharelens.cli.help import write_commands

OWN_COMMANDS = {name: module for names in COMMANDS.values() for name, module in names.items()}


@pytest.mark.parametrize("table", [COMMANDS, jobs.commands.COMMANDS])
def test_each_module_has_the_commands_that_its_table_says(table: Mapping[str, Mapping[str, str]]) -> None:
    modules = {name: module for names in table.values() for name, module in names.items()}
    names = {
        module: set(QUESTIONS) if module == QUESTION else {command.name for command in import_module(module).COMMANDS}
        for module in modules.values()
    }
    assert {name: module for module, defined in names.items() for name in defined} == modules


def test_commands_of_entry_points_follow_below_their_headings() -> None:
    by_heading = Commands(lambda _: None).by_heading()
    assert list(by_heading) == list(COMMANDS)
    for heading, names in COMMANDS.items():
        assert by_heading[heading] == [*names, *jobs.commands.COMMANDS.get(heading, {})]


def test_commands_are_completed_once_and_listed_without_an_import() -> None:
    completed: list[click.Command] = []
    commands = Commands(completed.append)
    assert set(commands) == {*OWN_COMMANDS, *(name for names in jobs.commands.COMMANDS.values() for name in names)}
    assert completed == []
    state = commands["state"]
    assert (state.name, commands["state"]) == ("state", state)
    assert completed == [state]
    assert commands["verify"].name == "verify"
    assert {command.name for command in completed} == {"state", "evidence", "verify"}  # those of its module


def test_an_unknown_name_has_no_command() -> None:
    assert Commands(lambda _: None).get("stat") is None


def test_a_package_that_cannot_be_imported_hides_its_own_commands_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (point,) = entry_points(group="sharelens.commands", name="jobs")
    broken = type(point)(name="jobs", value="jobs.nowhere:COMMANDS", group=point.group)
    monkeypatch.setattr("sharelens.providers.entry_points", lambda **_: [broken])
    commands = Commands(lambda _: None)
    formatter = click.HelpFormatter()
    write_commands(commands, formatter)
    assert "overview" in formatter.getvalue()
    assert " run " not in formatter.getvalue()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("sharelens: commands are missing: jobs.nowhere:COMMANDS can't be imported")
    assert str(import_module("jobs").__path__[0]) in line


@pytest.mark.slow
def test_a_command_imports_the_modules_of_no_other_command() -> None:
    code = "import sys; from sharelens.cli import main; main(['state', '--help']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = set(done.stdout.splitlines()[-1].split())
    assert {module for module in OWN_COMMANDS.values() if module in imported} == {"sharelens.cli.asking"}
    assert not {name for name in imported if name.partition(".")[0] == "jobs"}
