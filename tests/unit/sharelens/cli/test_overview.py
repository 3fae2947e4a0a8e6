"""The overview on a terminal: colours, refreshing, exit codes; what it finds is in tests/broker and tests/compat."""

import json
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sharelens.cli import main
from sharelens.questions.answers.command_lines import TAKE_NO_CUT
from tests.datasets import dataset
from tests.depths import in_soak
from tests.logs.file_times import set_times
from tests.logs.state_logs import START_MS, STATE_TOPIC, snapshot, update, write_log_directory
from tests.logs.user_topics import ORDERS_RECORDS, write_orders
from tests.processes.in_process import recorded_lake
from tests.processes.interrupts import HEEDING
from tests.processes.terminals import Terminal, screens
from tools.log_writer.writer import write_checkpoints

RED = "\x1b[31m"
CLEAR = "\x1b[2J"
LATER = "2026-11-21T03:30:00Z"


def logs(name: str = "basic") -> str:
    return str(dataset(name) / "logs")


@pytest.mark.soak
@pytest.mark.slow
def test_severities_have_colours_unless_somebody_says_no(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["overview", "--log-dir", logs(), "--now", LATER]
    colored, plain = screens(words, [*words, "--no-color"])
    assert RED in colored
    assert "\x1b" not in plain
    monkeypatch.setenv("NO_COLOR", "1")
    assert screens(words) == [plain]


@pytest.mark.slow
def test_a_pipe_gets_tables_without_colours(capsys: pytest.CaptureFixture[str]) -> None:
    main(["overview", "--log-dir", logs(), "--now", LATER])
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert out.startswith("ERROR: g-implicit: lag 402 in 3 share partitions, no members since ")
    assert re.search(r"^error +no_members +g-implicit +orders-1 +402 ", out, re.MULTILINE)


@pytest.mark.slow
def test_each_finding_ends_with_a_command_that_answers(capsys: pytest.CaptureFixture[str]) -> None:
    main(["overview", "--log-dir", logs("timeouts"), "--now", "2026-11-21T03:30:00Z", "--output", "json"])
    commands = [shlex.split(row["command"]) for row in json.loads(capsys.readouterr().out)["findings"]]
    assert {"status", "trace", "groups", "poison", "redelivered"} <= {command[1] for command in commands}
    for command in commands:
        assert main([*command[1:], "--output", "json"]) == 0
        assert json.loads(capsys.readouterr().out)


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize("option", ["--log-dir", *in_soak("--lake")])
def test_an_earlier_moment_has_its_own_findings_and_commands_about_it(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    place = [option, logs("dlq") if option == "--log-dir" else str(recorded_lake("dlq"))]

    def overview(*words: str) -> dict[str, list[dict[str, Any]]]:
        assert main(["overview", *place, "--output", "json", *words]) == 0
        return json.loads(capsys.readouterr().out)

    moment = "2026-11-21T03:25:40.000Z"
    then = overview("--as-of", moment)
    assert then["groups"] != overview()["groups"]
    assert main(["lag", *place, "--output", "json", "--as-of", moment]) == 0
    lags = json.loads(capsys.readouterr().out)
    assert sum(row["share_partitions"] for row in then["groups"]) == len(lags)
    assert sum(row["lag"] or 0 for row in then["groups"]) == sum(row["lag"] or 0 for row in lags)
    assert then["findings"]
    for finding in then["findings"]:
        command = shlex.split(finding["command"])
        assert command[1] in TAKE_NO_CUT or f"--as-of={moment}" in command
        assert main([*command[1:], "--output", "json"]) == 0
        capsys.readouterr()


@pytest.mark.slow
def test_findings_fail_a_script_that_asks_for_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        raise SystemExit(main(["overview", "--log-dir", logs(), "--now", LATER, "--fail-on"]))
    assert stop.value.code == 3
    assert "findings (--fail-on)" in capsys.readouterr().err


def test_watch_is_for_text(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        raise SystemExit(main(["overview", "--log-dir", logs(), "--watch", "1s", "--output", "json"]))
    assert stop.value.code == 2
    assert "--watch" in capsys.readouterr().err


@pytest.mark.soak
@pytest.mark.slow
def test_watch_shows_it_again_until_it_is_interrupted() -> None:
    command = [*HEEDING, sys.executable, "-m", "sharelens", "overview", "--log-dir", logs(), "--watch", "100ms"]
    with Terminal(command, stderr=subprocess.PIPE) as terminal:
        shown = terminal.text(lambda text: text.count(CLEAR) >= 2)
        terminal.process.send_signal(signal.SIGINT)
        _, problems = terminal.process.communicate(timeout=30)
        assert terminal.process.returncode == 130
    assert shown.count("no members since") >= 2
    assert problems.decode().split() == ["sharelens:", "interrupted"]


def test_a_log_without_share_state_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        raise SystemExit(main(["overview", "--log-dir", str(tmp_path)]))
    assert stop.value.code == 1
    assert capsys.readouterr().err.count("\n") == 1


def kinds(folder: Path, records: list[dict[str, object]], capsys: pytest.CaptureFixture[str]) -> list[str]:
    directory = write_log_directory(folder, records)
    write_orders(directory)
    write_checkpoints(directory, high_watermarks={(STATE_TOPIC, 0): len(records), ("orders", 0): ORDERS_RECORDS})
    set_times(directory, appended_ms=START_MS + 40, checkpoint_ms=START_MS + 120_000)
    main(["overview", "--log-dir", str(directory), "--output", "json"])
    return [finding["kind"] for finding in json.loads(capsys.readouterr().out)["findings"]]


@pytest.mark.slow
def test_where_records_are_lost_nobody_knows_whether_a_group_has_begun(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    created = snapshot(start=-1)
    assert "not_started" in kinds(tmp_path / "idle", [created], capsys)
    begun = update(start=0, batches=[(0, 4, 2, 1)], damage="value_version")
    assert kinds(tmp_path / "lost", [created, begun], capsys)[0] == "evidence_gap"


@pytest.mark.slow
def test_findings_that_are_known_count_for_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = {"rule": "no_members", "group": "g-implicit", "reason": "runs at night", "until": "2999-01-01"}
    monkeypatch.setenv("SHARELENS_FINDINGS", json.dumps({"suppressions": [entry]}))
    main(["overview", "--log-dir", logs(), "--now", LATER, "--group", "g-implicit"])
    out = capsys.readouterr().out
    assert "no_members" not in out
    assert "info 0, suppressed 1" in out


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"rule": "no_member", "reason": "r", "until": "2999-01-01"}, "entry 1: no_member is no kind of finding"),
        ({"rule": "no_members", "until": "2999-01-01"}, "entry 1: no reason"),
    ],
)
def test_a_suppression_that_can_cover_nothing_is_refused_in_one_line(
    entry: dict[str, str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SHARELENS_FINDINGS", json.dumps({"suppressions": [entry]}))
    with pytest.raises(SystemExit) as stop:
        raise SystemExit(main(["overview", "--log-dir", logs()]))
    err = capsys.readouterr().err
    assert (stop.value.code, err.count("\n")) == (2, 1)
    assert message in err
