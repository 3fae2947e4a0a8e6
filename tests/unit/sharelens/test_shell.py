"""Printed command lines can be pasted: a shell gives a program the very words."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from sharelens.cli import main
from sharelens.lake.scan import UPGRADE, UPGRADE_COMPLETE
from sharelens.shell import lake_command, option_words, shell_line
from tests.logs.state_logs import snapshot, update, write_log_directory

HOSTILE = (
    *(
        "-x",
        "--",
        "a b",
        "it's",
        '"',
        "</script>",
        "$HOME",
        "$(id)",
        "`id`",
        "a\\b",
        "*",
        "~",
        "#",
        "!!",
        "a;b",
        "100%20",
    ),
    *("line\nbreak", "tab\tbell\a1", "\u202egnp.exe", "ü", "Ж", "\u0085c", "\U000e0001", "日本 \x7f", "'\n'"),
)


def words_of(line: str) -> list[str]:
    """The words that bash makes of a line."""
    done = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {line}"],
        capture_output=True,
        check=True,
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )
    return os.fsdecode(done.stdout).split("\0")[:-1]


@pytest.mark.parametrize("word", [*HOSTILE, os.fsdecode(b"\xff\x80.log"), os.fsdecode(b"a\xe9b c")])
def test_a_shell_gives_a_program_the_very_words(word: str) -> None:
    line = shell_line(["sharelens", word, f"--group={word}"])
    assert line.isprintable()
    assert words_of(line) == ["sharelens", word, f"--group={word}"]


def test_a_value_that_looks_like_an_option_stays_a_value() -> None:
    assert option_words("--lake", "-x") == ("--lake=-x",)
    assert lake_command("run", "my lake", "--log-dir", "DIR") == "sharelens run --lake 'my lake' --log-dir DIR"
    assert lake_command("check", "-x") == "sharelens check --lake=-x"


@pytest.mark.one_in(8)
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in HOSTILE if "/" not in name and name != "~"])
def test_commands_of_overview_can_be_pasted_whatever_the_path(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_log_directory(tmp_path / name, [snapshot(name), update(name, batches=[(0, 4, 4, 5)])])
    assert main(["overview", f"--log-dir={name}", "-o", "json"]) == 0
    commands = [finding["command"] for finding in json.loads(capsys.readouterr().out)["findings"]]
    assert commands
    for command in commands:
        program, *words = words_of(command)
        assert program == "sharelens"
        assert main([*words, "-o", "json"]) == 0
        assert json.loads(capsys.readouterr().out)


def test_commands_in_messages_can_be_pasted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "a $b" / UPGRADE
    place.mkdir(parents=True)
    (place / UPGRADE_COMPLETE).touch()
    for words, command in (
        (
            ["state", "--lake", str(place.parent)],
            f"finish it with `sharelens upgrade --lake '{place.parent}' --execute`",
        ),
        (["trace", "--lake", "x", "--group", "g", "--topic", "a b", "--offset", "1"], "type --topic 'a b':N"),
    ):
        with pytest.raises(SystemExit):
            raise SystemExit(main(words))
        assert command in capsys.readouterr().err
