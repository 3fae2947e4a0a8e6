"""Where what was fetched or generated once is kept: jars, the Java launcher, the class archive. Never inside a lake."""

import functools
import os
import stat
import sys
import tempfile
from pathlib import Path

from state_model.errors import SharelensError


@functools.cache
def keep_folder() -> Path:
    """A private folder that outlives the process.

    `share/sharelens` of the Python environment when it may be written there (it goes away with the environment), else
    the user's cache folder, else a fresh temporary folder.
    """
    home_cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "sharelens"
    in_environment = Path(sys.prefix) / "share" / "sharelens"
    places = [in_environment, home_cache] if sys.prefix != sys.base_prefix else [home_cache]
    for place in places:
        try:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(place, os.W_OK | os.X_OK):
            return place
    return Path(tempfile.mkdtemp(prefix="sharelens-keep-"))


def write_whole(target: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Put a file in place at once: a reader, or another process that writes the same, sees all of it or nothing.

    Raises:
        SharelensError: a device, a pipe, a link or a folder is there: it would be replaced, not written to.
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
