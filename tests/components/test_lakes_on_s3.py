"""A lake in a bucket is the lake on a path: runs, questions, upkeep, upgrades."""

import contextlib
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from jobs.errors import JobError
from jobs.upkeep.maintain import MaintainOptions, maintain
from sharelens.cli import main
from sharelens.lake.errors import LakeError
from sharelens.lake.lake import Lake
from sharelens.lake.scan import open_lake
from tests.datasets import dataset, kinds_first
from tests.depths import in_soak
from tests.lakes import CONTENT, content, differences
from tests.processes.in_process import make_lake, recorded_lake
from tests.processes.interrupted_run import lake_and_logs
from tests.processes.s3_server import S3Server
from tests.processes.store_servers import put_folder

QUESTIONS = (
    ["state"],
    ["overview"],
    ["lag"],
    ["timeline", "--group", "g-explicit"],
    ["sql", "--query", "lag_now"],
    ["status"],
    ["groups"],
    ["records", "--limit", "20"],
)


def assert_same(left_lake: str | Path, right: str | Path) -> None:
    """Fails with the tables that differ."""
    lines = differences(content(left_lake), content(right))
    assert not lines, "\n".join(lines)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("scenario", kinds_first(("dlq", "streams")))
def test_the_lake_of_a_recorded_log_is_that_on_a_path_table_by_table(scenario: str, bucket: str) -> None:
    make_lake(bucket, dataset(scenario) / "logs")
    assert_same(bucket, recorded_lake(scenario))
    assert len(CONTENT) > 30


def test_an_increment_is_the_same_as_one_run(bucket: str, tmp_path: Path) -> None:
    _, logs = lake_and_logs(tmp_path)
    make_lake(tmp_path / "whole", logs)
    make_lake(bucket, logs, until_ms=0)
    make_lake(bucket, logs)
    assert_same(bucket, tmp_path / "whole")


@pytest.mark.parametrize(
    "question", [*QUESTIONS[:2], *in_soak(*QUESTIONS[2:])], ids=[question[0] for question in QUESTIONS]
)
def test_questions_have_the_same_answer(
    question: list[str], lake_of_basic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    local = str(recorded_lake("basic"))
    command = [question[0], "--lake", local, *question[1:], "--output", "json"]
    code = main(command)
    on_a_path = capsys.readouterr().out.replace(local, "LAKE")
    assert main([lake_of_basic if word == local else word for word in command]) == code == 0
    in_a_bucket = capsys.readouterr().out.replace(lake_of_basic, "LAKE")
    if question[0] in ("status", "overview"):  # they say when the lake was published
        assert set(json.loads(in_a_bucket)) == set(json.loads(on_a_path))
    else:
        assert in_a_bucket == on_a_path


@pytest.mark.soak
def test_upkeep_joins_files_removes_old_ones_and_keeps_the_rows(
    s3: S3Server, bucket: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, logs = lake_and_logs(tmp_path)
    make_lake(bucket, logs, until_ms=0)
    make_lake(bucket, logs)
    before = content(bucket)
    done = maintain(MaintainOptions(lake=Lake(bucket), dry_run=False))
    assert sum(table.files_after for table in done.tables) < sum(table.files_before for table in done.tables)
    tomorrow = max(entry.modified_ms for entry in Lake(bucket).log("gold.publication")) + 86_400_000
    s3.requests()
    done = maintain(MaintainOptions(lake=Lake(bucket), dry_run=False, window_ms=1, now_ms=tomorrow))
    removed = sum(table.vacuumed_files + table.log_files for table in done.tables)
    assert removed > 0
    assert sum(line.startswith("POST") and "delete" in line for line in s3.requests()) == removed
    assert not differences(content(bucket), before)
    assert main(["check", "--lake", bucket, "--whole"]) == 0
    capsys.readouterr()


@pytest.mark.soak
def test_an_evidence_folder_of_a_lake_in_a_bucket_is_verified_against_it(
    lake_of_basic: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(tmp_path / "evidence")
    lake = ["--lake", lake_of_basic]
    secret = ["--storage-option", "aws_secret_access_key=not-to-be-shown"]
    times = ["--from", "2020-01-01T00:00:00Z", "--to", "2030-01-01T00:00:00Z"]
    assert main(["evidence", *lake, *secret, "--group", "g-explicit", *times, "--case", "1", "--out", folder]) == 0
    assert main(["verify", folder, *lake]) == 0
    assert "not-to-be-shown" not in capsys.readouterr().out
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"not-to-be-shown" in path.read_bytes()]


@pytest.mark.soak
def test_a_report_of_a_lake_in_a_bucket_is_written(lake_of_basic: str, tmp_path: Path) -> None:
    assert main(["report", "--lake", lake_of_basic, "--out", str(tmp_path / "report.html")]) == 0
    assert (tmp_path / "report.html").stat().st_size > 10_000


@pytest.mark.soak
def test_a_run_on_spark_is_the_same_and_shows_no_secret(s3: S3Server, bucket: str, tmp_path: Path) -> None:
    """The logs lie in a bucket, too.

    Options of the command line get into the environment of the driver, where the JVM and its workers find them.
    """
    logs = put_folder(dataset("basic") / "logs", f"s3://{s3.new_bucket()}/broker-1")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    options = [f"{name.lower()}={value}" for name, value in s3.environment().items()]
    events = tmp_path / "events"
    events.mkdir()
    command = [
        *(sys.executable, "-m", "sharelens", "run", "--lake", bucket, "--log-dir", logs, "--master", "local[2]"),
        *("--conf", "spark.eventLog.enabled=true", "--conf", f"spark.eventLog.dir={events}"),
        *("--conf", "spark.eventLog.compress=false"),
        *(word for option in options for word in ("--storage-option", option)),
    ]
    driver = subprocess.Popen(
        command,
        env=environment | {"SHARELENS_IN_PROCESS_BYTES": "0", "SHARELENS_ENV": "test"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with ThreadPoolExecutor(1) as pool:
        output = pool.submit(driver.communicate)
        commands: set[str] = set()
        while not output.done():
            commands |= command_lines()
            time.sleep(0.05)
    summary, messages = output.result()
    assert driver.returncode == 0, messages
    assert "spark" in json.loads(summary)["engine"].values()
    assert any("java" in command for command in commands)
    plans = [path.read_bytes().decode(errors="replace") for path in events.rglob("*") if path.is_file()]
    assert any("mapInArrow" in plan or "MapInArrow" in plan for plan in plans)
    # The driver has what the user typed, and so has each process that it forks, until it executes its own program.
    commands.discard("".join(f"{word}\0" for word in command))
    for text in (summary, messages, *commands, *plans):
        assert "not-to-be-shown" not in text
    assert_same(bucket, recorded_lake("basic"))


def command_lines() -> set[str]:
    """The command lines of all processes of this machine."""
    lines = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            lines.add((folder / "cmdline").read_bytes().decode(errors="replace"))
    return lines


def test_a_folder_with_other_things_is_refused_before_anything_is_written(s3: S3Server, bucket: str) -> None:
    with Lake(bucket).storage.create("notes.txt") as file:
        file.write(b"ours")
    s3.requests()
    with pytest.raises(LakeError, match="holds no lake"):
        open_lake(bucket)
    with pytest.raises(JobError, match=r"holds other things \(notes.txt\) and no lake"):
        make_lake(bucket, dataset("basic") / "logs")
    assert not [line for line in s3.requests() if line.startswith(("PUT", "POST", "DELETE"))]
