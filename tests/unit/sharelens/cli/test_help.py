"""Help pages: every option once, in groups; no word about later versions."""

import re

import click
import pytest

from sharelens.cli import app, main
from sharelens.cli.help import GROUPS, OWN_OPTIONS
from tests.unit.sharelens.cli.options.test_common import commands

COMMANDS = dict(commands())


@pytest.mark.parametrize("path", COMMANDS)
def test_every_option_stands_on_its_page_once(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*path.split(), "--help"]) == 0
    page = re.split(r"(?m)^[A-Z][a-z ]+:$", capsys.readouterr().out, maxsplit=1)[1]
    for parameter in COMMANDS[path].params:
        if isinstance(parameter, click.Option):
            shown = re.findall(rf"(?m)^  (?:-\w, )?{parameter.opts[0]}(?![\w-])", page)
            assert len(shown) == (not parameter.hidden), parameter.opts
    assert not re.search(r"not available yet|later version|in a future|planned", page)


def test_options_stand_in_groups_in_one_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["redelivered", "--help"]) == 0
    headings = re.findall(r"(?m)^([A-Z][a-z ]+):$", capsys.readouterr().out)
    groups = [heading for heading in (OWN_OPTIONS, *GROUPS) if heading in headings]
    assert [heading for heading in headings if heading in groups] == groups
    assert {"Evidence", "Rows", "Times", "Output", "Exit code", "General"} <= set(groups)


def test_every_option_of_a_group_is_one_of_some_command() -> None:
    option_names = {
        name for command in (app.cli, *COMMANDS.values()) for parameter in command.params for name in parameter.opts
    }
    grouped = {option for options in GROUPS.values() for option in options}
    assert grouped - option_names - {"--help", "--settings", "--no-color"} == set()


def test_every_command_stands_in_one_group(capsys: pytest.CaptureFixture[str]) -> None:
    listed = app.headings()
    names = [name for group in listed.values() for name in group]
    assert sorted(names) == sorted(app.cli.commands)
    assert main(["--help"]) == 0
    page = capsys.readouterr().out
    assert re.findall(r"(?m)^([A-Z][a-z ]+):$", page) == ["Options", *listed]
    for name in names:
        assert len(re.findall(rf"(?m)^  {name}  +[A-Z]", page)) == 1, name
