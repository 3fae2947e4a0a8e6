"""Rules between the state log and `__consumer_offsets`: 20, 66, 67 and 68, by share partition."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from state_model.audit.columnar.group_audit import Groups, GroupTimes
from state_model.audit.columnar.lives import Life
from state_model.audit.columnar.proofs import LogRecord, Place, Proofs
from state_model.audit.columnar.topic_metadata import TopicMetadata
from state_model.audit.epochs import state_epoch_below_group, state_epoch_beyond_group
from state_model.audit.group_coordinator import (
    initialized_without_state,
    state_after_group_deletion,
    state_without_group,
)
from state_model.audit.periods import BEGINNING, END, TOLERANCE_MS, Period, common
from state_model.audit.rule import Difference, Field
from state_model.java import partition_for, partition_for_group
from state_model.share_records import SharePartitionKey
from state_model.topics import OFFSETS_TOPIC, STATE_TOPIC

BEYOND_GROUP, LEFT_BEYOND_GROUP, BELOW_GROUP = 200, 201, 202
WITHOUT_STATE, NO_COMMON_GROUP, WITHOUT_GROUP, AFTER_DELETION = 660, 661, 670, 680
LEFT_BEHIND = (LEFT_BEYOND_GROUP, WITHOUT_GROUP, AFTER_DELETION)
"""Rules on state that is left."""
FEWEST_GROUPS = 3
NONE = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class StateLogs:
    """The state partitions of the evidence.

    `lives`: of every share partition with a snapshot or a tombstone. `with_records`: every share partition with a
    record. `known_from_ms`: of each whole state partition the time from which on it shows who lives. `count`: their
    number in the cluster; None: undecided.
    """

    lives: Mapping[SharePartitionKey, Sequence[Life]]
    with_records: Collection[SharePartitionKey]
    known_from_ms: Mapping[int, int]
    until_ms: Mapping[int, int]
    count: int | None


def cross_check(
    state: StateLogs,
    groups: Groups,
    proofs: Proofs,
    *,
    topic_exists: Callable[[str], bool | None],
    metadata: TopicMetadata | None = None,
) -> None:
    """Tests the rules for all share partitions.

    Args:
        topic_exists: whether a topic id is there; None: unknown.
        metadata: whose deletion of a topic proves why its state is left; None: there is none.
    """
    if not _have_common_group(state, groups, proofs):
        return
    for group_id, times in groups.times.items():
        for topic_partition in times.initialized if times.is_readable else ():
            key = SharePartitionKey(group_id, *topic_partition)
            _test_initialized(key, times, state, groups, proofs, topic_exists)
    for key, lives in state.lives.items():
        _test_lives(key, lives, state, groups, proofs, metadata)


def _have_common_group(state: StateLogs, groups: Groups, proofs: Proofs) -> bool:
    """Tests that logs with several groups each have one in common."""
    count = groups.partition_count
    if count is None:
        return True
    known_ms = min(groups.until_ms.values(), default=BEGINNING)
    live = {
        key.group_id: lives[-1]
        for key, lives in sorted(state.lives.items(), reverse=True)  # of a group the lowest share partition counts
        if lives[-1].period.to_ms == END and lives[-1].first_ms < known_ms - TOLERANCE_MS
        and partition_for_group(key.group_id, count) in groups.partitions
    }  # fmt: skip
    listed = {
        group_id: times
        for group_id, times in groups.times.items()
        if any(periods[-1].to_ms == END for periods in times.initialized.values())
    }
    if min(len(live), len(listed)) < FEWEST_GROUPS or live.keys() & groups.times.keys():
        return True
    life, times = live[min(live)], listed[min(listed)]
    proof = [
        LogRecord(OFFSETS_TOPIC, times.log_partition, period.log_offset)
        for periods in times.initialized.values()
        for period in periods[-1:]
    ]
    record = LogRecord(STATE_TOPIC, life.state_partition, life.period.log_offset)
    proofs.add(NO_COMMON_GROUP, Place(), Difference(Field.KNOWN, 1, 0), record, life.first_ms, proof[:1])
    return False


def _test_initialized(
    key: SharePartitionKey,
    times: GroupTimes,
    state: StateLogs,
    groups: Groups,
    proofs: Proofs,
    topic_exists: Callable[[str], bool | None],
) -> None:
    lives = state.lives.get(key, ())
    from_ms = _known_from_ms(key, lives, state)
    if from_ms is None or (key in state.with_records and not lives):
        return
    if not topic_exists(key.topic_id) and (lives or from_ms != BEGINNING):
        return
    periods = times.initialized[key.topic_id, key.partition]
    numbers = _state_partitions(key, lives, state)
    until_ms = min(groups.until_ms[times.log_partition], *(state.until_ms.get(number, BEGINNING) for number in numbers))
    mismatch = initialized_without_state(periods, [life.period for life in lives], Period(from_ms, until_ms))
    if mismatch is not None:
        record = LogRecord(OFFSETS_TOPIC, times.log_partition, mismatch.log_offset)
        state_records = [LogRecord(STATE_TOPIC, life.state_partition, life.period.log_offset) for life in lives[-1:]]
        place = Place(key.group_id, key.topic_id, key.partition)
        difference = Difference(Field.SHARE_PARTITION, 1, 0)
        proofs.add(WITHOUT_STATE, place, difference, record, mismatch.from_ms, state_records)


def _known_from_ms(key: SharePartitionKey, lives: Sequence[Life], state: StateLogs) -> int | None:
    """From when on the evidence shows whether the share partition lives; None: it does not."""
    numbers = _state_partitions(key, lives, state)
    if not numbers or not all(number in state.known_from_ms for number in numbers):
        return None
    return max(state.known_from_ms[number] for number in numbers)


def _state_partitions(key: SharePartitionKey, lives: Sequence[Life], state: StateLogs) -> set[int]:
    """The state partitions that hold a share partition, or would; none where that is unknown."""
    numbers = {life.state_partition for life in lives}
    return {partition_for(*key, state.count)} if not numbers and state.count is not None else numbers


def _test_lives(
    key: SharePartitionKey,
    lives: Sequence[Life],
    state: StateLogs,
    groups: Groups,
    proofs: Proofs,
    metadata: TopicMetadata | None,
) -> None:
    times = groups.times.get(key.group_id)
    if any(life.state_partition not in state.known_from_ms for life in lives):
        return
    if times is None:
        count = groups.partition_count
        of_group = NONE if count is None else partition_for_group(key.group_id, count)
        if of_group not in groups.partitions:
            return
        times = GroupTimes()
    else:
        of_group = times.log_partition
    if not times.is_readable:
        return
    until_ms = min(groups.until_ms[of_group], *(state.until_ms[life.state_partition] for life in lives))
    for rule, difference, mismatch, proof in _mismatches(key, lives, times, Period(BEGINNING, until_ms)):
        life = next(life for life in lives if life.period.to_ms > mismatch.from_ms)
        record = LogRecord(STATE_TOPIC, life.state_partition, life.period.log_offset)
        place = Place(*key, life.state_partition)
        group_records = [LogRecord(OFFSETS_TOPIC, times.log_partition, offset) for offset in proof]
        if metadata is not None and rule in LEFT_BEHIND:
            group_records += metadata.end_of(key.topic_id, mismatch.from_ms + TOLERANCE_MS)
        proofs.add(rule, place, difference, record, max(mismatch.from_ms, life.first_ms), group_records)


def _mismatches(
    key: SharePartitionKey, lives: Sequence[Life], times: GroupTimes, evidence: Period
) -> Iterator[tuple[int, Difference, Period, list[int]]]:
    """(rule, difference, when, log offsets of the group's records) of each rule that the share partition violates."""
    live = [life.period for life in lives]
    unlisted = Difference(Field.LISTED, 1, 0)
    after = state_after_group_deletion(live, times.deleted, evidence)
    if after is not None:
        deletions = [deleted.log_offset for deleted in times.deleted if deleted.from_ms <= after.from_ms]
        yield AFTER_DELETION, Difference(Field.SHARE_PARTITION, 0, 1), after, deletions[-1:]
    partition_periods = times.listed.get((key.topic_id, key.partition), [])
    listed = [*partition_periods, *times.deleting.get(key.topic_id, []), *times.deleted]
    without = state_without_group(live, listed, evidence._replace(from_ms=times.listed_from_ms))
    if without is not None:
        yield WITHOUT_GROUP, unlisted, without, []
    initialized = times.initialized.get((key.topic_id, key.partition), [])
    yield from _older_states(key, lives, times, evidence)
    for life in lives if times.log_partition >= 0 else ():
        for rule, periods in ((BEYOND_GROUP, common([life.period], initialized)), (LEFT_BEYOND_GROUP, [life.period])):
            beyond = state_epoch_beyond_group(life.state_epoch, periods, times.known_epochs, evidence)
            if beyond is not None:
                (epoch, period) = next(step for step in times.known_epochs if step[1].to_ms > beyond.from_ms)
                yield rule, Difference(Field.STATE_EPOCH, epoch, life.state_epoch), beyond, [period.log_offset]
                return


def _older_states(
    key: SharePartitionKey, lives: Sequence[Life], times: GroupTimes, evidence: Period
) -> Iterator[tuple[int, Difference, Period, list[int]]]:
    """As `_mismatches`, of the first life whose state epoch is below the group's; its snapshot has to be there."""
    initialized_with = times.initialized_with.get((key.topic_id, key.partition), [])
    for life in lives:
        below = state_epoch_below_group(life.state_epoch, [life.period], initialized_with, evidence)
        if below is not None and life.period.log_offset != NONE:
            epoch, period = next(
                step for step in initialized_with if step[0] > life.state_epoch and step[1].to_ms > below.from_ms
            )
            yield BELOW_GROUP, Difference(Field.STATE_EPOCH, epoch, life.state_epoch), below, [period.log_offset]
            return
