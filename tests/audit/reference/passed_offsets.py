"""The reference form of what start offsets pass: offsets without an outcome, offset by offset, for small logs."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from state_model.share_records import NOT_DETERMINED, SharePartitionKey
from tests.audit.reference.step_function import values_at
from tests.audit.reference.steps import SnapshotKind, Step

AVAILABLE = 0


class Passed(NamedTuple):
    """A record whose start offset passes offsets without an outcome, and these offsets. `snapshot`, `previous`: log
    offsets of the state's newest records.
    """

    key: SharePartitionKey
    log_offset: int
    start_offset: int
    offsets: tuple[int, ...]
    snapshot: int
    previous: int


def passed_offsets(log: Iterable[Step]) -> Iterator[Passed]:
    """The writes of leaders that move the start offset behind all since the initialization, past such offsets."""
    largest: dict[SharePartitionKey, int | None] = {}
    for step in log:
        key, value, before = step.record.key, step.written, step.before
        known_start = largest.get(key)
        is_write = step.update is not None or step.snapshot_kind is SnapshotKind.WRITE
        if value is not None and is_write and before.is_live and before.start_offset >= 0 and known_start is not None:
            offsets = range(max(before.start_offset, known_start), value.start_offset)
            values = zip(offsets, values_at(before.content, offsets), strict=True)
            passed = tuple(offset for offset, pair in values if pair is None or pair[1] == AVAILABLE)
            if passed:
                places = before.snapshot_log_offset, before.log_offset
                yield Passed(key, step.log_offset, value.start_offset, passed, *places)
        largest[key] = _largest(step, known_start)


def _largest(step: Step, known_start: int | None) -> int | None:
    """The largest start offset after a record; None: records before it may be missing."""
    value, before, kind = step.written, step.before, step.snapshot_kind
    if value is None:
        return None
    if kind is SnapshotKind.INIT or (kind is SnapshotKind.EITHER and before.is_live):
        return value.start_offset
    if not before.is_live:
        return None
    if known_start is not None:
        return max(known_start, value.start_offset)
    is_repeated = kind is SnapshotKind.COLD or value.leader_epoch > before.leader_epoch
    return None if is_repeated or value.start_offset == NOT_DETERMINED else value.start_offset
