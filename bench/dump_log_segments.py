"""Kafka's own tool on the same segments: DumpLogSegments prints every record of the state log as text."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.measure import children_s
from sharelens.spark.java import find_java
from state_model.errors import SharelensError
from state_model.topics import STATE_TOPIC
from tools.kafka_tools import fetch_tools
from tools.kept_jars import ToolUnavailableError

MAIN_CLASS = "org.apache.kafka.tools.DumpLogSegments"
DUMP_TIMEOUT_S = 3600
RECORD_LINE = b"| offset: "
READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Dumped:
    """The work of the tool: records and bytes that it printed; seconds and processor time of its process, whole."""

    records: int
    printed_bytes: int
    seconds: float
    processor_s: float


def dump(log_directory: Path) -> Dumped:
    """Print all records of the state log of a directory and count them.

    Raises:
        ToolUnavailableError: no Java, no tools, or the tool failed.
    """
    segments = sorted(log_directory.glob(f"{STATE_TOPIC}-*/*.log"))
    files = ",".join(str(path) for path in segments if path.stat().st_size)
    command = [
        str(find_java().program),
        *("-cp", str(fetch_tools() / "*"), MAIN_CLASS),
        *("--share-group-state-decoder", "--print-data-log", "--files", files),
    ]
    started, before_s = time.perf_counter(), children_s()
    with (
        tempfile.TemporaryFile() as problems,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=problems) as tool,
    ):
        assert tool.stdout is not None
        records, printed = 0, 0
        for line in tool.stdout:
            printed += len(line)
            records += line.startswith(RECORD_LINE)
        code = tool.wait(DUMP_TIMEOUT_S)
        seconds = time.perf_counter() - started
        problems.seek(0)
        problem_lines = problems.read(READ_BYTES).decode(errors="replace").splitlines()
    if code != 0 or records == 0:
        raise ToolUnavailableError(
            f"DumpLogSegments printed {records} records and ended with {code}: {problem_lines[-1:]}"
        )
    processor_s = children_s() - before_s
    return Dumped(records=records, printed_bytes=printed, seconds=seconds, processor_s=processor_s)


def main(arguments: Sequence[str] | None = None) -> int:
    """Dumps the named directory and prints the figures."""
    (name,) = sys.argv[1:] if arguments is None else arguments
    try:
        dumped = dump(Path(name))
    except SharelensError as error:
        print(f"skipped: {error}", file=sys.stderr)
        return 1
    used = f"{dumped.seconds:.1f} s, {dumped.processor_s:.1f} s of processors"
    print(f"{dumped.records} records printed in {used} ({dumped.printed_bytes} bytes)")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
