"""A running cluster needs a library that an installation can lack."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow


def test_without_the_library_the_command_names_the_extra():
    code = (
        "import sys\n"
        "sys.modules['kafka'] = None\n"
        "from sharelens.cli import main\n"
        "sys.exit(main(['state', '--bootstrap-server', '127.0.0.1:1']))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "pip install 'sharelens[live]'" in done.stderr
