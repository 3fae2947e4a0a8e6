"""The command line: one module a family of commands; everything heavy is imported inside the commands."""

import sys

try:
    from sharelens.cli.app import main
except KeyboardInterrupt:  # before `main` can handle it
    sys.stderr.write("sharelens: interrupted\n")
    raise SystemExit(130) from None

__all__ = ["main"]
