"""The completion of docs/how-to/install.md works in bash as printed."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "install.md").read_text(encoding="utf-8")
ASK = """
. ~/.bashrc
COMP_WORDS=({words}) COMP_CWORD={last}
_sharelens_completion sharelens
echo "${{COMPREPLY[@]}}"
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "last", "offered"),
    [("sharelens st", 1, "stalled state status"), ("sharelens state --output j", 3, "json jsonl")],
)
def test_completion_in_bash(words: str, last: int, offered: str, tmp_path: Path) -> None:
    command = tmp_path / "sharelens"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c \'from sharelens.cli import main; main()\' "$@"\n')
    command.chmod(0o700)
    (block,) = re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
    environment = {**os.environ, "HOME": str(tmp_path), "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", block + ASK.format(words=words, last=last)], env=environment, capture_output=True, text=True
    )
    assert (done.stdout.strip(), done.stderr) == (offered, "")


def test_the_container_file_names_files_and_extras_that_exist() -> None:
    text = (ROOT / "Containerfile").read_text(encoding="utf-8")
    extras = re.search(r"sharelens\[([a-z,]+)\]", text)
    assert extras is not None
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert all(re.search(rf"(?m)^{extra} = ", project) for extra in extras[1].split(","))
    assert all((ROOT / name).exists() for name in re.findall(r"(?m)^COPY ([a-z.]+) ", text))
