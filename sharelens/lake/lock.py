"""One writer for each lake: a flock on LAKE/.lock. The JVM that a killed driver may leave behind is ended first."""

import errno
import fcntl
import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sharelens.lake.commit import fence
from sharelens.lake.errors import LakeError, LakeLockedError
from sharelens.lake.lake import Lake
from sharelens.lake.lease import Lease, acquire
from sharelens.lake.object_storage import ObjectStorage

POLL_S = 0.1
NOT_WRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS)


class LakeLock:
    """The lock of a writer; `note_jvm` records the JVM that the next writer ends if this one is killed.

    `changed_hands`: another process, or another `Lake` of this one, had the lock since this `Lake` released it, or an
    error ended that.
    """

    def __init__(self, handle: int, *, changed_hands: bool) -> None:
        self._handle = handle
        self.changed_hands = changed_hands

    def note_jvm(self, pid: int) -> None:
        """Writes the process id of the JVM that writes for this run."""
        _describe(self._handle, pid)


@contextmanager
def hold(lake: Lake, timeout_s: float) -> Iterator[LakeLock | Lease]:
    """Holds the lake for writing; the folder must exist. In an object store, a lease takes the lock's place.

    Raises:
        LakeLockedError: somebody else still held it after `timeout_s` seconds; the message says who.
        LakeError: this user can't write it, or it was removed or replaced, in place of the error that this led to.
    """
    if isinstance(lake.storage, ObjectStorage):
        with _hold_lease(lake, lake.storage, timeout_s) as lease:
            yield lease
        return
    handle = _acquire(lake, time.monotonic() + timeout_s)
    try:
        changed_hands = lake.last_hold != os.fstat(handle).st_mtime_ns
        _describe(handle, None)
        lake.last_hold = None
        folder = os.stat(lake.storage.root)
        lake.hold(is_held=True)
        try:
            yield LakeLock(handle, changed_hands=changed_hands)
        except Exception as error:
            if not _is_at(lake.storage.root, folder):
                text = "was removed or replaced by another process while this one wrote it"
                raise LakeError(f"{lake} {text}; `sharelens run` writes a new one from the logs") from error
            raise
        finally:  # a run that ends commits no more: only a killed one leaves its JVM's name
            os.ftruncate(handle, 0)
            lake.hold(is_held=False)
        lake.last_hold = os.fstat(handle).st_mtime_ns
    finally:
        os.close(handle)


@contextmanager
def _hold_lease(lake: Lake, storage: ObjectStorage, timeout_s: float) -> Iterator[Lease]:
    """Holds a lake in an object store; a lease that is taken over from its owner is fenced first."""
    holding, before = acquire(storage, str(lake), time.monotonic() + timeout_s)
    is_taken_over = before is not None and before.pid is not None
    is_next = lake.last_hold is not None and holding.token == lake.last_hold + 1
    least = -1 if before is None else before.published
    lease = Lease(storage, str(lake), holding, changed_hands=not is_next, least_published=least)
    is_fenced = not is_taken_over
    try:
        lake.lease = lease
        if is_taken_over:
            lake.forget()
            fence(lake, lease.token)
            is_fenced = True
        yield lease
    finally:
        lake.lease = None
        lease.end()
        if is_fenced:  # else the next writer takes over too, and does it
            lease.give_back()
            lake.last_hold = lease.token


def _acquire(lake: Lake, deadline: float) -> int:
    """The locked file of a lake; one that was removed or replaced while it was waited for keeps no other writer out."""
    path = os.path.join(lake.storage.root, ".lock")
    while True:
        handle = _open(path, lake)
        try:
            _lock(handle, lake, deadline)
            is_current = _is_at(path, os.fstat(handle), follows_links=False)
        except BaseException:
            os.close(handle)
            raise
        if is_current:
            return handle
        os.close(handle)


def _open(path: str, lake: Lake) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        if error.errno == errno.ELOOP:
            text = f"{path} is a link, and a lock is a file of the lake's own; look who made it, and remove it"
            raise LakeError(text) from error
        if error.errno not in NOT_WRITABLE:
            raise
        text = f"{lake} can't be written ({path}: {error.strerror})"
        raise LakeError(f"{text}; make the folder writable for this user, or name another lake") from error


def _is_at(path: str, status: os.stat_result, *, follows_links: bool = True) -> bool:
    """Whether a file or folder is the one at a path."""
    try:
        return os.path.samestat(os.stat(path, follow_symlinks=follows_links), status)
    except FileNotFoundError:
        return False


def _lock(handle: int, lake: Lake, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise LakeLockedError(
                    f"{lake} is held by {_holder(handle)}; wait for it, or raise --lock-timeout"
                ) from None
            time.sleep(POLL_S)
    _end_jvm(_read(handle), lake, deadline)


def _end_jvm(before: dict[str, object], lake: Lake, deadline: float) -> None:
    """Ends the JVM of a killed driver, which works for nobody: most end by themselves, but one in a shutdown may hang.

    One that the lock file does not tell from a process with the same id is waited for, as is another user's.
    """
    jvm = before.get("jvm")
    if not isinstance(jvm, int) or not _is_java(jvm):
        return
    if before.get("host") == socket.gethostname() and before.get("jvm_started") == _started(jvm) is not None:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(jvm, signal.SIGKILL)
    while _is_java(jvm):
        if time.monotonic() >= deadline:
            raise LakeLockedError(f"{lake}: Java process {jvm} of a run that was killed still runs; end it, or wait")
        time.sleep(POLL_S)


def _is_java(pid: int) -> bool:
    """Whether `pid` is a live Java process of this host (process ids are reused)."""
    try:
        return "java" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode(errors="replace")
    except OSError:
        return False


def _started(pid: int) -> int | None:
    """When a process of this host began, in clock ticks since the start of the system; None when it has ended."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return None


def _describe(handle: int, jvm: int | None) -> None:
    text = json.dumps(
        {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "jvm": jvm,
            "jvm_started": None if jvm is None else _started(jvm),
            "since_ms": time.time_ns() // 1_000_000,
        }
    )
    os.ftruncate(handle, 0)
    os.pwrite(handle, text.encode(), 0)


def _read(handle: int) -> dict[str, object]:
    try:
        content = json.loads(os.pread(handle, 4096, 0) or b"{}")
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _holder(handle: int) -> str:
    content = _read(handle)
    return f"process {content.get('pid', '?')} on {content.get('host', '?')}"
