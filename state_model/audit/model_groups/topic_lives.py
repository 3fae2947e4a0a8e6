"""The topics of the metadata log that rules on streams and consumer groups compare with."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from state_model.audit.periods import END, Period


@dataclass(frozen=True, slots=True)
class TopicLife:
    """A topic from its creation to its deletion, and when each of its partitions was created."""

    period: Period
    partitions_ms: tuple[int, ...]
    topic_id: str = ""

    def changes_in(self, from_ms: int, to_ms: int) -> bool:
        """Whether it was created, deleted or got partitions between two times."""
        times = (self.period.from_ms, *self.partitions_ms, *([] if self.period.to_ms == END else [self.period.to_ms]))
        return any(from_ms <= time_ms <= to_ms for time_ms in times)


@dataclass(frozen=True, slots=True)
class TopicLives:
    """The topics of a metadata log by name, known from a time to another. `names`: by topic id."""

    from_ms: int
    until_ms: int
    by_name: Mapping[str, tuple[TopicLife, ...]]
    names: Mapping[str, str] = field(default_factory=dict)

    def of(self, names: Iterable[str]) -> list[TopicLife]:
        """The lives of some topics."""
        return [life for name in names for life in self.by_name.get(name, ())]

    def existing(self, name: str, at_ms: int) -> list[tuple[str, int]]:
        """The partitions of a topic at a time, by topic id."""
        lives = [life for life in self.by_name.get(name, ()) if life.period.from_ms <= at_ms < life.period.to_ms]
        return [(lives[-1].topic_id, number) for number in range(self.partitions(name, at_ms))] if lives else []

    def lacks(self, topic_id: str, partition: int, until_ms: int) -> bool:
        """Whether a topic that the log knows has no such partition up to a time."""
        lives = [life for life in self.by_name.get(self.names.get(topic_id, ""), ()) if life.topic_id == topic_id]
        if not lives or until_ms > self.until_ms:
            return False
        return partition >= sum(1 for time_ms in lives[-1].partitions_ms if time_ms <= until_ms)

    def partitions(self, name: str, at_ms: int) -> int:
        """The number of partitions of a topic at a time; 0: there is none."""
        lives = [life for life in self.by_name.get(name, ()) if life.period.from_ms <= at_ms < life.period.to_ms]
        return sum(1 for time_ms in lives[-1].partitions_ms if time_ms <= at_ms) if lives else 0
