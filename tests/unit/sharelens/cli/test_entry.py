"""The process of a command ends with its exit code, whatever libraries do behind Python's end."""

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import atexit, ctypes, sys
from sharelens.cli import entry

def main():
    atexit.register(print, "cleaned up")
    library = ctypes.CDLL(None)
    library.__cxa_atexit(library.abort, None, None)
    print("answered")
    if sys.argv[1] == "error":
        raise RuntimeError
    return int(sys.argv[1])

entry.main = main
entry.command()
"""


@pytest.mark.parametrize(("outcome", "code"), [("0", 0), ("3", 3), ("error", -signal.SIGABRT)])
def test_a_library_that_aborts_at_the_exit_changes_no_exit_code(outcome: str, code: int) -> None:
    """Without an exit code of the command the process ends as Python does, so the abort is seen: the test can fail."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, outcome], capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert done.stdout.splitlines() == ["answered", "cleaned up"]
