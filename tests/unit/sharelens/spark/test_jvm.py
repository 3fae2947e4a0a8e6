"""The JVM of an interrupted command, and the shell that becomes it."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

PROGRAM = """
import subprocess
from sharelens.spark.jvm import end_children
child = subprocess.Popen(["sleep", "60"])
end_children()
print(child.poll() is not None)
end_children()
"""


def test_child_processes_are_ended_at_once_and_none_is_no_error() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=30, check=False)
    assert (done.stdout, done.stderr) == ("True\n", "")
