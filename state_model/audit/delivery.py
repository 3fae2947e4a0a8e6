"""Delivery states and delivery counts: rules 40 to 50."""

from collections.abc import Callable, Iterator

from state_model.audit import step_function
from state_model.audit.impact import Affected, Impact
from state_model.audit.rule import REPORT_BUG, Difference, Field, Need, Rule, offset_state_code, until
from state_model.audit.severities import ERROR, INFO, WARNING
from state_model.audit.step_function import TERMINAL, Value
from state_model.audit.steps import Step
from state_model.share_records import NOT_DETERMINED, DeliveryState, StateBatch

LARGEST_LIMIT = 25
"""Largest value of group.share.max.delivery.count.limit."""
PENDING_MS = 5 * 60_000
"""How long offsets may be ARCHIVING: five attempts at their dead letters with 30 s at most between them, twice over."""
PERSISTED = frozenset({DeliveryState.AVAILABLE, DeliveryState.ACKNOWLEDGED, DeliveryState.ARCHIVED})
Cell = tuple[int, Value | None, Value]
"""First offset, value before the update, value in the update."""


def never_persisted_state(step: Step) -> Difference | None:
    """A state batch in state ACQUIRED."""
    return _first(step, lambda batch: batch.delivery_state == DeliveryState.ACQUIRED, _state, 0)


def unknown_state(step: Step) -> Difference | None:
    """A state batch in a state that Kafka up to 4.4 does not have."""
    return _first(step, lambda batch: not 0 <= batch.delivery_state <= DeliveryState.ARCHIVED, _state, 0)


def archiving_state(step: Step) -> Difference | None:
    """A state batch in state ARCHIVING."""
    return _first(
        step, lambda batch: batch.delivery_state == DeliveryState.ARCHIVING, _state, int(DeliveryState.ARCHIVED)
    )


def never_delivered(step: Step) -> Difference | None:
    """A state batch with a delivery count below 1."""
    return _first(step, lambda batch: batch.delivery_count < 1, _count, 1)


def count_over_maximum(step: Step) -> Difference | None:
    """A state batch with a delivery count above every configuration."""
    return _first(step, lambda batch: batch.delivery_count > LARGEST_LIMIT, _count, LARGEST_LIMIT)


def count_over_limit(step: Step) -> Difference | None:
    """A state batch with a delivery count above the group's limit."""
    limit = step.delivery_count_limit
    return None if limit is None else _first(step, lambda batch: batch.delivery_count > limit, _count, limit)


def available_at_limit(step: Step) -> Difference | None:
    """An AVAILABLE batch whose delivery count has reached the group's limit."""
    limit = step.delivery_count_limit
    if limit is None:
        return None
    return _first(
        step,
        lambda batch: batch.delivery_state == DeliveryState.AVAILABLE and batch.delivery_count >= limit,
        _count,
        limit,
    )


def archived_below_limit(step: Step) -> Difference | None:
    """An ARCHIVED batch whose delivery count is below the group's limit."""
    limit = step.delivery_count_limit
    if limit is None:
        return None
    return _first(
        step,
        lambda batch: batch.delivery_state == DeliveryState.ARCHIVED and batch.delivery_count < limit,
        _count,
        limit,
    )


def _state(batch: StateBatch) -> tuple[Field, int]:
    return Field.DELIVERY_STATE, batch.delivery_state


def _count(batch: StateBatch) -> tuple[Field, int]:
    return Field.DELIVERY_COUNT, batch.delivery_count


def _first(
    step: Step,
    violates: Callable[[StateBatch], bool],
    field: Callable[[StateBatch], tuple[Field, int]],
    expected: int,
) -> Difference | None:
    """The difference of the first state batch that violates a rule."""
    for batch in step.written.state_batches if step.written is not None else ():
        if violates(batch):
            name, actual = field(batch)
            return Difference(name, expected, actual, batch.first_offset)
    return None


def stale_write(step: Step) -> Difference | None:
    """An update has a smaller (delivery count, delivery state) than the state at some offset."""
    for first, before, written in _cells(step):
        if before is not None and written < before:
            return Difference(Field.OFFSET_STATE, offset_state_code(before), offset_state_code(written), first)
    return None


def repeated_write(step: Step) -> Difference | None:
    """An update has batches, and repeats the state at each of their offsets."""
    cells = list(_cells(step))
    if not cells or any(before != written for _, before, written in cells):
        return None
    first, _, written = cells[0]
    return Difference(Field.OFFSET_STATE, offset_state_code(written), offset_state_code(written), first)


def delivered_after_outcome(step: Step) -> Difference | None:
    """An update raises the delivery count of an acknowledged or archived offset."""
    for first, before, written in _cells(step):
        if before is not None and before[1] in TERMINAL and written[0] > before[0]:
            return Difference(Field.OFFSET_STATE, offset_state_code(before), offset_state_code(written), first)
    return None


def _cells(step: Step) -> Iterator[Cell]:
    """The cells of an update's batches, on offsets from the start offset after it on."""
    update = step.live_update
    if update is None:
        return
    written = step_function.of_batches(update.state_batches)
    start = step.before.start_offset if update.start_offset == NOT_DETERMINED else update.start_offset
    if start != NOT_DETERMINED:
        written = step_function.cut_below(written, start)
    before = step_function.touching(step.before.content, written)
    for first, _, ours, theirs in step_function.cells(before, written):
        if theirs is not None:
            yield first, ours, theirs


RULES = (
    Rule(
        number=40,
        code="acquired_state_written",
        title="ACQUIRED is never written",
        severity=ERROR,
        impact=Impact.STUCK,
        affected=Affected.FROM,
        why="Acquisitions live in the leader's memory alone.",
        remedy=REPORT_BUG,
        source="share-partition §1, RecordState",
        check=never_persisted_state,
        compares_state=False,
    ),
    Rule(
        number=40,
        part=1,
        code="unknown_delivery_state",
        title="Delivery states are those of Kafka up to 4.4",
        severity=ERROR,
        if_version_unknown=INFO,
        impact=Impact.STUCK,
        why="A later Kafka may add states. The audit keeps them; a broker up to 4.4 has none of them.",
        remedy="Find out which broker wrote the record; if none is newer than 4.4, its bytes are damaged.",
        source="share-partition §1, RecordState",
        check=unknown_state,
        compares_state=False,
    ),
    Rule(
        number=40,
        part=2,
        code="archiving_before_4_4",
        title="ARCHIVING is not written before Kafka 4.4",
        severity=ERROR,
        exceptions={"4.4": None},
        impact=Impact.STUCK,
        why="The state came with dead-letter queues (KIP-1191).",
        remedy=REPORT_BUG,
        source="share-partition §1 and §11",
        check=archiving_state,
        compares_state=False,
    ),
    Rule(
        number=41,
        code="never_delivered",
        title="The delivery count is 1 or more",
        severity=ERROR,
        exceptions=until("4.2", WARNING),
        relation=">=",
        impact=Impact.WRONG_DELIVERY_COUNT,
        affected=Affected.FROM,
        why="Only offsets that were acquired are written. Early releases took the count back at a release.",
        remedy=REPORT_BUG,
        source="share-partition §1, SharePartition",
        check=never_delivered,
        compares_state=False,
    ),
    Rule(
        number=42,
        code="count_over_maximum",
        title="The delivery count is 25 at most",
        severity=ERROR,
        relation="<=",
        impact=Impact.WRONG_DELIVERY_COUNT,
        affected=Affected.FROM,
        why="No configuration allows a larger delivery count limit.",
        remedy=REPORT_BUG,
        source="share-partition §12",
        check=count_over_maximum,
        compares_state=False,
    ),
    Rule(
        number=43,
        code="count_over_limit",
        title="The delivery count is at most the group's limit",
        severity=WARNING,
        relation="<=",
        impact=Impact.WRONG_DELIVERY_COUNT,
        affected=Affected.FROM,
        why="The limit is tested at a release: after it was lowered a record may be delivered once more.",
        remedy="Compare with the history of share.delivery.count.limit.",
        source="share-partition §1, SharePartition",
        needs=(Need.DELIVERY_COUNT_LIMIT,),
        check=count_over_limit,
        compares_state=False,
    ),
    Rule(
        number=44,
        code="available_at_limit",
        title="An AVAILABLE record's delivery count is below the group's limit",
        severity=WARNING,
        relation="<",
        impact=Impact.WRONG_DELIVERY_COUNT,
        affected=Affected.FROM,
        why="A release at the limit archives. The limit may have been larger then.",
        remedy="Compare with the history of share.delivery.count.limit.",
        source="share-partition §1, InFlightState",
        needs=(Need.DELIVERY_COUNT_LIMIT,),
        check=available_at_limit,
        compares_state=False,
    ),
    Rule(
        number=45,
        code="archived_below_limit",
        title="A record may be archived below the delivery count limit",
        severity=INFO,
        relation=">=",
        impact=Impact.NONE,
        why="Rejected, a gap, compacted, or released below the start offset.",
        remedy="`sharelens poison` lists archived records.",
        source="share-partition §5-6, SharePartition",
        needs=(Need.DELIVERY_COUNT_LIMIT,),
        check=archived_below_limit,
        compares_state=False,
    ),
    Rule(
        number=46,
        code="replay_disagrees",
        title="The replay's state is the state by the definition of the merge",
        severity=ERROR,
        impact=Impact.NONE,
        why="The audit computes the states a second time, offset by offset as the maximum of (delivery count, delivery "
        "state). A disagreement is a fault of sharelens.",
        remedy="Report it to sharelens with the state partition's log.",
        source="share-group-state-log §8-9",
    ),
    Rule(
        number=47,
        code="stale_write",
        title="An update is not older than the state",
        severity=WARNING,
        relation=">=",
        impact=Impact.NONE,
        why="A retried write that arrives late has smaller counts. The maximum keeps the newer state.",
        remedy="Look for time-outs of WriteShareGroupState; nothing is lost.",
        source="share-group-state-log §9-10, PersisterStateManager",
        check=stale_write,
    ),
    Rule(
        number=48,
        code="repeated_write",
        title="An update changes a delivery state",
        severity=INFO,
        relation="!=",
        impact=Impact.NONE,
        why="A retried write that had succeeded is appended again.",
        remedy="Nothing to do.",
        source="share-group-state-log §10, PersisterStateManager",
        check=repeated_write,
    ),
    Rule(
        number=49,
        code="delivered_after_outcome",
        title="An acknowledged or archived record is not delivered again",
        severity=WARNING,
        impact=Impact.DELIVERED_AGAIN,
        affected=Affected.FROM,
        why="After an ambiguous failure of the persister, a leader takes an acknowledgement back that is durable.",
        remedy="Look for failovers and time-outs of the share coordinator; `sharelens redelivered` lists the records.",
        source="share-partition §5, SharePartition",
        check=delivered_after_outcome,
    ),
    Rule(
        number=50,
        code="archiving_too_long",
        title="ARCHIVING records become ARCHIVED within five minutes",
        severity=WARNING,
        impact=Impact.STUCK,
        affected=Affected.FROM,
        why="The leader archives after the attempts at a dead letter, whether they succeed or not.",
        remedy="Look whether the partition has a leader, and at its log for errors of the dead-letter queue.",
        source="share-partition §11, SharePartition.initiateDLQAndArchive",
    ),
)
