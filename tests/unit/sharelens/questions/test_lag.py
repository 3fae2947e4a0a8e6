"""Lag now and at an earlier moment: which columns text shows, and why a lag is unknown."""

import json
from pathlib import Path

import pytest

from sharelens.cli import main
from tests.logs.state_logs import START_MS, snapshot, update, write_log_directory

pytestmark = pytest.mark.slow

EARLIER = ["--as-of", str(START_MS)]


@pytest.fixture
def logs(tmp_path: Path) -> str:
    """Two records of a share partition whose user partition has no batch."""
    records = [snapshot(start=0, delivery_complete_count=0), update(start=1, delivery_complete_count=0)]
    records[1]["timestamp_ms"] = START_MS + 1_000
    return str(write_log_directory(tmp_path, records))


@pytest.mark.parametrize(("moment", "is_shown"), [([], False), (EARLIER, True)])
def test_text_shows_inferred_ends_of_earlier_moments_alone(
    logs: str, moment: list[str], is_shown: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lag", "--log-dir", logs, *moment]) == 0
    out = capsys.readouterr().out
    assert ("END-OFFSET-INFERRED" in out, "LAG-INFERRED" in out) == (is_shown, is_shown)


@pytest.mark.parametrize(
    ("moment", "reason"),
    [([], "end_offset_unknown"), (EARLIER, "end_offset_of_the_moment_not_logged")],
)
def test_an_end_that_is_not_known_has_another_reason_at_an_earlier_moment(
    logs: str, moment: list[str], reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for file in (Path(logs) / "orders-0").iterdir():
        file.unlink()
    (Path(logs) / "orders-0").rmdir()
    assert main(["lag", "--log-dir", logs, *moment, "--output", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["unknown_reason"] == reason
