"""The delivery complete count (KIP-1226): rules 60 to 65. Records without it (-1) are not tested."""

from state_model.audit.impact import Impact
from state_model.audit.rule import REPORT_BUG, Difference, Field, Need, Rule, until
from state_model.audit.severities import ERROR, INFO, WARNING


def complete_count_beyond_end(start_offset: int, count: int, end_offset: int) -> Difference | None:
    """A delivery complete count larger than the number of offsets from the start offset to the topic's end."""
    if not 0 <= start_offset <= end_offset or count <= end_offset - start_offset:
        return None
    return Difference(Field.DELIVERY_COMPLETE_COUNT, end_offset - start_offset, count)


def negative_lag(start_offset: int, count: int, end_offset: int) -> Difference | None:
    """A lag below 0: what Kafka shows for a share partition with this state."""
    lag = end_offset - start_offset - max(count, 0)
    return Difference(Field.LAG, 0, lag) if start_offset >= 0 and lag < 0 else None


RULES = (
    Rule(
        number=60,
        code="negative_complete_count",
        title="The delivery complete count is not negative",
        severity=ERROR,
        relation=">=",
        impact=Impact.WRONG_LAG,
        why="It counts acknowledged and archived offsets; -1 stands for unknown.",
        remedy=REPORT_BUG,
        source="share-partition §8, SharePartition",
        compares_state=False,
    ),
    Rule(
        number=61,
        code="complete_count_beyond_end",
        title="The delivery complete count is within the start offset and the end of the user topic's partition",
        severity=ERROR,
        relation="<=",
        impact=Impact.WRONG_LAG,
        why="No more offsets can be terminal than lie between the start offset and the end of the topic. Counts where "
        "the topic's newest batch is of the record's leader epoch and 60 s younger.",
        remedy=REPORT_BUG,
        source="share-partition §8, SharePartition",
        needs=(Need.USER_TOPIC,),
    ),
    Rule(
        number=62,
        code="complete_count_too_small",
        title="The delivery complete count covers the terminal offsets of the state",
        severity=WARNING,
        relation=">=",
        impact=Impact.WRONG_LAG,
        why="A leader counts before it writes. An ambiguous failure or a retried older write leaves a smaller count, "
        "and the group's lag is shown too large by the difference.",
        remedy="Look for failovers and time-outs of the share coordinator; the next writes correct the lag.",
        source="share-partition §8, SharePartition",
    ),
    Rule(
        number=63,
        code="complete_count_too_large",
        title="The delivery complete count is at most the terminal offsets of the state",
        severity=INFO,
        relation="<=",
        impact=Impact.NONE,
        why="Offsets that are archived in memory alone (aborted, compacted) and pending acknowledgements count too.",
        remedy="Nothing to do.",
        source="share-partition §8, SharePartition",
    ),
    Rule(
        number=64,
        code="complete_count_falls",
        title="The delivery complete count does not fall while the start offset stands",
        severity=ERROR,
        exceptions=until("4.3", None),
        relation=">=",
        impact=Impact.WRONG_LAG,
        why="Kafka 4.4 takes the maximum at an equal start offset; earlier brokers take the last write.",
        remedy=REPORT_BUG,
        source="share-group-state-log §5, ShareCoordinatorShard",
    ),
    Rule(
        number=65,
        code="negative_lag",
        title="The lag is not negative",
        severity=WARNING,
        relation=">=",
        impact=Impact.WRONG_LAG,
        why="End of the topic minus start offset minus delivery complete count; a truncation or a reset beyond the end "
        "makes it negative. Tested for the newest state, where the topic is known until 60 s behind it.",
        remedy="Compare with the topic's end.",
        source="GroupCoordinatorService",
        needs=(Need.USER_TOPIC,),
    ),
)
