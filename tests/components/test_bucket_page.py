"""The commands of the pages about lakes and logs in buckets, as printed, with a bucket and credentials of the test."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.datasets import dataset
from tests.pages import DOCS, blocks
from tests.processes.s3_server import S3Server
from tests.processes.store_servers import put_folder

PAGE = DOCS / "how-to" / "keep-a-lake-in-a-bucket.md"
LOG_PAGE = DOCS / "how-to" / "copy-a-log.md"
LOG, BUCKET = "/var/kafka-copy", "s3://forensics"


def test_the_commands_of_the_page_run(s3: S3Server, tmp_path: Path) -> None:
    commands = [command for block in blocks(PAGE) for command in block.commands]
    assert any(BUCKET in command and LOG in command for command in commands)
    script = "".join(commands).replace(LOG, str(dataset("basic") / "logs")).replace(BUCKET, f"s3://{s3.new_bucket()}")
    lines = [line for line in script.splitlines() if not line.startswith("export ")]
    assert "g-implicit" in output_of("\n".join(lines), tmp_path)


@pytest.mark.soak
def test_the_commands_about_logs_in_a_bucket_run(s3: S3Server, tmp_path: Path) -> None:
    bucket = f"s3://{s3.new_bucket()}"
    for broker in ("broker-1", "broker-2"):
        put_folder(dataset("basic") / "logs", f"{bucket}/{broker}")
    commands = [command for block in blocks(LOG_PAGE) for command in block.commands if "--log-dir s3://" in command]
    assert len(commands) == 1
    assert "4 state partitions" in output_of("".join(commands).replace("s3://BUCKET", bucket), tmp_path)


def output_of(script: str, folder: Path) -> str:
    """What a script prints; each command succeeds."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder, env=os.environ | {"PATH": path}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
