"""Answers of one process to many command lines: a program for any environment with sharelens, and its caller.

The program reads JSON on stdin: the command lines, and a folder of compiled kernels that takes the place of the
package's (null: that one). It imports nothing of the tests.
"""

import contextlib
import io
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

Answer = tuple[int, str, str]
"""Exit code, stdout and stderr."""


def answers_of(
    python: Path, lines: Sequence[Sequence[str]], variables: Mapping[str, str], kernels: Path | None = None
) -> list[Answer]:
    """What a Python prints for command lines of sharelens."""
    done = subprocess.run(
        [python, Path(__file__)],
        input=json.dumps([[list(map(str, words)) for words in lines], None if kernels is None else str(kernels)]),
        env=dict(variables), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return [(code, out, err) for code, out, err in json.loads(done.stdout)]


def _answer(words: Sequence[str]) -> Answer:
    from sharelens.cli import main

    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    return code, out.buffer.getvalue().decode(), err.buffer.getvalue().decode()


def _program() -> None:
    lines, folder = json.load(sys.stdin)
    if folder is not None:
        from state_model.columnar import kernels

        kernels.SHIPPED = Path(folder)
    sys.stdout.write(json.dumps([_answer(words) for words in lines]))


if __name__ == "__main__":
    _program()
