"""Paths and URIs of lakes."""

from pathlib import Path

import pytest

from sharelens.cli import main
from sharelens.lake.locations import resolve
from state_model.errors import UsageError


@pytest.mark.parametrize("name", ["100% done", "a b", "%", "50%", "a%2", "%zz", "#?[", "ü", "a%-20"])
def test_a_path_with_other_letters_is_a_folder(name: str, tmp_path: Path) -> None:
    assert resolve(tmp_path / name).root == str(tmp_path / name)


@pytest.mark.parametrize("name", ["a%20b", "%3A", "manual__2026-11-21T05%3a10", "a%20b/lake", "link"])
def test_a_path_that_would_be_decoded_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "a%20b").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "a%20b")
    with pytest.raises(UsageError, match="% followed by two hexadecimal digits"):
        resolve(tmp_path / name)


def test_a_uri_is_decoded_once(tmp_path: Path) -> None:
    assert resolve(f"file://{tmp_path}/a%20b").root == str(tmp_path / "a b")
    with pytest.raises(UsageError, match="'%20', % followed by two"):
        resolve(f"file://{tmp_path}/a%2520b")


@pytest.mark.parametrize(
    "command", ["run --log-dir LOGS", "state", "status", "check", "maintain --execute", "sql SELECT", "demo"]
)
def test_a_command_refuses_it_before_it_writes(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        raise SystemExit(main([*command.split(), "--lake", "a%20b"]))
    assert stop.value.code == 2
    assert "% followed by two hexadecimal digits" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
