"""Times and durations at the command line: one syntax in every option that takes one."""

import json
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import click
import pytest

from sharelens.cli import app, main
from sharelens.cli.options.common import Duration, Seconds, Time
from sharelens.parameters.times import MINUTE_MS
from tests.logs.state_logs import snapshot, update, write_log_directory

MINUTES_AGO = (50, 40, 30, 20, 10)
Offsets = Callable[..., list[int]]


def commands(group: click.Group = app.cli, path: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command with its words."""
    for name, command in group.commands.items():
        yield f"{path}{name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{path}{name} ")


def options(*kinds: type) -> list[tuple[str, click.Option]]:
    return [
        (f"{path} {parameter.opts[0]}", parameter)
        for path, command in commands()
        for parameter in command.params
        if isinstance(parameter.type, kinds) and isinstance(parameter, click.Option)
    ]


@pytest.fixture
def logs(tmp_path: Path) -> str:
    """A state log with a record 50, 40, 30, 20 and 10 minutes before now."""
    now_ms = time.time_ns() // 1_000_000
    times = [now_ms - minutes * MINUTE_MS for minutes in MINUTES_AGO]
    story = [snapshot(at_ms=times[0])]
    story += [update(batches=[(0, number, 0, 1)], at_ms=at_ms) for number, at_ms in enumerate(times[1:])]
    return str(write_log_directory(tmp_path / "logs", story))


@pytest.fixture
def offsets(logs: str, capsys: pytest.CaptureFixture[str]) -> Offsets:
    """Log offsets of the records that `records` shows."""

    def offsets_between(*words: str) -> list[int]:
        assert main(["records", "--log-dir", logs, "--output", "json", *words]) == 0
        return [row["log_offset"] for row in json.loads(capsys.readouterr().out)]

    return offsets_between


def test_every_option_of_a_time_has_the_one_syntax_and_its_command_a_zone() -> None:
    time_options = options(Time)
    assert len(time_options) >= 20
    for where, option in time_options:
        assert option.make_metavar(click.Context(app.cli)) == "TIME", where
    zoned = {path for path, command in commands() if any("--tz" in parameter.opts for parameter in command.params)}
    assert zoned == {where.rpartition(" ")[0] for where, _ in time_options}


def test_every_option_of_a_duration_has_the_one_syntax() -> None:
    durations = dict(options(Duration, Seconds))
    assert {name.rpartition(" ")[2] for name in durations} >= {
        *("--min-duration", "--lock-timeout", "--window", "--gap", "--within", "--every", "--refresh", "--duration"),
        *("--fresh-within", "--stale-after"),
    }
    for where, option in durations.items():
        assert option.make_metavar(click.Context(app.cli)) == "DURATION", where
    assert [where for where, _ in options(click.types.FloatParamType)] == ["workload --rate"]


@pytest.mark.parametrize("words", [["--from", "-25m"], ["--from=-25m"], ["--from", "-0.5h", "--to", "now"]])
def test_a_time_before_now_needs_no_quotes(offsets: Offsets, words: list[str]) -> None:
    assert offsets(*words) == [3, 4]


@pytest.mark.parametrize("words", [["--as-of", "-15m"], ["--as-of=-15m"]])
def test_a_state_before_now(logs: str, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert main(["state", "--log-dir", logs, "--output", "json", *words]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["log_offset"] == 3


@pytest.mark.parametrize("zone", ["Asia/Kolkata", "UTC", "America/New_York"])
def test_a_time_of_day_is_one_of_its_zone(offsets: Offsets, zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    moment = datetime.fromtimestamp(time.time(), ZoneInfo(zone)) - timedelta(minutes=25)
    assert offsets("--from", moment.strftime("%H:%M"), "--tz", zone) == [3, 4]
    assert offsets("--from", moment.strftime("%Y-%m-%dT%H:%M"), "--tz", zone) == [3, 4]
    monkeypatch.setenv("SHARELENS_TZ", zone)
    assert offsets("--to", moment.strftime("%H:%M:%S")) == [0, 1, 2]


def test_the_zone_may_stand_behind_the_time_it_is_for(offsets: Offsets) -> None:
    moment = datetime.fromtimestamp(time.time(), ZoneInfo("Asia/Kolkata")) - timedelta(minutes=25)
    text = moment.strftime("%H:%M")
    assert offsets("--tz", "Asia/Kolkata", "--from", text) == offsets("--from", text, "--tz", "Asia/Kolkata")


@pytest.mark.parametrize("text", ["5m", "300", "300s", "0.5h", "1m30s", "0"])
def test_the_shortest_stall_takes_durations_and_seconds(
    logs: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["stalled", "--log-dir", logs, "--min-duration", text, "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out) is not None


@pytest.mark.parametrize(("text", "seconds"), [("60", 60.0), ("2.5", 2.5), ("1m30s", 90.0), ("0", 0.0), ("100ms", 0.1)])
def test_seconds_alone_stay_seconds(text: str, seconds: float) -> None:
    assert Seconds().convert(text, None, None) == seconds
