"""A `sharelens` that dies once: python tests/dags/killed_once.py MARK POINT WORDS...

The first call that comes to the crash point leaves the file MARK and kills itself there; all others are the command.
"""

import os
import signal
import sys
from pathlib import Path

from sharelens.cli import main
from sharelens.lake import crash_points

mark, point, *words = sys.argv[1:]
try:
    with crash_points.arm(None if Path(mark).exists() else point):
        raise SystemExit(main(words))
except crash_points.CrashPointReached:
    Path(mark).touch()
    os.kill(os.getpid(), signal.SIGKILL)
