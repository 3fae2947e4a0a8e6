"""How far back the evidence reaches, which decides what is missing: the topics for dead letters, and the state log."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.dlq import schemas as words
from sharelens.measures.settings.over_time import DEAD_LETTER_TOPIC, GroupSettings

DAWN, DUSK = -(1 << 62), 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterTopics:
    """The dead letter topics of groups, and how far back their logs reach.

    `of_groups`: the topics in which dead letters of a group lie. `since_ms`: for each topic that was read, the time
    from which on all its partitions have their dead letters; None where they reach back to their beginning.
    `held_back`: topics with records above the high watermark that were not read.
    """

    of_groups: Mapping[str, frozenset[str]] = field(default_factory=dict)
    since_ms: Mapping[str, int | None] = field(default_factory=dict)
    held_back: frozenset[str] = frozenset()

    @classmethod
    def of(cls, letters: pa.Table, partitions: pa.Table) -> "LetterTopics":
        """From group_id and dlq_topic of the dead letters of the groups to judge, and DLQ_PARTITION rows of all topics.

        How far back a partition reaches shows its oldest dead letter, of whatever group it is; a dead letter that is
        due may have been in any partition.
        """
        groups: dict[str, set[str]] = {}
        for row in letters.group_by(["group_id", "dlq_topic"]).aggregate([]).to_pylist():
            groups.setdefault(row["group_id"], set()).add(row["dlq_topic"])
        cuts: dict[str, list[int | None]] = {}
        for row in partitions.to_pylist():
            oldest_times = cuts.setdefault(row["dlq_topic"], [])
            oldest_times += [row["oldest_ms"]] if row["log_start_offset"] > 0 else []
        since = {
            topic: max((DUSK if oldest is None else oldest for oldest in oldest_times), default=None)
            for topic, oldest_times in cuts.items()
        }
        held_back = partitions.filter(pc.greater(partitions.column("held_back"), 0)).column("dlq_topic").to_pylist()
        of_groups = {group: frozenset(names) for group, names in groups.items()}
        return cls(of_groups=of_groups, since_ms=since, held_back=frozenset(held_back))

    def judged(self, group_id: str, settings: GroupSettings) -> tuple[str, str, str | None, int]:
        """(status, reason, topic, time) of a group's records without a dead letter; before that time it may be gone."""
        configured = settings.of(group_id, DEAD_LETTER_TOPIC).value or None
        topics = self.of_groups.get(group_id, frozenset()) | ({configured} if configured else frozenset())
        name = configured or (next(iter(topics)) if len(topics) == 1 else None)
        if not topics:
            return words.UNKNOWN, words.NO_TOPIC_KNOWN, None, DAWN
        if configured is not None and configured not in self.since_ms:
            return words.UNKNOWN, words.TOPIC_NOT_HELD, name, DAWN
        if topics & self.held_back:
            return words.UNKNOWN, words.HELD_BACK, name, DAWN
        cuts = [since for since in map(self.since_ms.get, topics) if since is not None]
        return words.MISSING, words.NO_DEAD_LETTER, name, max(cuts, default=DAWN)


def whole_since_ms(beginnings: Iterable[tuple[int, int]]) -> int | None:
    """The log time from which on no share partition's records are missing; None: there is no state partition.

    `beginnings`: of each state partition the first offset that is in the evidence, and its log time. What begins with
    offset 0 begins with the log.
    """
    return max((DAWN if offset == 0 else time_ms for offset, time_ms in beginnings), default=None)
