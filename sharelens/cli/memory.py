"""A bound of the memory that a command allocates, whatever library does it."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

STATUS = Path("/proc/self/status")
ALLOCATED = "VmData:"
ROOM_BYTES = 512 << 20
"""For what is no data of the answer: code of libraries, stacks of threads, batches on their way to the output."""


@contextmanager
def bounded_memory(most_bytes: int) -> Iterator[None]:
    """Lets this process allocate `most_bytes` and ROOM_BYTES more than it has, and no more (RLIMIT_DATA).

    Without /proc nothing bounds it.
    """
    allocated_bytes = _allocated_bytes()
    if allocated_bytes is None:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    bounds = (bound for bound in (soft, allocated_bytes + most_bytes + ROOM_BYTES) if bound != resource.RLIM_INFINITY)
    resource.setrlimit(resource.RLIMIT_DATA, (min(bounds), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _allocated_bytes() -> int | None:
    """Bytes of memory of the process's own data; None where the system does not say."""
    try:
        lines = STATUS.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith(ALLOCATED)), None)
