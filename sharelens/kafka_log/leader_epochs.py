"""Leader epochs of a log, as a leader-epoch-checkpoint lists them: (epoch, its start offset), ascending in both.

Rules: org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from operator import itemgetter

LeaderEpoch = tuple[int, int]
UNDEFINED = -1
"""Of an epoch and of an offset that a log does not know."""


def end_offset_for(epochs: Sequence[LeaderEpoch], epoch: int, end_offset: int) -> LeaderEpoch:
    """The largest leader epoch at or below `epoch` and the offset behind its records; the log ends at `end_offset`.

    An epoch below all ends where the first one starts. (UNDEFINED, UNDEFINED): the epoch is negative or above all.
    """
    if not epochs or not 0 <= epoch <= epochs[-1][0]:
        return UNDEFINED, UNDEFINED
    following = bisect_right(epochs, epoch, key=itemgetter(0))
    end = epochs[following][1] if following < len(epochs) else end_offset
    return (epochs[following - 1][0] if following else epoch), end


def below(epochs: Iterable[LeaderEpoch], offset: int) -> tuple[LeaderEpoch, ...]:
    """The leader epochs of the records below an offset."""
    return tuple(entry for entry in epochs if entry[1] < offset)


def latest(epochs: Sequence[LeaderEpoch]) -> int:
    """The newest leader epoch; UNDEFINED: none."""
    return epochs[-1][0] if epochs else UNDEFINED
