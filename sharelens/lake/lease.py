"""One writer for each lake in an object store: a lease, an object changed by compare-and-set of its ETag.

    owner    | create or take | renew ... renew | commit: still ours? | ... | give back
    others   |   watch: unchanged for its whole term on their own monotonic clock -> take over, token + 1 -> fence

Clocks of two machines are never compared. A process may stop between its last look at the lease and its commit, for
longer than the term. So who takes over first commits to every table, with nothing but its token: a commit is one file
of a version, which the store lets only one writer create, and the stopped process can only create the version behind
the last one it has seen.
"""

import json
import os
import socket
import threading
import time
from dataclasses import dataclass, replace

from sharelens.lake.errors import LakeError, LakeLockedError
from sharelens.lake.object_storage import ObjectStorage

LEASE = ".lease"
TERM_S = 30.0
"""An owner renews its lease three times in this time; without a change for it, another process may take over."""
POLL_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Holding:
    """The content of the lease with its ETag. `pid`, `host`: of the owner, or null when it was given back.

    `writer`: a random text for each time that it is taken; "" in a lease of an older version. `published`: the newest
    version of the publications, when a run gave the lease back; -1 for unknown. An object is read as it is even where
    listings lag behind, so that the next owner knows whether one does.
    """

    token: int
    term_s: float
    pid: int | None
    host: str | None
    renewals: int
    tag: str
    writer: str
    published: int = -1

    def text(self) -> bytes:
        """The content as it is stored."""
        return json.dumps({name: getattr(self, name) for name in Holding.__slots__ if name != "tag"}).encode()

    @property
    def owner(self) -> str:
        """The owner for messages."""
        return f"process {self.pid} on {self.host}"


class Lease:
    """The lease of this process. It is renewed by a thread until it is given back.

    `changed_hands`: somebody else had the lease since this `Lake` gave it back. `least_published`: the version of the
    publications that a run gave the lease back with; `published`: the one to give it back with; -1 for unknown.
    """

    def __init__(
        self, storage: ObjectStorage, lake: str, holding: Holding, *, changed_hands: bool, least_published: int
    ) -> None:
        self.changed_hands = changed_hands
        self.least_published = least_published
        self.published = -1
        self._storage = storage
        self._lake = lake
        self._holding = holding
        self._renewed_s = time.monotonic()
        self._is_lost = False
        self._exclusive = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew_until_ended, name="lease", daemon=True)
        self._thread.start()

    @property
    def token(self) -> int:
        """The fencing token, larger than that of every earlier owner."""
        return self._holding.token

    def note_jvm(self, pid: int) -> None:
        """A JVM that outlives its driver commits nothing, so nobody has to wait for it."""

    def ensure_held(self) -> None:
        """Refuses to go on after another process has taken the lease over; renews it if that is due.

        Raises:
            LakeLockedError: it was taken over.
            LakeError: the store can't be asked.
        """
        if not self._is_lost and time.monotonic() - self._renewed_s > self._holding.term_s / 2:
            self._renew()
        if self._is_lost:
            raise LakeLockedError(
                f"{self._lake}: another process has taken the lake over, because this one did not renew its lease for "
                f"{self._holding.term_s:g} s; nothing more was committed; run again"
            )

    def end(self) -> None:
        """Ends the renewals."""
        self._ended.set()
        self._thread.join()

    def give_back(self) -> None:
        """Releases the lease, so that the next writer need not wait; call it after the renewals have ended."""
        if not self._is_lost:
            self._write(replace(self._holding, pid=None, host=None, published=self.published))

    def _renew_until_ended(self) -> None:
        while not self._ended.wait(self._holding.term_s / 3) and not self._is_lost:
            try:
                self._renew()
            except LakeError:  # the next renewal, or `ensure_held`, may reach the store again
                continue

    def _renew(self) -> None:
        with self._exclusive:
            self._write(replace(self._holding, renewals=self._holding.renewals + 1))

    def _write(self, holding: Holding) -> None:
        begun = time.monotonic()
        tag = self._storage.replace(LEASE, holding.text(), self._holding.tag)
        if tag is None:
            self._is_lost = True
        else:
            self._holding, self._renewed_s = replace(holding, tag=tag), begun


def acquire(storage: ObjectStorage, lake: str, deadline: float) -> tuple[Holding, Holding | None]:
    """The lease as it was taken, and as it was before; its owner has not given it back where it has a `pid`.

    Raises:
        LakeLockedError: somebody else still held it at the deadline (monotonic seconds); the message says who.
        LakeError: the store has no conditional put, or can't be reached.
    """
    last_holding, since = _read(storage), time.monotonic()
    while True:
        is_over = (
            last_holding is not None
            and last_holding.pid is not None
            and time.monotonic() - since >= last_holding.term_s
        )
        if last_holding is None or last_holding.pid is None or is_over:
            holding = _take(storage, last_holding)
            if holding is not None:
                return holding, last_holding
        if time.monotonic() >= deadline and last_holding is not None and last_holding.pid is not None:
            raise LakeLockedError(
                f"{lake} is held by {last_holding.owner}; wait for it, or raise --lock-timeout (a lease "
                f"that is not renewed for {last_holding.term_s:g} s is taken over)"
            )
        time.sleep(min(POLL_S, TERM_S / 10))
        newest = _read(storage)
        if newest is None or last_holding is None or newest.tag != last_holding.tag:
            last_holding, since = newest, time.monotonic()


def _take(storage: ObjectStorage, last_holding: Holding | None) -> Holding | None:
    """The lease, created or taken from `last_holding`; None when another process was first.

    Raises:
        LakeError: who creates it finds that the store puts objects in spite of a condition that does not hold.
    """
    new_holding = Holding(
        token=1 if last_holding is None else last_holding.token + 1,
        term_s=TERM_S,
        pid=os.getpid(),
        host=socket.gethostname(),
        renewals=0,
        tag="",
        writer=os.urandom(8).hex(),
    )
    tag = storage.replace(LEASE, new_holding.text(), None if last_holding is None else last_holding.tag)
    if tag is None:
        return None
    holding = replace(new_holding, tag=tag)
    return holding if last_holding is not None else _tested(storage, holding)


def _tested(storage: ObjectStorage, created: Holding) -> Holding | None:
    """The lease that this process has just created, once the store has refused to put it where a condition fails.

    With a store that does not, two writers would overwrite each other's commits: the lease is removed again. The test
    needs no other object, so a process that is killed here leaves a lease that others take over. None when somebody
    did so meanwhile.

    Raises:
        LakeError: the store puts objects in spite of a condition.
    """
    refused, renewed = replace(created, renewals=-1), replace(created, renewals=1)
    missing, tag = "If-None-Match", None
    if storage.replace(LEASE, refused.text(), None) is None:
        missing, tag = "If-Match", storage.replace(LEASE, renewed.text(), created.tag)
        if tag is not None and storage.replace(LEASE, refused.text(), created.tag) is None:
            return replace(renewed, tag=tag)
    newest = _read(storage)
    if newest is None or newest.writer != created.writer:
        return None
    storage.remove(LEASE)
    raise LakeError(
        f"{storage.root}: this store does not put objects on condition ({missing}), so two writers could overwrite "
        "each other's commits; use a store that does, or a path"
    )


def _read(storage: ObjectStorage) -> Holding | None:
    """The lease as it is; None when there is none.

    Raises:
        LakeError: the object is no lease.
    """
    stored = storage.read_tagged(LEASE)
    if stored is None:
        return None
    try:
        fields = json.loads(stored[0])
        return Holding(
            token=int(fields["token"]),
            term_s=min(max(float(fields["term_s"]), 1.0), 3600.0),
            pid=None if fields["pid"] is None else int(fields["pid"]),
            host=None if fields["host"] is None else str(fields["host"])[:255],
            renewals=int(fields["renewals"]),
            tag=stored[1],
            writer=str(fields.get("writer", ""))[:64],
            published=int(fields.get("published", -1)),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise LakeError(
            f"{storage.root}/{LEASE} is no lease of sharelens; if nobody writes to the lake, remove the object"
        ) from error
