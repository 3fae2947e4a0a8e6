"""The bounds of what a question reads, sizes in words, and the refusal of logs that are too large for an answer."""

from state_model.errors import SharelensError

WORKERS = 2
"""The most threads that read and compute for a question."""
PART_RECORDS = 1 << 17
"""Records of the histories in a part, about; a share partition with more is a part of its own."""
MEMORY_PER_BYTE = 4
"""Arrow bytes that may be kept for each byte of log allowed (decoded records are larger than the log)."""


class TooMuchError(SharelensError):
    """Raised when more would have to be read than --max-bytes allows."""


def size_text(size: int) -> str:
    """`17 MiB`; in bytes below one."""
    return f"{size} bytes" if size < 1 << 20 else f"{size >> 20} MiB"


def too_much(problem: str) -> TooMuchError:
    """The refusal of a log that is too large for an instant answer, with the ways on."""
    return TooMuchError(
        f"{problem}; name one share partition (--group, --topic, --partition), raise --max-bytes, "
        "or make a lake with `sharelens run --log-dir ... --lake DIR` and ask it with --lake DIR"
    )
