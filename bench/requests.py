"""Requests to an object store: each stage of a first run, a run without news and one over 1 % more, against moto.

Each command is a process of its own, which opens its tables again; one process for all stages sends fewer requests.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from bench import generate
from bench.measure import sharelens
from tests.processes.s3_server import S3Server, s3_server

RECORDS, SHARE_PARTITIONS, STATE_PARTITIONS = 100_000, 20, 5
STAGES = ("ingest", "decode", "replay", "measure", "audit-log", "publish")
IN_ONE_PROCESS = {"SHARELENS_IN_PROCESS_BYTES": str(1 << 40)}
"""Without Spark, so that the requests are those of one process a command."""


def lines(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Name, figure and note of each command."""
    log = folder / "log-requests"
    generate.generate(
        log,
        shape="hot",
        records=RECORDS,
        share_partition_count=SHARE_PARTITIONS,
        state_partitions=STATE_PARTITIONS,
    )
    with s3_server() as server:
        lake = ["--lake", f"s3://{server.new_bucket()}/lake"]
        source = ["--log-dir", str(log)]
        for stage in STAGES:
            yield f"requests of {stage}", *_counted(server, stage, *lake, *(source if stage == "ingest" else []))
        yield "requests of a run without news", *_counted(server, "run", *lake, *source)
        appended = generate.append(log, fraction=0.01)
        yield f"requests of a run over {appended.records} more", *_counted(server, "run", *lake, *source)
        other = ["--lake", f"s3://{server.new_bucket()}/lake"]
        yield "requests of a first run in one process", *_counted(server, "run", *other, *source)


def _counted(server: S3Server, *arguments: str) -> tuple[str, str]:
    """The number of requests of a command, and how many there are of each kind."""
    server.requests()
    sharelens(*arguments, variables=server.environment() | IN_ONE_PROCESS)
    kinds = Counter(_kind(line) for line in server.requests())
    return str(kinds.total()), ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))


def _kind(line: str) -> str:
    """The method of a request; of a GET whether it lists objects."""
    method = line.partition(" ")[0]
    return "list" if method == "GET" and "list-type=" in line else method.lower()
