"""The journal of clients' events, one JSON object a line, flushed line by line, so that a killed run leaves evidence.

docs/reference/workloads.md lists the events and their fields.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Protocol, TextIO

from sharelens.broker.errors import BrokerError

LINE_BYTES_MAX: Final = 1 << 20

Entry = Mapping[str, Any]


class Write(Protocol):
    """Writes an entry (Journal.write)."""

    def __call__(self, event: str, **fields: object) -> None:
        """One entry."""


class JournalError(BrokerError):
    """Raised when a journal can't be written or read."""


def now_ms() -> int:
    """The machine's monotonic clock, which is the same in all processes, so that their events can be ordered."""
    return time.monotonic_ns() // 1_000_000


def new_file(path: Path) -> TextIO:
    """Open a new file. Raises JournalError when it exists: evidence is never overwritten."""
    try:
        return path.open("x", encoding="utf-8")
    except FileExistsError as error:
        raise JournalError(f"{path} is there already: name a new file") from error
    except OSError as error:
        raise JournalError(f"{path} can't be written: {error.strerror}") from error


class Journal:
    """Appends entries in the order of the calls, from any thread, and passes each to the listeners."""

    def __init__(self, path: Path) -> None:
        """Create the file. Raises JournalError when it exists."""
        self._file = new_file(path)
        self._lock = threading.Lock()
        self._listeners: list[Callable[[Entry], None]] = []

    def listen(self, listener: Callable[[Entry], None]) -> None:
        """Call `listener` with each entry, one at a time, after it is written."""
        self._listeners.append(listener)

    def write(self, event: str, **fields: object) -> None:
        """Append an entry with the current time, or with the time of the process that sent it."""
        with self._lock:
            entry = {"event": event, "at_ms": now_ms()} | fields
            self._file.write(json.dumps(entry, separators=(",", ":")) + "\n")
            self._file.flush()
            for listener in self._listeners:
                listener(entry)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_journal(path: Path) -> Iterator[tuple[int, Entry]]:
    """Number (from 1) and entry of each line. The last line of a killed run may be cut.

    Raises:
        JournalError: the file is missing, or a line is no entry.
    """
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(LINE_BYTES_MAX):
                number += 1
                if not line.endswith(b"\n") and not file.read(1):
                    return
                yield number, _entry(line, path, number)
    except OSError as error:
        raise JournalError(f"{path} can't be read: {error.strerror}") from error


def _entry(line: bytes, path: Path, number: int) -> Entry:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise JournalError(f"{path} line {number} is no JSON") from error
    if not isinstance(entry, dict) or not isinstance(entry.get("event"), str):
        raise JournalError(f"{path} line {number} is no entry of a journal")
    return entry
