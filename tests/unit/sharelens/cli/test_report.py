"""The command that writes the report: where it writes, what it refuses."""

import stat
from pathlib import Path

import pytest

from sharelens.cli import main
from tests.report_pages import pinned_log


@pytest.fixture
def logs(tmp_path: Path) -> str:
    return pinned_log(tmp_path / "logs").log_dirs[0]


def test_a_directory_is_no_file_to_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--log-dir", "nowhere", "--out", str(tmp_path)]) == 2
    assert f"--out: {tmp_path} is a directory; name a file in it" in capsys.readouterr().err


def test_a_directory_that_is_not_there_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--log-dir", "nowhere", "--out", str(tmp_path / "no" / "r.html")]) == 2
    assert f"there is no directory {tmp_path / 'no'}" in capsys.readouterr().err


def test_a_missing_library_is_told_with_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sharelens.cli.report.LIBRARIES", ("altair", "no_such_library"))
    assert main(["report", "--log-dir", "nowhere", "--out", str(tmp_path / "r.html")]) == 2
    message = capsys.readouterr().err
    assert message == "sharelens: report: no_such_library is missing: pip install 'sharelens[report]'\n"


def test_a_time_before_the_evidence_is_refused_and_nothing_is_written(
    logs: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "r.html"
    assert main(["report", "--log-dir", logs, "--as-of", "2020-01-01T00:00:00Z", "--out", str(out)]) == 1
    assert "lies before the evidence" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.slow
def test_the_file_is_its_owners_alone_and_takes_the_place_of_an_older_one(logs: str, tmp_path: Path) -> None:
    out = tmp_path / "r.html"
    out.write_text("older", encoding="utf-8")
    out.chmod(0o644)
    assert main(["report", "--log-dir", logs, "--out", str(out)]) == 0
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == ["logs", "r.html"]


@pytest.mark.slow
def test_a_dash_is_stdout(logs: str, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["report", "--log-dir", logs, "--out", "-"]) == 0
    output = capfdbinary.readouterr()
    assert output.out.startswith(b"<!doctype html>")
    assert output.out.rstrip().endswith(b"</html>")
