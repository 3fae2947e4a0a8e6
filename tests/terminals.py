"""Commands on a real pseudo-terminal: many screens of one process."""

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
MARK = "\x1e"
SEVERAL = """
import json, sys
from sharelens.cli import main
for command in json.loads(sys.argv[1]):
    code = main(command)
    sys.stdout.write(f"exit {code}" + sys.argv[2])
    sys.stdout.flush()
"""
"""A program that runs several commands in one process."""


def screens(*commands: Sequence[str], columns: int = 80, folder: Path | None = None, codes: bool = False) -> list[str]:
    """What each command writes on a terminal of so many columns, stderr among it, in a folder.

    Each must exit 0; with `codes` the last line has its exit code.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    names = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | {"PYTHONPATH": str(ROOT)}
    arguments = [sys.executable, "-c", SEVERAL, json.dumps(commands), MARK]
    with subprocess.Popen(
        arguments, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=names, cwd=folder
    ) as process:
        os.close(theirs)
        written = b""
        try:
            while part := os.read(ours, 1 << 16):
                written += part
        except OSError:  # the other side is closed
            pass
        os.close(ours)
    *outputs, rest = written.decode().replace("\r\n", "\n").split(MARK)
    assert process.returncode == 0, rest
    shown = [output.rpartition("exit ") for output in outputs]
    assert codes or [code for *_, code in shown] == ["0"] * len(commands), outputs
    return [text + (f"exit {code}" if codes else "") for text, _, code in shown]
