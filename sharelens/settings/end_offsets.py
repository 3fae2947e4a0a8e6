"""The file behind --end-offsets: what kafka-get-offsets prints, a line `topic:partition:offset` for each partition."""

import re

from sharelens.parameters.filters import LAST_PARTITION
from sharelens.settings.text_files import read_text_file
from state_model.errors import UsageError

LARGEST_OFFSET = 2**63 - 1
LINE = re.compile(r"(?P<topic>[^:\s]+):(?P<partition>[0-9]{1,10}):(?P<offset>[0-9]{0,19})")


def read_end_offsets(path: str, option: str = "--end-offsets") -> dict[tuple[str, int], int]:
    """End offsets by (topic name, partition); lines without an offset, which the tool prints too, are skipped.

    Raises:
        SharelensError: the file can't be read.
        UsageError: a line is not `topic:partition:offset`.
    """
    lines = read_text_file(path, option, "lines of topic:partition:offset").splitlines()
    ends: dict[tuple[str, int], int] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        topic, partition, offset = _parts(line.strip(), f"{option}: line {number} of {path}")
        if offset is not None:
            ends[topic, partition] = offset
    return ends


def optional_end_offsets(end_offsets: str | None) -> dict[tuple[str, int], int] | None:
    """What `read_end_offsets` reads from a file; None without one."""
    return None if end_offsets is None else read_end_offsets(end_offsets)


def _parts(line: str, where: str) -> tuple[str, int, int | None]:
    match = LINE.fullmatch(line)
    if match is None or int(match["partition"]) > LAST_PARTITION or int(match["offset"] or 0) > LARGEST_OFFSET:
        raise UsageError(f"{where} is not topic:partition:offset, as kafka-get-offsets prints it")
    return match["topic"], int(match["partition"]), int(match["offset"]) if match["offset"] else None
