"""The folder for files that are fetched or generated once: jars, the Java launcher, the class archive."""

import functools
import os
import sys
import tempfile
from pathlib import Path


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
