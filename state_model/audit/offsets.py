"""Start offsets and the offsets of state batches: rules 26 to 39."""

from state_model.audit.impact import Affected, Impact
from state_model.audit.rule import LEGAL, REPORT_BUG, Difference, Field, Need, Rule, until
from state_model.audit.severities import ERROR, INFO, WARNING


def start_offset_beyond_end(start_offset: int, end_offset: int) -> Difference | None:
    """A start offset behind the end of the user topic's partition."""
    return Difference(Field.START_OFFSET, end_offset, start_offset) if start_offset > end_offset else None


def start_offset_passes_record(start_offset: int, record_offset: int) -> Difference:
    """A start offset behind a record without an outcome."""
    return Difference(Field.START_OFFSET, record_offset, start_offset)


def batch_beyond_end(last_offset: int, end_offset: int) -> Difference | None:
    """A state batch that ends at or behind the end of the user topic's partition."""
    return Difference(Field.LAST_OFFSET, end_offset, last_offset) if last_offset >= end_offset else None


def window_over_locks(start_offset: int, last_offset: int, locks: int, batch_span: int) -> Difference | None:
    """A window larger than the record locks and the rest of the log batch with its last offset."""
    max_window, window = locks + batch_span - 1, last_offset - start_offset + 1
    return Difference(Field.WINDOW, max_window, window) if start_offset >= 0 and window > max_window else None


RULES = (
    Rule(
        number=26,
        code="invalid_start_offset",
        title="The start offset is -1 until the first write, and from 0 on afterwards",
        severity=ERROR,
        relation=">=",
        impact=Impact.DELIVERED_AGAIN_OR_LOST,
        affected=Affected.FROM,
        why="A leader resolves -1 at its first write. Only Initialize (AlterShareGroupOffsets takes any number) sets "
        "it back.",
        remedy=REPORT_BUG,
        source="share-group-state-log §5, ShareCoordinatorShard, SharePartition",
    ),
    Rule(
        number=27,
        code="start_offset_goes_back",
        title="A write never moves the start offset back",
        severity=ERROR,
        exceptions=until("4.3", WARNING),
        relation=">=",
        impact=Impact.DELIVERED_AGAIN,
        affected=Affected.BETWEEN,
        why="Kafka 4.4 takes the maximum. Up to 4.3 a retried older write that arrives behind a newer one moves the "
        "start offset back; the records from there on may be delivered again.",
        remedy="Look for time-outs and retries of WriteShareGroupState around the record, and at `redelivered`.",
        source="share-group-state-log §5, KIP-932",
    ),
    Rule(
        number=28,
        code="start_offset_moved_by_reset",
        title="A reset may move the start offset anywhere",
        severity=None,
        exceptions=LEGAL,
        impact=Impact.NONE,
        why="AlterShareGroupOffsets initializes with any offset, also without another state epoch.",
        remedy="Nothing to do; `sharelens life` lists resets.",
        source="GroupMetadataManager.alterShareGroupOffsets",
    ),
    Rule(
        number=29,
        code="start_offset_beyond_end",
        title="The start offset is at most the end of the user topic's partition",
        severity=WARNING,
        relation="<=",
        impact=Impact.LOST,
        affected=Affected.BETWEEN,
        why="AlterShareGroupOffsets accepts any number, and an unclean election may cut off the end of a topic. Counts "
        "where the topic is known until 60 s behind the record.",
        remedy="Compare with the topic's end; reset the group's offset.",
        source="share-partition §2, SharePartition",
        needs=(Need.USER_TOPIC,),
    ),
    Rule(
        number=29,
        part=1,
        code="start_offset_passes_record",
        title="A write moves the start offset past no record that has no outcome",
        severity=WARNING,
        relation="<=",
        impact=Impact.LOST,
        affected=Affected.BETWEEN,
        why="A leader moves the start offset behind acknowledged and archived offsets alone. Here the log of the topic "
        "holds a record that is available, or was never settled, below the new one: an acknowledgement was lost, or "
        "records were skipped. Legal are a record at the delivery count limit whose lock timed out while the share "
        "coordinator could not be written to (it is archived in the leader's memory alone), and a compacted topic "
        "whose copied replica was cleaned later than its leader. What the log start passed, control records, aborted "
        "transactions and compacted topics are left out. Counts where the log start is known and the topic is known "
        "until 2 minutes behind the record, as brokers write log starts down each minute.",
        remedy="Look at the offsets with `sharelens trace`, and for failed writes of the share group state and lost "
        "records of the state topic at that time; produce the records again if they were not processed.",
        source="share-partition §7, SharePartition.maybeUpdateCachedStateAndOffsets",
        needs=(Need.USER_TOPIC, Need.LOG_DIRECTORIES),
    ),
    Rule(
        number=30,
        code="start_offset_below_log_start",
        title="The start offset may lie below the user topic's log start offset",
        severity=None,
        exceptions=LEGAL,
        impact=Impact.NONE,
        why="The next write catches up.",
        remedy="Nothing to do.",
        source="share-partition §4, SharePartition",
    ),
    Rule(
        number=31,
        code="batches_out_of_order",
        title="State batches of a record ascend and are disjoint",
        severity=ERROR,
        relation=">",
        impact=Impact.DELIVERED_AGAIN_OR_LOST,
        affected=Affected.FROM,
        why="The coordinator combines batches before it writes them.",
        remedy=REPORT_BUG,
        source="share-group-state-log §9, PersisterStateBatchCombiner",
        compares_state=False,
    ),
    Rule(
        number=32,
        code="invalid_batch",
        title="A state batch begins at 0 or above and does not end before it begins",
        severity=ERROR,
        relation=">=",
        impact=Impact.STUCK,
        why="Offsets of records are not negative; a leader fails to load such a batch.",
        remedy=REPORT_BUG,
        source="share-partition §2, SharePartition, PersisterStateBatchCombiner",
        compares_state=False,
    ),
    Rule(
        number=33,
        code="batch_below_start",
        title="No state batch of a record lies below its start offset",
        severity=ERROR,
        relation=">=",
        impact=Impact.STUCK,
        why="The coordinator cuts off what lies below the start offset.",
        remedy=REPORT_BUG,
        source="share-group-state-log §9, PersisterStateBatchCombiner",
        compares_state=False,
    ),
    Rule(
        number=34,
        code="state_below_start",
        title="After a record no delivery state lies below the start offset",
        severity=ERROR,
        relation=">=",
        impact=Impact.STUCK,
        why="Combining cuts off what lies below the start offset.",
        remedy=REPORT_BUG,
        source="share-group-state-log §9, PersisterStateBatchCombiner",
    ),
    Rule(
        number=35,
        code="batch_beyond_end",
        title="State batches end before the end of the user topic's partition",
        severity=ERROR,
        relation="<",
        impact=Impact.LOST,
        affected=Affected.FROM,
        why="Only fetched records are delivered. Counts where the topic's newest batch is of the record's leader epoch "
        "and 60 s younger, so that no election can have cut off its end.",
        remedy=REPORT_BUG,
        source="share-partition §4, SharePartition",
        needs=(Need.USER_TOPIC,),
    ),
    Rule(
        number=35,
        part=1,
        code="batch_beyond_cut_end",
        title="No state batch lies behind the end of a user topic's partition that can have been cut off",
        severity=WARNING,
        relation="<",
        impact=Impact.LOST,
        affected=Affected.FROM,
        why="An unclean leader election cuts off records that were delivered; the state goes on to name them, and new "
        "records of the same offsets count as delivered. A replica that lags behind looks alike.",
        remedy="Look for an unclean leader election of the user topic; reset the group's offset to the topic's end.",
        source="share-partition §4, SharePartition",
        needs=(Need.USER_TOPIC,),
    ),
    Rule(
        number=36,
        code="window_over_locks",
        title="The window from the start offset to the last state is within the record locks",
        severity=WARNING,
        relation="<=",
        impact=Impact.NONE,
        why="A leader acquires at most share.partition.max.record.locks records and the rest of one batch.",
        remedy="Compare with the history of share.partition.max.record.locks.",
        source="share-partition §4, SharePartition",
        needs=(Need.USER_TOPIC, Need.RECORD_LOCKS),
    ),
    Rule(
        number=37,
        code="batches_not_joined",
        title="Neighbouring state batches of equal state are joined",
        severity=ERROR,
        exceptions=until("4.3", INFO),
        impact=Impact.NONE,
        why="Kafka 4.4 always joins them. The combiner up to 4.3 leaves some apart, which means the same.",
        remedy="Nothing to do up to 4.3; from 4.4 on report it with the record.",
        source="share-group-state-log §9, PersisterStateBatchCombiner",
        compares_state=False,
    ),
    Rule(
        number=38,
        code="terminal_at_start",
        title="Offsets at the start offset may be acknowledged or archived",
        severity=None,
        exceptions=LEGAL,
        impact=Impact.NONE,
        why="A write has the start offset from before its own effect.",
        remedy="Nothing to do.",
        source="share-partition §8",
    ),
    Rule(
        number=39,
        code="empty_update",
        title="An update has state batches or raises the leader epoch",
        severity=INFO,
        relation=">=",
        impact=Impact.NONE,
        why="All its batches lay below the start offset, and were cut off.",
        remedy="Nothing to do.",
        source="share-group-state-log §9, SharePartition, PersisterStateBatchCombiner",
    ),
)
