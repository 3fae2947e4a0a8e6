"""Commands on a real pseudo-terminal."""

import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).parents[2]
LONGEST_S = 60
MARK = "\x1e"
SEVERAL = """
import json, sys, termios
from sharelens.cli import main
for columns in json.loads(sys.argv[3]):
    termios.tcsetwinsize(1, (50, columns))
    for command in json.loads(sys.argv[1]):
        code = main(command)
        sys.stdout.write(f"exit {code}" + sys.argv[2])
        sys.stdout.flush()
"""
"""A program that runs several commands in one process, on terminals of several widths."""


class Terminal:
    """A command on a pseudo-terminal of its own: its stdout and stderr, unless `options` of Popen say otherwise.

    The command is ended with the block, in any case.
    """

    def __init__(self, command: Sequence[str], columns: int = 80, **options: Any) -> None:
        self._side, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        streams = {"stdin": subprocess.DEVNULL, "stdout": other, "stderr": other} | options
        self.process: subprocess.Popen[bytes] = subprocess.Popen(command, **streams)
        os.close(other)
        self._written = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._side)

    def text(self, enough: Callable[[str], bool] = lambda _: False, longest_s: float = LONGEST_S) -> str:
        """What the command has written: up to its end, or until it is enough."""
        end_s = time.monotonic() + longest_s
        while not enough(self._text()) and time.monotonic() < end_s:
            if not select.select([self._side], [], [], 0.1)[0]:
                continue
            try:
                self._written += os.read(self._side, 1 << 16)
            except OSError:  # the other side is closed
                break
        return self._text()

    def _text(self) -> str:
        return self._written.decode(errors="replace").replace("\r\n", "\n")


def screens(*commands: Sequence[str], columns: int = 80, folder: Path | None = None, codes: bool = False) -> list[str]:
    """What each command writes on a terminal of so many columns, stderr among it, in a folder.

    Each must exit 0; with `codes` the last line has its exit code.
    """
    return screens_of_widths(commands, [columns], folder, codes=codes)[columns]


def screens_of_widths(
    commands: Sequence[Sequence[str]], widths: Sequence[int], folder: Path | None = None, *, codes: bool = False
) -> dict[int, list[str]]:
    """`screens` on terminals of several widths."""
    variables = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | {"PYTHONPATH": str(ROOT)}
    arguments = [sys.executable, "-c", SEVERAL, json.dumps(commands), MARK, json.dumps(widths)]
    with Terminal(arguments, widths[0], env=variables, cwd=folder) as terminal:
        *outputs, rest = terminal.text(longest_s=LONGEST_S * len(widths)).split(MARK)
        assert terminal.process.wait(LONGEST_S) == 0, rest
    shown = [output.rpartition("exit ") for output in outputs]
    assert codes or [code for *_, code in shown] == ["0"] * len(commands) * len(widths), outputs
    texts = [text + (f"exit {code}" if codes else "") for text, _, code in shown]
    return {width: texts[place * len(commands) :][: len(commands)] for place, width in enumerate(widths)}
