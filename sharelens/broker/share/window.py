"""The in-flight window of a share partition: offsets from start offset (SPSO) to end offset (SPEO) and their state.

    SPSO                                      SPEO
     |--- cached batch ---|    |- cached batch -|--- next fetch offset
     [ run ][ run ][ run  ]hole[      run       ]

A cached batch is a range of one acquisition, or a state batch of the share coordinator. Its state is that of the whole
batch until a part of it changes; from then on it is by offset: each offset has its writes and timeouts (§4-§8). Both
forms store runs: neighbouring offsets of equal state, owner and deadline. The cost depends on the number of runs, not
of offsets.

The delivery complete count is the number of offsets in a terminal state from the start offset on (KIP-1226); it
includes offsets whose terminal state is being written.
"""

from bisect import bisect_right
from collections.abc import Iterator
from operator import attrgetter

from state_model.share_records import DeliveryState

# Looked up once, and compared in turn: hashing members of an enumeration is slow.
_AVAILABLE, _ACKNOWLEDGED, _ARCHIVED = DeliveryState.AVAILABLE, DeliveryState.ACKNOWLEDGED, DeliveryState.ARCHIVED
_IN_PROGRESS = (DeliveryState.ACQUIRED, DeliveryState.ARCHIVING)
_first_of = attrgetter("first")


def is_final(state: DeliveryState | None) -> bool:
    """Whether a record in this state is never delivered again."""
    return state is _ACKNOWLEDGED or state is _ARCHIVED


class Run:
    """Neighbouring offsets, both ends inclusive, of one state.

    Attributes:
        member_id: owner of the lock, empty unless acquired. deadline_ms: the timeout of the lock.
        target: the state that is being written, else None; it blocks other changes.
    """

    __slots__ = ("count", "deadline_ms", "first", "last", "member_id", "state", "target")

    def __init__(
        self, first: int, last: int, state: DeliveryState, count: int, member_id: str = "", deadline_ms: int = 0
    ) -> None:
        self.first = first
        self.last = last
        self.state = state
        self.count = count
        self.member_id = member_id
        self.deadline_ms = deadline_ms
        self.target: DeliveryState | None = None

    @property
    def is_available(self) -> bool:
        """Whether it may be acquired."""
        return self.state is _AVAILABLE and self.target is None

    @property
    def is_terminal(self) -> bool:
        """Whether its state is final."""
        state = self.state
        return (state is _ACKNOWLEDGED or state is _ARCHIVED) and self.target is None

    def cut_before(self, offset: int) -> "Run":
        """Cut the run at `offset`; returns the part from there on."""
        rest = Run(offset, self.last, self.state, self.count, self.member_id, self.deadline_ms)
        rest.target = self.target
        self.last = offset - 1
        return rest

    def settle(self, state: DeliveryState) -> None:
        """Set a state without an owner."""
        self.state = state
        self.target = None
        self.member_id = ""
        self.deadline_ms = 0

    def is_like(self, other: "Run") -> bool:
        """Whether both have equal state, owner, deadline and target."""
        return (
            self.state is other.state
            and self.count == other.count
            and self.target is other.target
            and self.deadline_ms == other.deadline_ms
            and self.member_id == other.member_id
        )


class CachedBatch:
    """Offsets from `first` to `last`, both inclusive, without a gap between its runs; `by_offset`: see above."""

    __slots__ = ("by_offset", "first", "last", "runs")

    def __init__(self, runs: list[Run], *, by_offset: bool = False) -> None:
        self.first = runs[0].first
        self.last = runs[-1].last
        self.runs = runs
        self.by_offset = by_offset

    def cover(self, first: int, last: int) -> list[Run]:
        """The runs of the part of this batch between two offsets, cut at them; a partial range sets `by_offset`."""
        if first <= self.first and last >= self.last:
            return list(self.runs)
        holder = self.holder(first, last)
        if holder >= 0:
            return [self.cut_out(holder, first, last)]
        self.by_offset = True
        self._cut(first)
        self._cut(last + 1)
        return self.touching(first, last)

    def holder(self, first: int, last: int) -> int:
        """Index of the run that has a whole range; -1 for none."""
        runs = self.runs
        index = bisect_right(runs, first, key=_first_of) - 1
        return index if index >= 0 and last <= runs[index].last else -1

    def cut_out(self, index: int, first: int, last: int) -> Run:
        """The range as a run of its own, cut out of its run; a partial range sets `by_offset`."""
        if first > self.first or last < self.last:
            self.by_offset = True
        run = self.runs[index]
        if run.first < first:
            run = run.cut_before(first)
            index += 1
            self.runs.insert(index, run)
        if last < run.last:
            self.runs.insert(index + 1, run.cut_before(last + 1))
        return run

    def touching(self, first: int, last: int) -> list[Run]:
        """The runs that overlap a range, uncut."""
        runs = self.runs
        begin = max(0, bisect_right(runs, first, key=_first_of) - 1)
        if last <= runs[begin].last:
            return runs[begin : begin + 1] if runs[begin].first <= last else []
        return runs[begin : bisect_right(runs, last, lo=begin, key=_first_of)]

    def _index(self, offset: int) -> int:
        """Index of the last run that begins at or below an offset; -1 when there is none."""
        return bisect_right(self.runs, offset, key=_first_of) - 1

    def singles(self, first: int, last: int) -> list[Run]:
        """The part of this batch between two offsets, each of them a run of its own."""
        covered = self.cover(first, last)
        if not covered:
            return []
        at = self.runs.index(covered[0])
        pieces: list[Run] = []
        for run in covered:
            while run.first < run.last:
                rest = run.cut_before(run.first + 1)
                pieces.append(run)
                run = rest
            pieces.append(run)
        self.runs[at : at + len(covered)] = pieces
        return pieces

    def _cut(self, offset: int) -> None:
        if not self.first < offset <= self.last:
            return
        index = self._index(offset)
        if self.runs[index].first < offset:
            self.runs.insert(index + 1, self.runs[index].cut_before(offset))

    def coalesce(self) -> None:
        """Join neighbouring runs of equal state."""
        self._join(0, len(self.runs))

    def coalesce_around(self, first: int, last: int) -> None:
        """Join neighbouring runs of equal state near a range; the cost depends on its runs only."""
        runs = self.runs
        begin = self._index(first)
        end = begin if begin >= 0 and last <= runs[begin].last else self._index(last)
        self._join(begin - 1 if begin > 0 else 0, end + 2)

    def _join(self, begin: int, end: int) -> None:
        touched = self.runs[begin:end]
        joined: list[Run] = []
        last_run: Run | None = None
        for run in touched:
            if last_run is not None and last_run.is_like(run):
                last_run.last = run.last
            else:
                last_run = run
                joined.append(run)
        if len(joined) < len(touched):
            self.runs[begin:end] = joined


class Window:
    """Cached batches in ascending order without overlap, and the scalars around them.

    Attributes:
        holes: gaps between the state batches of the share coordinator, which may have records (§3); the start offset
            doesn't pass them. may_have_available: whether the next fetch has to search the window.
    """

    __slots__ = (
        "_batches",
        "_firsts",
        "delivery_complete_count",
        "end_offset",
        "holes",
        "may_have_available",
        "start_offset",
    )

    def __init__(self, start_offset: int) -> None:
        self.start_offset = start_offset
        self.end_offset = start_offset
        self.delivery_complete_count = 0
        self.holes: list[tuple[int, int]] = []
        self.may_have_available = False
        self._batches: list[CachedBatch] = []
        self._firsts: list[int] = []

    def __iter__(self) -> Iterator[CachedBatch]:
        return iter(self._batches)

    @property
    def is_beyond_cache(self) -> bool:
        """Whether nothing is cached at or above the start offset; the end offset is then not part of the window."""
        return not self._batches or self._batches[-1].last < self.start_offset

    @property
    def size(self) -> int:
        """Number of offsets between start and end, with terminal ones and holes; bounded by the limit of locks."""
        return 0 if self.is_beyond_cache else self.end_offset - self.start_offset + 1

    @property
    def new_offset(self) -> int:
        """The first offset after the window."""
        return self.end_offset if self.is_beyond_cache else self.end_offset + 1

    def next_offset(self) -> int:
        """The offset of the next fetch: the first hole or available offset, else `new_offset`."""
        if not self.may_have_available:
            return self.new_offset
        if not self.is_beyond_cache:
            hole = self.holes[0][0] if self.holes else None
            for batch in self._batches:
                if hole is not None and hole < batch.first:
                    return hole
                for run in batch.runs:
                    if run.is_available:
                        return run.first
        self.may_have_available = False
        return self.new_offset

    def load(self, batch: CachedBatch) -> None:
        """Append the next state batch of the share coordinator; a gap before it is a hole."""
        expected = self._batches[-1].last + 1 if self._batches else self.start_offset
        if batch.first > expected:
            self.holes.append((expected, batch.first - 1))
        self._batches.append(batch)
        self._firsts.append(batch.first)
        self.end_offset = batch.last
        self.may_have_available = True
        for run in batch.runs:
            if run.is_terminal:
                self.delivery_complete_count += self.counted(run)

    def add(self, batch: CachedBatch) -> None:
        """Add a batch that overlaps none; moves the end offset.

        If it becomes the first batch, the start offset moves to its first offset, the first record of the log.
        """
        index = bisect_right(self._firsts, batch.first)
        self._batches.insert(index, batch)
        self._firsts.insert(index, batch.first)
        if index == 0:
            self.start_offset = batch.first
        if index == len(self._batches) - 1:
            self.end_offset = max(self.end_offset, batch.last)
            self.holes.clear()
        else:
            self.close_holes(batch.first, batch.last)

    def floor(self, offset: int) -> int:
        """Index of the last batch that begins at or below an offset; -1 when there is none."""
        return bisect_right(self._firsts, offset) - 1

    def overlapping(self, first: int, last: int) -> list[CachedBatch]:
        """The batches that overlap a range."""
        batches, firsts = self._batches, self._firsts
        index = max(0, bisect_right(firsts, first) - 1)
        if index < len(batches):
            if first >= firsts[index] and last <= batches[index].last:
                return batches[index : index + 1]
            if batches[index].last < first:
                index += 1
        return batches[index : bisect_right(firsts, last)]

    def batch_at(self, index: int) -> CachedBatch:
        """The batch at an index that `floor` returned."""
        return self._batches[index]

    def close_holes(self, first: int, last: int) -> None:
        """Remove a range from the holes: it was acquired, or has no records."""
        remaining_holes: list[tuple[int, int]] = []
        for hole_first, hole_last in self.holes:
            if hole_first < first:
                remaining_holes.append((hole_first, min(hole_last, first - 1)))
            if hole_last > last:
                remaining_holes.append((max(hole_first, last + 1), hole_last))
        self.holes = remaining_holes

    def archive_available(self, first: int, last: int) -> None:
        """Archive available offsets of a range whose records were deleted, in memory alone (§4.3, §4)."""
        for batch in self.overlapping(first, last):
            if not any(run.is_available for run in batch.runs):
                continue
            for run in batch.cover(first, last):
                if run.is_available:
                    run.settle(DeliveryState.ARCHIVED)
                    self.delivery_complete_count += self.counted(run)
            batch.coalesce()

    def counted(self, run: Run) -> int:
        """The number of a run's offsets that the delivery complete count includes."""
        first = run.first if run.first > self.start_offset else self.start_offset
        return run.last - first + 1 if run.last >= first else 0

    def raise_start(self, offset: int) -> bool:
        """Follow a log start at `offset`: available offsets below are archived, acquired ones stay (§4).

        Returns whether the start offset moved.
        """
        if offset <= self.start_offset:
            return False
        self.archive_available(self.start_offset, offset - 1)
        passed = 0
        for batch in self.overlapping(self.start_offset, offset - 1):
            for run in batch.runs:
                if is_final(run.state if run.target is None else run.target):
                    passed += max(0, min(run.last, offset - 1) - max(run.first, self.start_offset) + 1)
        self.delivery_complete_count -= passed
        self.close_holes(self.start_offset, offset - 1)
        self.start_offset = offset
        self.end_offset = max(self.end_offset, offset)
        self._drop_passed()
        return True

    def advance(self) -> None:
        """Move the start offset over terminal offsets up to a hole or an open offset (§7)."""
        passed = 0
        stop: int | None = None
        batches = self._batches
        for index in range(max(0, self.floor(self.start_offset)), len(batches)):
            stop, terminal = self._terminal_prefix(batches[index])
            passed += terminal
            if stop is not None:
                break
        if passed == 0:
            return
        self.delivery_complete_count -= passed
        if stop is None:
            stop = self._batches[-1].last + 1
            self.end_offset = stop
        self.start_offset = stop
        self._drop_passed()

    def _terminal_prefix(self, batch: CachedBatch) -> tuple[int | None, int]:
        """The offset in or before a batch that stops the start offset, and the number of terminal offsets before it."""
        hole = self.holes[0][0] if self.holes else None
        passed = 0
        for run in batch.runs:
            if run.last < self.start_offset:
                continue
            if hole is not None and hole < run.first:
                return hole, passed
            if not run.is_terminal:
                return max(run.first, self.start_offset), passed
            passed += self.counted(run)
        return None, passed

    def _drop_passed(self) -> None:
        """Remove batches below the start offset, except those with a lock or a dead letter in progress."""
        if self._batches and self._batches[0].last >= self.start_offset:
            return
        count = self.floor(self.start_offset)
        if 0 <= count < len(self._batches) and self._batches[count].last < self.start_offset:
            count += 1
        kept_batches = [
            batch
            for batch in self._batches[: max(0, count)]
            if any(run.state in _IN_PROGRESS or run.target is not None for run in batch.runs)
        ]
        if count > 0:
            self._batches[:count] = kept_batches
            self._firsts[:count] = [batch.first for batch in kept_batches]
