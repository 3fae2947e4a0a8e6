"""Files that a command writes for its owner alone: whole or not at all."""

from pathlib import Path

from sharelens.lake.whole_file import write_whole
from state_model.errors import SharelensError


def ensure_free(*paths: Path, force: bool) -> None:
    """Refuses, before there is anything to write, files that can't be written or are there already.

    Raises:
        SharelensError: a file is there and `force` is not given, or its folder is not.
    """
    for path in paths:
        if not path.parent.is_dir():
            raise SharelensError(f"can't write {path}: there is no folder {path.parent}")
        if path.is_dir():
            raise SharelensError(f"can't write {path}: it is a folder")
        if path.exists() and not force:
            raise SharelensError(f"{path} is there already; give another name, or --force to replace it")


def write_private(path: Path, content: bytes) -> None:
    """Writes a file of mode 0600 in one step: a reader sees the old one or the new one, never a part.

    Raises:
        SharelensError: it can't be written.
    """
    try:
        write_whole(path, content)
    except OSError as error:
        raise SharelensError(f"can't write {path}: {error.strerror or error}") from error
