"""The rows that a report lists of an answer: of groups with problems now first, ROWS_SHOWN at most."""

from sharelens.measures.life import LEADER_EPOCH, STATE_EPOCH
from sharelens.measures.schemas import EVENTS
from sharelens.measures.stalls.intervals import WORST_FIRST
from sharelens.questions.answers.streaming import RowChoice
from sharelens.questions.dead_letters.dlq import status_rank
from sharelens.questions.dead_letters.reconciled import row_times
from sharelens.questions.stalled import is_over
from sharelens.report.ranking import GroupRanking
from state_model.columnar.keys import SHARE_PARTITION_KEY

ROWS_SHOWN = 100
EPOCH_MOVES = (EVENTS[STATE_EPOCH], EVENTS[LEADER_EPOCH])
"""Events that are only counted: brokers that restart or take over write one for each share partition."""
STILL_FIRST = [("is_over", "ascending"), *WORST_FIRST]
STALLS = RowChoice(order=STILL_FIRST, row_limit=ROWS_SHOWN, ranks={"is_over": is_over})
"""What stands still before what is over."""


def archived(ranking: GroupRanking) -> RowChoice:
    """The worst severity first; of each the newest first."""
    return _by_severity(ranking, ("last_outcome_ms", "descending"), ("first_offset", "descending"))


def lives(ranking: GroupRanking) -> RowChoice:
    """The worst severity first; of each the newest first."""
    return _by_severity(ranking, ("log_time_ms", "descending"), ("log_offset", "descending"))


def dead_letters(ranking: GroupRanking) -> RowChoice:
    """Missing ones first, matched ones last; of each status the worst severity first, then the newest."""
    keys = [(name, "ascending") for name in ("group_id", "topic", "partition", "first_offset", "dlq_offset")]
    return RowChoice(
        order=[("rank", "ascending"), ("severity", "ascending"), ("at_ms", "descending"), *keys],
        row_limit=ROWS_SHOWN,
        ranks={"rank": status_rank, "severity": ranking.severity_of, "at_ms": row_times},
    )


def _by_severity(ranking: GroupRanking, newest: tuple[str, str], last: tuple[str, str]) -> RowChoice:
    keys = [(name, "ascending") for name in SHARE_PARTITION_KEY]
    order = [("severity", "ascending"), newest, *keys, last]
    return RowChoice(order=order, row_limit=ROWS_SHOWN, ranks={"severity": ranking.severity_of})
