"""Ctrl-C is one line and exit code 130; the lake stays as it was, and the next run goes on."""

import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sharelens.cli import app, main
from sharelens.cli.interrupts import interruptible
from tests.depths import in_soak
from tests.lakes import assert_same
from tests.once import made_once
from tests.processes.in_process import make_lake
from tests.processes.interrupts import HEEDING, LONGEST_S, interrupted, long_log, written

ONE_LINE = (130, ["sharelens: interrupted"])
IN_PROCESS = {"SHARELENS_IN_PROCESS_BYTES": str(1 << 40)}
STAGES = {
    "ingest": "bronze.ingest_extent",
    "decode": "bronze.log_record",
    "replay": "silver.share_record",
    "measure": "gold.share_partition_history",
}
"""Stage -> the table whose commit shows that it begins."""


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize("stage", ["replay", *in_soak("ingest", "decode", "measure")])
def test_an_interrupted_stage_is_one_line_and_the_next_run_goes_on(stage: str, tmp_path: Path) -> None:
    lake, logs = tmp_path / "lake", long_log()
    run = ["run", "--lake", str(lake), "--log-dir", str(logs)]
    assert interrupted(run, written(lake, STAGES[stage]), **IN_PROCESS) == ONE_LINE
    make_lake(lake, logs)
    assert_same(lake, made_once("interrupted/whole", lambda lake_folder: make_lake(lake_folder, logs)))


QUERIES = {
    "before its first row": "SELECT count(*) FROM range(50000000000) AS numbers(n) WHERE n % 7 = 1",
    "between rows": "SELECT n FROM range(500000000000) AS numbers(n) WHERE n < 50000 OR n % 90000000000 = 1",
}


@pytest.mark.one_in(2)
@pytest.mark.slow
@pytest.mark.parametrize("moment", QUERIES)
def test_an_interrupted_question_is_one_line(moment: str, tmp_path: Path) -> None:
    lake = made_once("interrupted/whole", lambda lake_folder: make_lake(lake_folder, long_log()))
    rows = tmp_path / "rows.csv"

    def is_there(_: object) -> bool:
        return is_asking(tmp_path) if moment == "before its first row" else rows.exists() and rows.stat().st_size > 0

    question = ["sql", "--lake", str(lake), "--limit", "100000", "--output", "csv", QUERIES[moment]]
    assert interrupted(question, is_there, rows, TMPDIR=str(tmp_path)) == ONE_LINE


def is_asking(folder: Path) -> bool:
    """Whether a query has the folder for what it spills."""
    return any(folder.glob("sharelens-sql-*"))


def test_an_error_that_follows_from_the_interruption_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(**_: object) -> None:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(LONGEST_S)
        except KeyboardInterrupt:
            raise RuntimeError("the server went away\nwith a trace") from None

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr(app.cli.commands["tables"], "callback", broken)
    # The children of a command are its JVM; those of this process belong to other tests.
    monkeypatch.setattr(app, "end_jvm", lambda: None)
    try:
        assert main(["tables"]) == 130
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        logging.disable(logging.NOTSET)
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr() == ("", "sharelens: interrupted\n")


def test_where_interrupts_are_ignored_they_stay_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interruptible() as interruption:
            os.kill(os.getpid(), signal.SIGINT)
        assert not interruption.came
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.slow
def test_a_second_interrupt_ends_a_command_that_does_not_heed_the_first() -> None:
    program = (
        "import time\nfrom sharelens.cli.interrupts import interruptible\nwith interruptible():\n"
        "    try:\n        print('ready', flush=True)\n        time.sleep(60)\n"
        "    except KeyboardInterrupt:\n        print('heard', flush=True)\n    time.sleep(60)\n"
    )
    with subprocess.Popen([*HEEDING, sys.executable, "-c", program], stdout=-1, stderr=-1, text=True) as process:
        assert process.stdout is not None
        for word in ("ready", "heard"):
            assert process.stdout.readline() == f"{word}\n"
            process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=LONGEST_S)
    assert (process.returncode, stderr) == (130, "sharelens: interrupted\n")


@pytest.mark.slow
def test_an_interrupt_that_python_drops_is_raised_again(capsys: pytest.CaptureFixture[str]) -> None:
    class Interrupted:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(LONGEST_S)

    before, hook = signal.signal(signal.SIGINT, signal.default_int_handler), sys.unraisablehook
    begun_s = time.monotonic()

    def work() -> None:
        Interrupted()
        time.sleep(LONGEST_S)

    try:
        with pytest.raises(KeyboardInterrupt), interruptible() as interruption:
            work()
    finally:
        logging.disable(logging.NOTSET)
        signal.signal(signal.SIGINT, before)
    assert interruption.came
    assert time.monotonic() - begun_s < LONGEST_S / 2
    assert sys.unraisablehook is hook
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
    assert capsys.readouterr() == ("", "")


def test_a_copy_of_the_process_that_is_about_to_become_a_program_ends_without_a_word() -> None:
    """pyspark starts its JVM so; an exception there would be printed as ignored."""

    def interrupt() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(LONGEST_S)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with interruptible() as interruption:
            ended = subprocess.run(["true"], check=False, capture_output=True, preexec_fn=interrupt)
    finally:
        signal.signal(signal.SIGINT, before)
    assert (ended.returncode, ended.stderr, interruption.came) == (130, b"", False)
