"""The command `metrics`: what it writes, and one clear line for everything that can't be meant."""

import json
import stat
from pathlib import Path

import pytest

from sharelens.cli import main
from tests.logs.state_logs import snapshot, write_log_directory


@pytest.fixture
def logs(tmp_path: Path) -> str:
    return str(write_log_directory(tmp_path / "logs", [snapshot()]))


@pytest.mark.slow
def test_the_file_is_put_in_place_for_its_owner_alone(logs: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    target = tmp_path / "sharelens.prom"
    target.write_text("old", encoding="utf-8")
    assert main(["metrics", "--log-dir", logs, "--output-file", str(target)]) == 0
    assert "kafka_sharegroup_start_offset{" in target.read_text(encoding="utf-8")
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    out, err = capsys.readouterr()
    assert out == ""
    assert "series of 1 group in 1 cluster" in err


@pytest.mark.slow
def test_a_dash_is_stdout(
    logs: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    for form, word in (("prometheus", "kafka_sharegroup_start_offset{"), ("otlp", "resourceMetrics")):
        assert main(["metrics", "--log-dir", logs, "--output-file", "-", "--format", form]) == 0
        out, err = capsys.readouterr()
        assert word in out
        assert out.endswith("\n")
        assert err.startswith("stdout: ")
    assert [path.name for path in tmp_path.iterdir()] == ["logs"]


@pytest.mark.slow
def test_a_file_for_others_to_read(logs: str, tmp_path: Path):
    target = tmp_path / "sharelens.prom"
    assert main(["metrics", "--log-dir", logs, "--output-file", str(target), "--file-mode", "644"]) == 0
    assert stat.S_IMODE(target.stat().st_mode) == 0o644


@pytest.mark.slow
def test_otlp_is_one_line_of_json(logs: str, tmp_path: Path):
    target = tmp_path / "sharelens.json"
    assert main(["metrics", "--log-dir", logs, "--output-file", str(target), "--format", "otlp"]) == 0
    assert "resourceMetrics" in json.loads(target.read_text(encoding="utf-8"))


@pytest.mark.slow
def test_series_that_are_left_out_are_told(logs: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    words = ["metrics", "--log-dir", logs, "--output-file", str(tmp_path / "m.prom"), "--max-series", "1"]
    assert main(words) == 0
    assert "warning: 1 share partition has no series of its own (--max-series 1)" in capsys.readouterr().err


def test_a_file_stays_as_it_was_when_nothing_can_be_read(tmp_path: Path):
    target = tmp_path / "sharelens.prom"
    target.write_text("old", encoding="utf-8")
    assert main(["metrics", "--lake", str(tmp_path / "gone"), "--output-file", str(target)]) == 1
    assert target.read_text(encoding="utf-8") == "old"


BAD_LINES = {
    "nowhere to write": ([], "give either --output-file FILE or --listen HOST:PORT"),
    "two places": (["--output-file", "x", "--listen", "127.0.0.1:0"], "give either --output-file"),
    "no folder": (["--output-file", "missing/x"], "no directory missing"),
    "a folder": (["--output-file", "."], ". is a directory; name a file in it"),
    "other machines": (["--listen", "0.0.0.0:0"], "add --allow-remote to allow it"),
    "every address": (["--listen", ":0"], "is not HOST:PORT"),
    "no port": (["--listen", "127.0.0.1"], "is not HOST:PORT"),
    "a port too large": (["--listen", "127.0.0.1:65536"], "is not HOST:PORT"),
    "remote without listening": (["--output-file", "x", "--allow-remote"], "--allow-remote goes with --listen"),
    "otlp to be scraped": (["--listen", "127.0.0.1:0", "--format", "otlp"], "OTLP is pushed, not scraped"),
    "no mode": (["--output-file", "x", "--file-mode", "9"], "'9' is no mode of a file; type 600 or 644"),
}


@pytest.mark.parametrize("case", BAD_LINES)
def test_what_can_not_be_meant_is_one_line(case: str, logs: str, capsys: pytest.CaptureFixture[str]):
    words, message = BAD_LINES[case]
    assert main(["metrics", "--log-dir", logs, *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert message in err
