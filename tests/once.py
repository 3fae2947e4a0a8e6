"""What a test run makes once: folders that all its workers share and that go away with it."""

import atexit
import fcntl
import os
import pickle
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

Value = TypeVar("Value")
RUN_FOLDER_VARIABLE = "SHARELENS_TEST_RUN_FOLDER"


def run_folder() -> Path:
    """The folder of this test run; whoever asks first makes it, hands it to child processes and removes it."""
    inherited_path = os.environ.get(RUN_FOLDER_VARIABLE)
    if inherited_path:
        return Path(inherited_path)
    new_folder = Path(tempfile.mkdtemp(prefix="sharelens-tests-"))
    os.environ[RUN_FOLDER_VARIABLE] = str(new_folder)
    atexit.register(_remove, new_folder, os.getpid())
    return new_folder


def made_once(name: str, make: Callable[[Path], object]) -> Path:
    """The folder `name` of the test run, filled by `make` when it is first asked for; other workers wait meanwhile.

    Tests share it: read it, or copy what is to be changed.
    """
    target = run_folder() / name
    if target.is_dir():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_name(f"{target.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.is_dir():
            partial = Path(tempfile.mkdtemp(prefix=f"{target.name}.", dir=target.parent))
            make(partial)
            partial.rename(target)
    return target


def computed_once(name: str, compute: Callable[[], Value]) -> Value:
    """What `compute` returns, computed once a test run under `name`; all workers read it from a file."""
    folder = made_once(name, lambda folder: (folder / "value").write_bytes(pickle.dumps(compute())))
    value: Value = pickle.loads((folder / "value").read_bytes())
    return value


def _remove(folder: Path, owner_pid: int) -> None:
    if os.getpid() == owner_pid:  # a forked child runs this too
        shutil.rmtree(folder, ignore_errors=True)
