"""The explorer as a process."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def explorer(
    evidence: str, *options: str, kind: str = "--log-dir", folder: Path | None = None
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process, in a folder, and the link that it printed."""
    words = [sys.executable, "-m", "sharelens", "explore", kind, evidence, "--port", "0", *options]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=folder) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().strip()
        finally:
            process.terminate()
