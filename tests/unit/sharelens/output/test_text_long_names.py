"""A group with a name of 300 letters: tables stay narrow, JSON has the name whole."""

import json
from pathlib import Path

import pytest

from sharelens.cli import main
from tests.logs.state_logs import snapshot, update, write_log_directory
from tests.processes.in_process import story_lake

pytestmark = pytest.mark.slow

GROUP = "begin-" + "g" * 300 + "-end"
STORY = [snapshot(GROUP), update(GROUP, batches=[(0, 4, 2, 1), (5, 5, 4, 5)]), snapshot("g")]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("option", ["--log-dir", "--lake"])
@pytest.mark.parametrize("command", ["state", "records", "lag", "poison", "life", "timeline"])
def test_a_long_name_does_not_widen_a_table(
    option: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = story_lake("long-names", STORY) if option == "--lake" else write_log_directory(tmp_path / "logs", STORY)
    assert main([command, option, str(path)]) == 0
    text = capsys.readouterr().out
    assert GROUP not in text
    assert "begin-ggg" in text
    assert "ggg-end" in text
    assert main([command, option, str(path), "-o", "json"]) == 0
    assert GROUP in {row["group_id"] for row in json.loads(capsys.readouterr().out)}
