"""The command line: record, or compare two recordings."""

import argparse
import multiprocessing
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from tools.record_answers.comparing import Verdict, compare, differences
from tools.record_answers.logs import recorded_logs
from tools.record_answers.questions import SOURCES
from tools.record_answers.recording import (
    CHECKOUT,
    GENERAL,
    WrongCheckoutError,
    ensure_checkout,
    record_general,
    record_log,
)

DATA = CHECKOUT / "tests" / "data"
DIFF_LINES = 20


def main(argv: Sequence[str]) -> int:
    """Run one command line; the exit code: 0, 1 for a difference or a failure, 2 for wrong usage."""
    options = _parser().parse_args(argv)
    return _compare(options) if options.command == "compare" else _record(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tools.record_answers")
    commands = parser.add_subparsers(dest="command", required=True)
    record = commands.add_parser("record", help="record the answers to every question about the recorded logs")
    record.add_argument("--out", type=Path, required=True, help="the folder of the recording; new or empty")
    record.add_argument("--log", action="append", help=f"only this log, or {GENERAL}; repeatable")
    record.add_argument("--source", action="append", choices=SOURCES, help="only this source; repeatable")
    record.add_argument("--jobs", type=int, default=1, help="processes at once")
    record.add_argument("--data", type=Path, default=DATA, help="the folder of the packed data sets")
    comparison = commands.add_parser("compare", help="compare two recordings")
    comparison.add_argument("before", type=Path)
    comparison.add_argument("after", type=Path)
    comparison.add_argument("--lines", type=int, default=DIFF_LINES, help="largest number of lines of a diff")
    return parser


def _record(options: argparse.Namespace) -> int:
    try:
        origin = ensure_checkout()
    except WrongCheckoutError as error:
        print(error, file=sys.stderr)
        return 2
    out = options.out.resolve()
    if out.exists() and any(out.iterdir()):
        print(f"{out} is not empty: name a new folder", file=sys.stderr)
        return 2
    logs = {log.name: log for log in recorded_logs(options.data)}
    names = options.log or [GENERAL, *logs]
    if unknown := sorted(set(names) - {GENERAL, *logs}):
        print(f"no log {', '.join(unknown)}; there are {', '.join([GENERAL, *logs])}", file=sys.stderr)
        return 2
    print(f"recording {len(names)} logs with {origin}", flush=True)
    begin_s, count, failures = time.monotonic(), 0, 0
    context = multiprocessing.get_context("spawn")
    # A process a log: what a process remembers of one log must not reach the answers about the next.
    with ProcessPoolExecutor(options.jobs, mp_context=context, max_tasks_per_child=1) as workers:
        sources = tuple(options.source or SOURCES)
        works = {
            workers.submit(record_general, out)
            if name == GENERAL
            else workers.submit(record_log, logs[name], sources, out): name
            for name in names
        }
        for work in as_completed(works):
            problem = work.exception()
            failures += problem is not None
            count += work.result() if problem is None else 0
            outcome = f"{work.result()} answers" if problem is None else f"failed: {type(problem).__name__}: {problem}"
            print(f"{time.monotonic() - begin_s:6.0f} s  {works[work]}: {outcome}", flush=True)
    print(f"{count} answers of {len(names)} logs in {time.monotonic() - begin_s:.0f} s, {failures} logs failed")
    return 1 if failures else 0


def _compare(options: argparse.Namespace) -> int:
    for folder in (options.before, options.after):
        if not folder.is_dir():
            print(f"{folder} is no folder", file=sys.stderr)
            return 2
    comparison = compare(options.before, options.after)
    if not comparison.verdicts:
        print(f"{options.before} and {options.after} have no call in common: name two recordings", file=sys.stderr)
        return 2
    for title, names in (("only before", comparison.only_before), ("only after", comparison.only_after)):
        for name in names:
            print(f"{title}: {name}")
    for name in comparison.names(Verdict.ORDER):
        print(f"order: {name}")
    for name in comparison.names(Verdict.DIFFERENT):
        print(f"different: {name}")
        for line in differences(options.before / name, options.after / name, options.lines):
            print(f"    {line}")
    print(comparison.summary())
    return 0 if comparison.is_equal else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
