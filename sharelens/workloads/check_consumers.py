"""Checks what the members of consumer groups (KIP-848) wrote into a journal.

- A partition has one owner at a time: a member gets it after the last one revoked it, left or was killed.
- A member that gets a partition reads from the offset that was committed last, or behind it.
- A commit of a member is not confirmed after another member got the partition: the broker has fenced it.

A member whose partitions were lost did not know until then that it was fenced: its ownership ended before. Members
write in processes of their own, so only their clock (`at_ms`) orders the entries of two of them.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from sharelens.workloads.findings import Finding, place_name
from sharelens.workloads.journal import Entry

EVENTS: Final = frozenset({"assigned", "revoked", "lost", "joined", "left", "killed", "read", "commit"})
_Partition = tuple[str, str, int]


@dataclass(slots=True, kw_only=True)
class _Ownership:
    """A member's time with a partition. `until_ms` None: to the end of the journal."""

    member: str
    since_ms: int
    line: int
    until_ms: int | None = None
    is_lost: bool = False

    def began_before(self, commit: "_Commit") -> bool:
        """Whether the member got the partition before a commit was sent; equal times say nothing of two members."""
        return self.since_ms < commit.since_ms + (self.member == commit.member)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Commit:
    """A confirmed commit: the times when it was sent and when its answer came."""

    member: str
    offset: int
    since_ms: int
    at_ms: int
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    """The first record that a member read after it got a partition; `since_ms`: when it got it."""

    offset: int
    since_ms: int
    line: int


@dataclass(slots=True)
class _History:
    """The history of a partition in a group."""

    ownerships: list[_Ownership] = field(default_factory=list)
    commits: list[_Commit] = field(default_factory=list)
    first_reads: list[_Read] = field(default_factory=list)


class ConsumerGroupChecker:
    """The rules on members of consumer groups; `counts`: assignments, commits_confirmed, …"""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._histories: defaultdict[_Partition, _History] = defaultdict(_History)
        self._current: dict[tuple[str, str], dict[_Partition, _Ownership]] = {}
        self._unread: set[tuple[str, _Partition]] = set()

    def take(self, line: int, entry: Entry) -> None:
        """Note one entry of a member."""
        group, member = entry["group"], entry["member"]
        match entry["event"]:
            case "assigned" | "revoked" | "lost":
                partitions = [(group, topic, partition) for topic, partition in entry["partitions"]]
                if entry["event"] == "assigned":
                    self._assign(line, entry, partitions)
                else:
                    self._end(entry, partitions)
            case "joined" | "left" | "killed":
                self._end(entry, list(self._current.get((group, member), ())))
            case "read":
                self._read(line, entry)
            case "commit":
                self._commit(line, entry)

    def findings(self) -> Iterator[Finding]:
        """The violated rules."""
        for partition, history in self._histories.items():
            history.ownerships.sort(key=lambda ownership: ownership.since_ms)
            yield from self._owned_twice(partition, history.ownerships)
            yield from _read_again(partition, history)
            yield from _fenced_commits(partition, history)

    def _assign(self, line: int, entry: Entry, partitions: Iterable[_Partition]) -> None:
        current = self._current.setdefault((entry["group"], entry["member"]), {})
        for partition in partitions:
            ownership = _Ownership(member=entry["member"], since_ms=entry["at_ms"], line=line)
            current[partition] = ownership
            self._histories[partition].ownerships.append(ownership)
            self._unread.add((entry["member"], partition))
            self.counts["assignments"] += 1

    def _end(self, entry: Entry, partitions: Iterable[_Partition]) -> None:
        current = self._current.get((entry["group"], entry["member"]), {})
        for partition in partitions:
            ownership = current.pop(partition, None)
            if ownership is not None:
                ownership.until_ms, ownership.is_lost = entry["at_ms"], entry["event"] == "lost"

    def _read(self, line: int, entry: Entry) -> None:
        member, partition = entry["member"], (entry["group"], entry["topic"], entry["partition"])
        self.counts["reads"] += len(entry["offsets"])
        ownership = self._current.get((entry["group"], member), {}).get(partition)
        if ownership is not None and (member, partition) in self._unread:
            self._unread.discard((member, partition))
            read = _Read(offset=entry["offsets"][0], since_ms=ownership.since_ms, line=line)
            self._histories[partition].first_reads.append(read)

    def _commit(self, line: int, entry: Entry) -> None:
        is_confirmed = entry["outcome"] == "confirmed"
        self.counts["commits_confirmed" if is_confirmed else "commits_ambiguous"] += 1
        if is_confirmed:
            commit = _Commit(
                member=entry["member"],
                offset=entry["offset"],
                since_ms=entry["since_ms"],
                at_ms=entry["at_ms"],
                line=line,
            )
            self._histories[entry["group"], entry["topic"], entry["partition"]].commits.append(commit)

    def _owned_twice(self, partition: _Partition, ownerships: list[_Ownership]) -> Iterator[Finding]:
        """Ownerships, by their begin, must follow each other."""
        for before, after in pairwise(ownerships):
            if before.until_ms is not None and before.until_ms <= after.since_ms:
                continue
            if before.is_lost:
                self.counts["ownerships_ambiguous"] += 1
                continue
            why = f"{after.member} got it while {before.member} had it since line {before.line}"
            yield _finding("owned_twice", partition, None, why, after.line)


def _read_again(partition: _Partition, history: _History) -> Iterator[Finding]:
    """What a new owner reads first is not below what was committed before it got the partition."""
    for read in history.first_reads:
        committed = max((commit.offset for commit in history.commits if commit.at_ms <= read.since_ms), default=0)
        if read.offset < committed:
            why = f"read from here although {committed} was committed before the partition was assigned"
            yield _finding("read_again", partition, read.offset, why, read.line)


def _fenced_commits(partition: _Partition, history: _History) -> Iterator[Finding]:
    """The last member that got the partition before a commit was sent is the one that committed."""
    for commit in history.commits:
        before = (each for each in history.ownerships if each.began_before(commit))
        owner = max(before, key=lambda each: (each.since_ms, each.member == commit.member), default=None)
        if owner is not None and owner.member != commit.member:
            why = f"{commit.member} committed although {owner.member} got the partition in line {owner.line}"
            yield _finding("fenced_commit", partition, commit.offset, why, commit.line)


def _finding(code: str, partition: _Partition, offset: int | None, why: str, line: int) -> Finding:
    return Finding(code=code, where=place_name(*partition, offset), why=why, line=line)
