"""The log of the demo, made on the spot: a light broker whose answers get lost now and then, a producer, and share
consumers that find records they can't get done.
"""

import importlib.util
import json
import select
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sharelens.output import say, tell
from sharelens.shell import shell_line
from state_model.errors import SharelensError

NEEDED = ("kio", "prometheus_client", "confluent_kafka")
START_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 30.0
# Short locks and frequent heartbeats: nobody wants to wait for a demo.
SETTINGS = (
    "group.share.heartbeat.interval.ms=500",
    "group.share.min.heartbeat.interval.ms=500",
    "group.share.record.lock.duration.ms=1500",
    "group.share.min.record.lock.duration.ms=1000",
    "group.share.min.session.timeout.ms=3000",
)
FAULT = "api=ShareAcknowledge,action=lose,after=4,count=4,probability=0.5,seed=1"
RECORDS, SEED = "400", "1"
WIDTH = 100
"""Columns of the demo's text where nobody sees a terminal."""

RecordPlace = tuple[str, str, int, int]
"""Group, topic, partition, offset."""


class DemoError(SharelensError):
    """Raised when the broker or the workload of the demo fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """Result of the workload: a log directory, and the record with the most deliveries."""

    log_dir: Path
    record: RecordPlace


def missing_packages() -> list[str]:
    """The packages that a broker and its clients still need."""
    return [name for name in NEEDED if importlib.util.find_spec(name) is None]


def make_incident(folder: Path) -> Incident:
    """Runs the broker and a workload, and ends both; prints each command. Raises DemoError."""
    log_dir, journal = folder / "log", folder / "journal.jsonl"
    say("")
    say("# a broker without a JVM, which loses some of its answers to acknowledgements")
    with _broker(log_dir, folder / "broker.txt") as bootstrap:
        say("")
        say("# a producer and two share consumers; some records are poison: every delivery of them fails")
        _workload(bootstrap, journal)
    say("")
    say("# the broker is stopped; what it leaves are segments as Kafka writes them")
    return Incident(log_dir=log_dir, record=most_delivered(journal))


def most_delivered(journal: Path) -> RecordPlace:
    """The record with the highest delivery count in a journal, the first of equals. Raises DemoError without any."""
    best, max_delivery_count = None, 0
    with journal.open(encoding="utf-8") as lines:
        for line in lines:
            entry = json.loads(line)
            if entry["event"] == "delivery" and entry["delivery_count"] > max_delivery_count:
                best, max_delivery_count = entry, entry["delivery_count"]
    if best is None:
        raise DemoError(
            "no consumer received a record; a machine under load is too slow for the demo's short locks: run it again, "
            "or with --set basic, which takes a recorded log"
        )
    return best["group"], best["topic"], best["partition"], best["offset"]


@contextmanager
def _broker(log_dir: Path, problems: Path) -> Iterator[str]:
    """A broker's address; it is ended with the block."""
    settings = [word for setting in SETTINGS for word in ("--set", setting)]
    arguments = ["broker", "start", "--listen", "127.0.0.1:0", "--log-dir", str(log_dir), "--fault", FAULT, *settings]
    with (
        problems.open("wb") as stderr,
        subprocess.Popen(_command(arguments), stdout=subprocess.PIPE, stderr=stderr, text=True) as process,
    ):
        try:
            line = _first_line(process)
            if not line.startswith("ready: "):
                raise DemoError(f"the broker did not start: {problems.read_text(encoding='utf-8').strip()[-300:]}")
            tell(line.rstrip("\n"))
            yield line.split()[1]
        finally:
            process.terminate()
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()


def _workload(bootstrap: str, journal: Path) -> None:
    arguments = ["workload", "--bootstrap-server", bootstrap, "--profile", "poison"]
    command = _command([*arguments, "--records", RECORDS, "--seed", SEED, "--journal", str(journal)])
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    for line in done.stdout.splitlines():
        tell("\n".join(textwrap.wrap(line, WIDTH)))
    if done.returncode != 0:
        raise DemoError(f"the workload ended with {done.returncode}")


def _command(arguments: Sequence[str]) -> list[str]:
    """Runs a sharelens command in a process of its own, and prints it as a user would type it."""
    print_command(arguments)
    return [sys.executable, "-m", "sharelens", *arguments]


def print_command(words: Sequence[str]) -> None:
    """Prints a command of sharelens as a user would type it."""
    sys.stdout.flush()
    for number, line in enumerate(command_lines(words)):
        say(line if number else f"$ {line}")


def command_lines(words: Sequence[str]) -> list[str]:
    """A command of sharelens in lines of at most WIDTH columns, each but the last with a backslash at its end."""
    line = shell_line(["sharelens", *words])
    *lines, last = textwrap.wrap(
        line, WIDTH - 4, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )
    return [*(f"{part} \\" for part in lines), last]


def _first_line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    end_s = time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < end_s:
        if select.select([process.stdout], [], [], 0.5)[0]:
            return process.stdout.readline()
    return ""
