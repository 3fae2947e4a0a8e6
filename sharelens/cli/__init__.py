"""The command line: one module a family of commands; everything heavy is imported inside the commands."""

from sharelens.cli.app import main

__all__ = ["main"]
