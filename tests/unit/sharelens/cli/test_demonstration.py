"""The demo: real logs that ship with the package, each step with the command that does the same."""

from unittest import mock

import pytest

from sharelens.cli import compute, main
from tests.in_process import no_session


@pytest.mark.parametrize("data_set", ["basic", "dlq"])
def test_the_demo_tells_the_whole_story(data_set: str, capsys: pytest.CaptureFixture[str]) -> None:
    with mock.patch.object(compute, "_session", return_value=no_session):
        assert main(["demo", "--set", data_set]) == 0
    out, err = capsys.readouterr()
    assert [line.split()[2] for line in err.splitlines() if line.startswith("$")] == ["run", "state", "trace", "status"]
    for told in (
        '{"command": "run"',
        "GROUP",
        "START-OFFSET",
        "share partition created",
        "STATE PARTITIONS",
        "evidence: ",
    ):
        assert told in out
