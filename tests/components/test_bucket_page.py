"""The commands of the page about lakes in buckets, as they are printed, with a bucket and credentials of the test."""

import os
import subprocess
import sys
from pathlib import Path

from tests.datasets import dataset
from tests.pages import DOCS, blocks
from tests.s3_server import S3Server

PAGE = DOCS / "how-to" / "keep-a-lake-in-a-bucket.md"
LOG, BUCKET = "/var/kafka-copy", "s3://forensics"


def test_the_commands_of_the_page_run(s3: S3Server, tmp_path: Path) -> None:
    commands = [command for block in blocks(PAGE) for command in block.commands]
    assert any(BUCKET in command and LOG in command for command in commands)
    script = "".join(commands).replace(LOG, str(dataset("basic") / "logs")).replace(BUCKET, f"s3://{s3.new_bucket()}")
    lines = [line for line in script.splitlines() if not line.startswith("export ")]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(lines)],
        cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert "g-implicit" in done.stdout
