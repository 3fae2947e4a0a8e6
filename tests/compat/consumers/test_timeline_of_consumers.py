"""The timeline of consumer groups over a recorded log whose groups were classic groups before."""

import json

import pytest

from sharelens.cli import main
from tests.datasets import dataset


@pytest.mark.parametrize("group", ["converted", "eager", "static"])
def test_commits_of_the_members_of_a_classic_group_reset_nothing(
    group: str, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = str(dataset("consumer-migration") / "logs")
    assert main(["timeline", "--log-dir", logs, "--group", group, "--output", "json"]) == 0
    events = {row["event"] for row in json.loads(capsys.readouterr().out)}
    assert "group_created" in events
    assert "offsets_reset" not in events
