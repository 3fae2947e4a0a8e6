"""The times of a log directory's files, as a broker leaves them and a copy keeps them."""

import os
from pathlib import Path

SEGMENTS, CHECKPOINTS, FOLDERS = "*/*.log", "*-offset-checkpoint", "*/partition.metadata"


def set_times(logs: Path, *, appended_ms: int, checkpoint_ms: int, created_ms: int = 0) -> Path:
    """Sets when segments were last appended to, and checkpoints and partition.metadata written; the directory."""
    for pattern, time_ms in ((SEGMENTS, appended_ms), (CHECKPOINTS, checkpoint_ms), (FOLDERS, created_ms)):
        for path in logs.glob(pattern):
            os.utime(path, ns=(time_ms * 1_000_000,) * 2)
    return logs
