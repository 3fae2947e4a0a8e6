"""Reference form of the rules that need more than a record and its states: where a log begins and ends, configurations.

Rules 6, 17 and 50, and 12.1, 13, 14 and 57. Each takes the steps of one state partition.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from state_model.audit.coordinator_config import CoordinatorConfig
from state_model.audit.delivery import PENDING_MS
from state_model.audit.rule import Difference, Field
from state_model.audit.sequencing import early_write_snapshot, more_updates_than_configured, update_over_limit
from state_model.audit.snapshots import cold_snapshot_too_early
from state_model.share_records import SharePartitionKey
from tests.audit.reference.sequencing import SNAPSHOT, UPDATE
from tests.audit.reference.step_function import offset_state_code
from tests.audit.reference.steps import ARCHIVING, SnapshotKind, Standing, Step, has_write_shape
from tests.audit.reference.violations import Violation

NONE = -1


def begins_inside(log: Iterable[Step], log_start_offset: int) -> Iterator[Violation]:
    """Rule 6: the record at the log start offset is an update."""
    for step in log:
        if step.log_offset == log_start_offset > 0 and step.update is not None:
            yield _violation(60, step, Difference(Field.RECORD_TYPE, SNAPSHOT, UPDATE))


def pruned_snapshots(log: Iterable[Step], log_start_offset: int) -> Iterator[Violation]:
    """Rule 17: the newest snapshot of a live share partition lies below the log start offset, or is not there.

    The log is there up to its end.
    """
    for step in _newest(log).values() if log_start_offset > 0 else ():
        snapshot = step.after.snapshot_log_offset
        if step.after.standing in (Standing.LIVE, Standing.ORPHAN) and snapshot < log_start_offset:
            yield _violation(170, step, Difference(Field.LOG_OFFSET, log_start_offset, snapshot))


def archiving_too_long(log: Sequence[Step]) -> Iterator[Violation]:
    """Rule 50: an offset is ARCHIVING since more than PENDING_MS before the last record of the log."""
    last_ms = max((step.timestamp_ms for step in log), default=0)
    for step in _newest(log).values():
        state = step.after
        pending = [span for span in state.content if span.value[1] == ARCHIVING]
        if state.is_live and pending and last_ms - state.archiving_ms > PENDING_MS:
            state_code = offset_state_code(pending[0].value)
            yield _violation(500, step, Difference(Field.OFFSET_STATE, state_code + 1, state_code, pending[0].first))


def _newest(log: Iterable[Step]) -> dict[SharePartitionKey, Step]:
    """The last step of each share partition."""
    return {step.record.key: step for step in log}


class Counts(NamedTuple):
    """What the rules on the configuration know of a share partition; NONE: not known.

    `updates`: since the newest snapshot. `counter`: the coordinator's, which a snapshot sets back only at the limit.
    `is_first`: no record of this life was there. `write_ms`, `snapshot_at`: of the newest snapshot.
    """

    updates: int = NONE
    counter: int = NONE
    is_first: bool = True
    write_ms: int = 0
    snapshot_at: int = NONE


def configured(log: Iterable[Step], config: CoordinatorConfig, *, is_from_zero: bool) -> Iterator[Violation]:
    """Rules 12.1, 13, 14 and 57: the violations of each step under the configuration, as long as it was known.

    `is_from_zero`: the log is there from offset 0 on, so that the coordinator's counter is known.
    """
    is_constant = config.least_updates == config.most_updates
    limit = config.most_updates if is_from_zero and is_constant else NONE
    counts: dict[SharePartitionKey, Counts] = {}
    now_ms = 0
    for step in log:
        now_ms = max(now_ms, step.timestamp_ms)
        before = counts.get(step.record.key, Counts())
        if now_ms >= config.from_ms:
            for rule, difference in _differences(before, step, config, limit):
                if difference is not None:
                    yield _violation(rule, step, difference)
        counts[step.record.key] = counted(before, step, limit, is_known=now_ms >= config.from_ms)


def counted(before: Counts, step: Step, limit: int, *, is_known: bool) -> Counts:
    """The counts behind a step; `is_known`: the configuration was known then. `limit`: of updates; NONE: not known."""
    counter = 0 if before.is_first and is_known and limit != NONE else before.counter
    if step.update is not None:
        updates = before.updates if before.updates == NONE else before.updates + 1
        return before._replace(
            updates=updates, counter=counter if counter == NONE else counter + 1, is_first=False
        )  # fmt: skip
    if step.snapshot is None:
        return Counts(write_ms=before.write_ms)
    return Counts(
        updates=0 if is_known else NONE,
        counter=0 if limit != NONE and counter >= limit else counter,
        is_first=False,
        write_ms=step.snapshot.write_timestamp_ms,
        snapshot_at=step.log_offset,
    )


def _differences(
    before: Counts, step: Step, config: CoordinatorConfig, limit: int
) -> Iterator[tuple[int, Difference | None]]:
    if step.update is not None:
        if before.updates != NONE:
            yield 121, more_updates_than_configured(before.updates + 1, config.most_updates)
        if limit != NONE and before.counter != NONE:
            yield 130, update_over_limit(before.counter, limit)
    elif step.snapshot_kind is SnapshotKind.COLD and step.snapshot is not None:
        if before.snapshot_at != NONE:
            yield 570, cold_snapshot_too_early(before.write_ms, step.snapshot.write_timestamp_ms, config.interval_ms)
    elif step.snapshot is not None and before.updates != NONE and has_write_shape(step.snapshot):
        yield 140, early_write_snapshot(before.updates, config.least_updates)


def _violation(rule: int, step: Step, difference: Difference) -> Violation:
    before = step.before
    return Violation(
        rule, step.record.key, step.log_offset, difference, before.snapshot_log_offset, before.log_offset
    )  # fmt: skip
