"""Cases of the rules on the records of one state partition: sections 4 to 7 of the specification."""

from typing import Final

from tests.audit.rule_cases.cases import Table
from tests.audit.rule_cases.state_cases import (
    ACKNOWLEDGED,
    ACQUIRED,
    AGAIN,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    COLD,
    CREATED,
    ENDED,
    LARGE,
    MORE_RECORDS,
    RESET,
    SNAPSHOT,
    WRITTEN,
    base,
    led,
)
from tests.audit.script import SECOND, Script

FIVE_MINUTES_MS = 300_000


def written(start: int, *batches: tuple[int, int, int, int]) -> Script:
    """`led`, and a write that its leader may send; the state has 10-14 acknowledged once, 15-19 available twice."""
    return led().write(start, *batches)


def faulty(start: int, *batches: tuple[int, int, int, int]) -> Script:
    """`led`, and an update with batches that no leader sends."""
    return led().write(10, (20, 20, ACKNOWLEDGED, 1)).edit(3, start_offset=start).batches(3, *batches)


def in_state(delivery_state: int, count: int = 1) -> Script:
    """A write of one offset."""
    return written(10, (20, 20, delivery_state, count))


def snapshot_in_state(delivery_state: int, count: int = 1) -> Script:
    """A write snapshot with one offset in a state."""
    return led().snapshot_next().write(10, (20, 20, delivery_state, count))


def cold_edit(**changes: object) -> Script:
    """A cold snapshot with other fields."""
    return led().cold().edit(3, **changes)


def snapshot_edit(**changes: object) -> Script:
    """A write snapshot with other fields."""
    return led().snapshot_next().write(10, (15, 19, ACKNOWLEDGED, 3)).edit(3, **changes)


def snapshot_of(*batches: tuple[int, int, int, int]) -> Script:
    """A write snapshot with other state batches."""
    return led().snapshot_next().write(10, (15, 19, ACKNOWLEDGED, 3)).batches(3, *batches)


def archiving(wait_ms: int) -> Script:
    """An offset in state ARCHIVING, and a record of another share partition so much later."""
    return in_state(ARCHIVING).about(SECOND).wait(wait_ms - 1000).init()


OFFSETS: Final[Table[Script]] = {
    "invalid_start_offset": (
        {
            "-2": lambda: base().edit(WRITTEN, start_offset=-2),
            "-2 behind a start offset": lambda: base().edit(MORE_RECORDS, start_offset=-2),
            "-1 in a cold snapshot": lambda: base().edit(COLD, start_offset=-1),
            "far below": lambda: base().edit(MORE_RECORDS, start_offset=-LARGE),
        },
        {
            "0": lambda: Script().init(1, 0).read(1),
            "-1 up to the first write": lambda: Script().init().read(1).read(2),
            "-1 of a reset": lambda: led().init(1, -1),
        },
    ),
    "start_offset_goes_back": (
        {
            "by 1": lambda: written(10).write(11).edit(4, start_offset=9),
            "to 0": lambda: base().edit(ENDED, start_offset=0),
            "two writes exchanged": lambda: led().write(15, (15, 19, ACKNOWLEDGED, 3)).write(20).move(4, 3),
        },
        {
            "an equal one": lambda: written(10, (15, 19, ACKNOWLEDGED, 3)),
            "one more": lambda: written(11),
            "back by a reset": lambda: led().init(1, 9).read(1).write(9, (9, 9, ACKNOWLEDGED, 1)),
            "back in another life": lambda: led().delete().init().read(1).write(0, (0, 0, ACKNOWLEDGED, 1)),
        },
    ),
    "batches_out_of_order": (
        {
            "an offset twice": lambda: faulty(10, (20, 22, ACKNOWLEDGED, 1), (22, 24, AVAILABLE, 1)),
            "a batch twice": lambda: faulty(10, (20, 22, ACKNOWLEDGED, 1), (20, 22, ACKNOWLEDGED, 1)),
            "two exchanged": lambda: faulty(10, (25, 26, ACKNOWLEDGED, 1), (20, 22, ACKNOWLEDGED, 1)),
            "in a cold snapshot": lambda: led().cold().batches(3, (15, 19, AVAILABLE, 2), (10, 14, ACKNOWLEDGED, 1)),
        },
        {
            "touching ones": lambda: written(10, (20, 22, ACKNOWLEDGED, 1), (23, 24, AVAILABLE, 1)),
            "one offset between": lambda: written(10, (20, 22, ACKNOWLEDGED, 1), (24, 24, ACKNOWLEDGED, 1)),
            "below those of the record before": lambda: written(10, (20, 22, AVAILABLE, 1)).write(
                10, (15, 16, AVAILABLE, 3)),
        },
    ),
    "invalid_batch": (
        {
            "last below first": lambda: faulty(10, (20, 19, ACKNOWLEDGED, 1)),
            "back to front": lambda: faulty(10, (24, 20, ACKNOWLEDGED, 1)),
            "first offset -1": lambda: base().batches(WRITTEN, (-1, 4, ACKNOWLEDGED, 1)),
        },
        {
            "one offset": lambda: written(10, (20, 20, ACKNOWLEDGED, 1)),
            "offset 0": lambda: Script().init().read(1).write(0, (0, 0, ACKNOWLEDGED, 1)),
            "offsets near the largest": lambda: written(LARGE, (LARGE, LARGE + 9, ACKNOWLEDGED, 1)),
        },
    ),
    "batch_below_start": (
        {
            "by 1": lambda: faulty(20, (19, 22, ACKNOWLEDGED, 1)),
            "the second batch alone in front": lambda: faulty(24, (20, 22, ACKNOWLEDGED, 1), (24, 24, AVAILABLE, 1)),
            "in a cold snapshot": lambda: cold_edit(start_offset=11),
        },
        {
            "at the start": lambda: written(20, (20, 22, ACKNOWLEDGED, 1)),
            "cut by the coordinator": lambda: written(21, (20, 22, ACKNOWLEDGED, 1)),
            "all below the start": lambda: written(23, (20, 22, ACKNOWLEDGED, 1)),
        },
    ),
    "state_below_start": (
        {
            "in a cold snapshot, by 1": lambda: cold_edit(start_offset=11),
            "in a cold snapshot, by 8": lambda: cold_edit(start_offset=18),
            "in a write snapshot": lambda: snapshot_edit(start_offset=11),
        },
        {
            "the start moves past a batch": lambda: written(15),
            "the start moves into a batch": lambda: written(12),
            "the start moves into a batch, in a snapshot": lambda: led().snapshot_next().write(12),
        },
    ),
    "batches_not_joined": (
        {
            "in an update": lambda: faulty(10, (20, 21, ACKNOWLEDGED, 1), (22, 24, ACKNOWLEDGED, 1)),
            "one offset each": lambda: faulty(10, (20, 20, ACKNOWLEDGED, 1), (21, 21, ACKNOWLEDGED, 1)),
            "in a write snapshot": lambda: snapshot_of(
                (10, 10, ACKNOWLEDGED, 1), (11, 14, ACKNOWLEDGED, 1), (15, 19, ACKNOWLEDGED, 3)),
        },
        {
            "another delivery count": lambda: written(10, (20, 21, ACKNOWLEDGED, 1), (22, 24, ACKNOWLEDGED, 2)),
            "another delivery state": lambda: written(10, (20, 21, ACKNOWLEDGED, 1), (22, 24, ARCHIVED, 1)),
            "one offset between": lambda: written(10, (20, 21, ACKNOWLEDGED, 1), (23, 24, ACKNOWLEDGED, 1)),
            "in two updates": lambda: written(10, (20, 21, AVAILABLE, 1)).write(10, (22, 24, AVAILABLE, 1)),
        },
    ),
}  # fmt: skip
DELIVERY: Final[Table[Script]] = {
    "acquired_state_written": (
        {
            "in an update": lambda: in_state(ACQUIRED),
            "in a snapshot": lambda: snapshot_in_state(ACQUIRED),
            "in the second batch": lambda: faulty(10, (20, 20, ACKNOWLEDGED, 1), (22, 22, ACQUIRED, 1)),
        },
        {state: lambda number=number: in_state(number) for state, number in (
            ("available", AVAILABLE), ("acknowledged", ACKNOWLEDGED), ("archived", ARCHIVED))},
    ),
    "unknown_delivery_state": (
        {str(state): lambda state=state: in_state(state) for state in (5, 9, -1)},
        {
            "archiving": lambda: in_state(ARCHIVING),
            "archived": lambda: in_state(ARCHIVED),
            "available": lambda: in_state(AVAILABLE),
        },
    ),
    "archiving_before_4_4": (
        {
            "in an update of 4.3": lambda: in_state(ARCHIVING).of_version("4.3"),
            "in a snapshot of 4.3": lambda: snapshot_in_state(ARCHIVING).of_version("4.3"),
            "in an update of 4.2": lambda: in_state(ARCHIVING).of_version("4.2"),
        },
        {
            "in an update of 4.4": lambda: in_state(ARCHIVING),
            "archived in 4.3": lambda: in_state(ARCHIVED).of_version("4.3"),
            "acknowledged in 4.3": lambda: in_state(ACKNOWLEDGED).of_version("4.3"),
        },
    ),
    "never_delivered": (
        {
            "0": lambda: in_state(ACKNOWLEDGED, 0),
            "-1": lambda: in_state(ACKNOWLEDGED, -1),
            "0 in a snapshot": lambda: snapshot_in_state(AVAILABLE, 0),
        },
        {
            "1": lambda: in_state(ACKNOWLEDGED),
            "1, available": lambda: in_state(AVAILABLE),
            "1, in a snapshot": lambda: snapshot_in_state(AVAILABLE),
        },
    ),
    "count_over_maximum": (
        {str(count): lambda count=count: in_state(ACKNOWLEDGED, count) for count in (26, 27, 32767)},
        {str(count): lambda count=count: in_state(ACKNOWLEDGED, count) for count in (25, 24, 10)},
    ),
    "count_over_limit": (
        {f"{count} of 5": lambda count=count: in_state(ACKNOWLEDGED, count).limited(5) for count in (6, 7, 25)},
        {
            "5 of 5": lambda: in_state(ACKNOWLEDGED, 5).limited(5),
            "4 of 5": lambda: in_state(ACKNOWLEDGED, 4).limited(5),
            "6, limit unknown": lambda: in_state(ACKNOWLEDGED, 6),
        },
    ),
    "available_at_limit": (
        {f"{count} of 5": lambda count=count: in_state(AVAILABLE, count).limited(5) for count in (5, 6, 25)},
        {
            "4 of 5": lambda: in_state(AVAILABLE, 4).limited(5),
            "5 of 5, acknowledged": lambda: in_state(ACKNOWLEDGED, 5).limited(5),
            "5 of 5, archived": lambda: in_state(ARCHIVED, 5).limited(5),
        },
    ),
    "stale_write": (
        {
            "a smaller delivery count": lambda: written(10, (15, 19, AVAILABLE, 1)),
            "a smaller delivery state": lambda: written(10, (10, 14, AVAILABLE, 1)),
            "one offset": lambda: written(10, (19, 22, AVAILABLE, 1)),
            "an older write again": lambda: led().write(10, (15, 19, AVAILABLE, 3)).twice(2).move(3, 4),
        },
        {
            "an equal one": lambda: written(10, (15, 19, AVAILABLE, 2)),
            "a larger delivery count": lambda: written(10, (15, 19, AVAILABLE, 3)),
            "a larger delivery state": lambda: written(10, (15, 19, ARCHIVED, 2)),
            "below the start": lambda: written(20, (15, 19, AVAILABLE, 1)),
        },
    ),
    "delivered_after_outcome": (
        {
            "available again": lambda: written(10, (10, 14, AVAILABLE, 2)),
            "acknowledged again": lambda: written(10, (10, 14, ACKNOWLEDGED, 2)),
            "archived later": lambda: written(10, (14, 20, ARCHIVED, 3)),
        },
        {
            "the same outcome": lambda: written(10, (10, 14, ACKNOWLEDGED, 1)),
            "the neighbours": lambda: written(10, (15, 19, ACKNOWLEDGED, 3)),
            "behind a reset": lambda: led().init(1, 10).read(4).write(10, (10, 14, AVAILABLE, 2)),
        },
    ),
    "archiving_too_long": (
        {
            "5 minutes and 1 ms": lambda: archiving(FIVE_MINUTES_MS + 1),
            "an hour": lambda: archiving(12 * FIVE_MINUTES_MS),
            "an hour, in a snapshot": lambda: snapshot_in_state(ARCHIVING).about(SECOND).wait(
                12 * FIVE_MINUTES_MS).init(),
        },
        {
            "5 minutes": lambda: archiving(FIVE_MINUTES_MS),
            "a second": lambda: archiving(1000),
            "archived an hour later": lambda: in_state(ARCHIVING).wait(12 * FIVE_MINUTES_MS).write(
                10, (20, 20, ARCHIVED, 1)),
        },
    ),
}  # fmt: skip
SNAPSHOTS: Final[Table[Script]] = {
    "cold_snapshot_changes_state": (
        {
            "start offset": lambda: cold_edit(start_offset=9),
            "leader epoch": lambda: cold_edit(leader_epoch=4),
            "delivery complete count": lambda: cold_edit(delivery_complete_count=6),
            "a batch lost": lambda: led().cold().batches(3, (10, 14, ACKNOWLEDGED, 1)),
            "an update forgotten": lambda: led().forget().write(10, (15, 19, ACKNOWLEDGED, 3)).cold(),
        },
        {
            "as the state": lambda: led().cold(),
            "as the snapshot before it": lambda: led().cold().about(SECOND).init().cold(),
            "without batches": lambda: Script().init().cold(),
        },
    ),
    "write_snapshot_loses_state": (
        {
            "a batch lost": lambda: snapshot_of((15, 19, ACKNOWLEDGED, 3)),
            "a smaller delivery count": lambda: snapshot_of((10, 14, ACKNOWLEDGED, 1), (15, 19, AVAILABLE, 1)),
            "an offset lost": lambda: snapshot_of((10, 13, ACKNOWLEDGED, 1), (15, 19, ACKNOWLEDGED, 3)),
            "an outcome lost": lambda: snapshot_of((10, 14, AVAILABLE, 1), (15, 19, ACKNOWLEDGED, 3)),
        },
        {
            "as the state": lambda: led().snapshot_next().write(10),
            "more than the state": lambda: led().snapshot_next().write(10, (15, 30, ACKNOWLEDGED, 3)),
            "without what lies below its start": lambda: led().snapshot_next().write(15),
        },
    ),
    "write_snapshot_changes_epochs": (
        {
            "state epoch + 1": lambda: snapshot_edit(state_epoch=2),
            "state epoch - 1": lambda: snapshot_edit(state_epoch=0),
            "leader epoch - 1": lambda: snapshot_edit(leader_epoch=2),
        },
        {
            "equal ones": lambda: led().snapshot_next().write(10),
            "leader epoch + 1, of a Read": lambda: led().snapshot_next().read(4),
            "leader epoch + 9, of a Read": lambda: led().snapshot_next().read(12),
        },
    ),
    "init_with_state": (
        {
            "a delivery complete count": lambda: base().edit(CREATED, delivery_complete_count=1),
            "a leader epoch": lambda: base().edit(CREATED, leader_epoch=2),
            "a state batch": lambda: base().batches(RESET, (30, 30, AVAILABLE, 1)),
            "delivery complete count 0 without a start offset": lambda: base().edit(CREATED, delivery_complete_count=0),
        },
        {
            "without a start offset": lambda: Script().init(),
            "with start offset 0": lambda: Script().init(1, 0),
            "a reset to the start offset that it had": lambda: led().init(1, 10),
        },
    ),
    "created_after_written": (
        {
            "by 1 ms": lambda: created(COLD, 1),
            "by an hour": lambda: created(SNAPSHOT, 3_600_000),
            "of a creation": lambda: created(CREATED, 1),
        },
        {
            "at the same time": lambda: Script().init(),
            "before it by 1 ms": lambda: Script().init().cold().edit(1, write_timestamp_ms=_created_ms() + 1),
            "before it by 5 minutes": lambda: led().cold(),
        },
    ),
}  # fmt: skip


def created(row: int, later_ms: int) -> Script:
    """A create timestamp so much behind the write timestamp."""
    script = base()
    write_ms: int = script.record(row).value.write_timestamp_ms  # type: ignore[union-attr]
    return script.edit(row, create_timestamp_ms=write_ms + later_ms)


def _created_ms() -> int:
    created_ms: int = Script().init().record(0).value.create_timestamp_ms  # type: ignore[union-attr]
    return created_ms


COUNTS: Final[Table[Script]] = {
    "negative_complete_count": (
        {
            str(count): lambda count=count: base().edit(AGAIN, delivery_complete_count=count)
            for count in (-2, -5, -(1 << 31))
        },
        {
            "0": lambda: Script().init().read(1).write(0, (0, 0, AVAILABLE, 1)),
            "1": lambda: Script().init().read(1).write(0, (0, 0, ACKNOWLEDGED, 1)),
            "-1, unknown": lambda: Script().init().read(1),
        },
    ),
    "complete_count_too_small": (
        {
            "by 1": lambda: led().write(10, (20, 24, ACKNOWLEDGED, 1), count=9),
            "by 5": lambda: led().write(10, (20, 24, ACKNOWLEDGED, 1), count=5),
            "in a snapshot": lambda: led().snapshot_next().write(10, (20, 24, ACKNOWLEDGED, 1), count=9),
        },
        {
            "equal": lambda: led().write(10, (20, 24, ACKNOWLEDGED, 1), count=10),
            "larger": lambda: led().write(10, (20, 24, ACKNOWLEDGED, 1), count=11),
            "0 behind all terminal offsets": lambda: led().write(15, count=0),
            "in a snapshot, equal": lambda: led().snapshot_next().write(10, (20, 24, ACKNOWLEDGED, 1), count=10),
        },
    ),
    "complete_count_falls": (
        {
            "by 1": lambda: written(10).edit(3, delivery_complete_count=4),
            "to 0": lambda: written(10).edit(3, delivery_complete_count=0),
            "two updates exchanged": lambda: written(10, (20, 20, ACKNOWLEDGED, 1)).write(
                10, (21, 21, ACKNOWLEDGED, 1)).move(4, 3),
        },
        {
            "an equal one": lambda: written(10),
            "one more": lambda: led().write(10, count=6),
            "less with the next start offset": lambda: written(11),
            "0 by a reset": lambda: led().init(1, 10).read(4),
        },
    ),
}  # fmt: skip
