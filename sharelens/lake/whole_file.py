"""Writing one file of the local disk as a whole."""

import os
import stat
import tempfile
from pathlib import Path

from state_model.errors import SharelensError


def write_whole(target: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Puts a file in place at once: readers and other writers of the same file see the whole file or none.

    Raises:
        SharelensError: the target is a device, a pipe, a link or a folder, which would be replaced, not written to.
    """
    if os.path.lexists(target) and not stat.S_ISREG(target.lstat().st_mode):
        raise SharelensError(f"can't write {target}: what is there is no regular file; name a file")
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(partial, mode)
        os.replace(partial, target)
    except BaseException:
        Path(partial).unlink(missing_ok=True)
        raise
