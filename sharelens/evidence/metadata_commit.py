"""Where the committed part of a metadata log ends (metadata-log §5): its high watermark stands in no file."""

from collections.abc import Sequence
from dataclasses import dataclass

Epochs = tuple[tuple[int, int], ...]
"""(leader epoch, its first offset), ascending."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VoterCopy:
    """A voter's copy of the metadata log: its end (exclusive) and its leader epochs."""

    node_id: int
    end_offset: int
    epochs: Epochs


def committed_end(snapshot_end: int, log_end: int, voters: Sequence[int], copies: Sequence[VoterCopy]) -> int:
    """The offset below which every record is surely committed.

    Snapshots have committed records alone. A single voter commits what it writes. Of several voters a majority must
    have a record, and the newest epoch must reach below the end: a leader commits older records with its own.
    """
    if len(voters) == 1:
        return max(snapshot_end, log_end)
    of_voters = {copy.node_id: copy for copy in copies if copy.node_id in voters}
    majority = len(voters) // 2 + 1
    if not voters or len(of_voters) < majority:
        return snapshot_end
    newest = max(of_voters.values(), key=lambda copy: (copy.epochs[-1:], copy.end_offset))
    shared = sorted((_shared_end(newest, copy) for copy in of_voters.values()), reverse=True)
    end = shared[majority - 1]
    has_newest_epoch = bool(newest.epochs) and newest.epochs[-1][1] < end
    return max(snapshot_end, end) if has_newest_epoch else snapshot_end


def _shared_end(left_copy: VoterCopy, right: VoterCopy) -> int:
    """Where two copies begin to differ, or the shorter one ends."""
    end = min(left_copy.end_offset, right.end_offset)
    for number in range(max(len(left_copy.epochs), len(right.epochs))):
        pair = [copy.epochs[number : number + 1] for copy in (left_copy, right)]
        if pair[0] != pair[1]:
            starts = [epochs[0][1] for epochs in pair if epochs]
            return min(end, *starts)
    return end
