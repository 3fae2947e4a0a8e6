"""The configured topology of a streams group: its topology with the partition counts of the topics (streams-group §4).

It lives in the memory of the coordinator. Counts of existing topics have precedence over derived ones.
"""

from collections.abc import Collection, Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from state_model.errors import SharelensError
from state_model.group_topics import Topics
from state_model.streams.values import CopartitionGroup, Subtopology, TaskId, TopicInfo, Topology

NAMED_TOPICS_MAX = 3
"""Topics that the detail of a status names."""


class StatusCode(IntEnum):
    """The status of a streams group in the answer to a heartbeat."""

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5


class Status(NamedTuple):
    """A status with its text for the application's log."""

    code: StatusCode
    detail: str


class InvalidTopologyError(SharelensError):
    """Raised when no topics can make a topology valid (STREAMS_INVALID_TOPOLOGY)."""


class CopartitionIndexError(InvalidTopologyError):
    """Raised when a copartition group names a topic outside of its subtopology (UNKNOWN_SERVER_ERROR, as in Kafka)."""


class _TopicProblemError(SharelensError):
    """Raised when the topics that exist do not fit the topology."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.detail)
        self.status = status


class ConfiguredSubtopology(NamedTuple):
    """A subtopology with decided partition counts in its internal topics; one task for each of `task_count`."""

    subtopology: Subtopology
    task_count: int

    @property
    def is_stateful(self) -> bool:
        """Whether the tasks of the subtopology have state, so that standby tasks make sense."""
        return bool(self.subtopology.state_changelog_topics)


class ConfiguredTopology(NamedTuple):
    """The topology on the topics of a moment.

    Attributes:
        subtopologies: by id; None when source topics are missing or partition counts do not fit.
        missing_topics: internal topics to create, with their partition counts.
        problem: status 1, 2 or 3; None when the topology is ready.
    """

    epoch: int
    subtopologies: Mapping[str, ConfiguredSubtopology] | None
    missing_topics: tuple[TopicInfo, ...] = ()
    problem: Status | None = None

    @property
    def is_ready(self) -> bool:
        """Whether tasks can be assigned."""
        return self.problem is None

    @property
    def tasks(self) -> list[TaskId]:
        """All tasks of a ready topology, ordered by subtopology and partition; none otherwise."""
        if not self.is_ready or self.subtopologies is None:
            return []
        return [
            TaskId(name, partition)
            for name, configured in sorted(self.subtopologies.items())
            for partition in range(configured.task_count)
        ]


def required_topics(topology: Topology) -> set[str]:
    """Topics whose metadata the group's hash covers: sources, repartition sources and changelogs (§2.4)."""
    return {
        name
        for subtopology in topology.subtopologies
        for name in (
            *subtopology.source_topics,
            *(topic.name for topic in subtopology.repartition_source_topics),
            *(topic.name for topic in subtopology.state_changelog_topics),
        )
    }


def input_topics(subtopology: Subtopology) -> list[str]:
    """Topics that the tasks of a subtopology read: sources and repartition sources, sorted."""
    return sorted({*subtopology.source_topics, *(topic.name for topic in subtopology.repartition_source_topics)})


def configure(topology: Topology, topics: Topics) -> ConfiguredTopology:
    """The topology on the topics that exist.

    Raises:
        InvalidTopologyError: partition counts can't be derived whatever topics exist.
    """
    counts = _Counts(topics)
    try:
        _require_sources(topology, topics)
        _count_repartition_topics(topology, counts)
        _enforce_copartitioning(topology, counts)
        for subtopology in topology.subtopologies:
            for topic in subtopology.state_changelog_topics:
                counts.decided[topic.name] = _task_count(subtopology, counts)
        configured = {
            subtopology.subtopology_id: _configured(subtopology, counts) for subtopology in topology.subtopologies
        }
        missing = _missing_topics(configured.values(), topics)
    except _TopicProblemError as error:
        return ConfiguredTopology(topology.epoch, None, problem=error.status)
    problem = None
    if missing:
        detail = f"Internal topics are missing: {named([topic.name for topic in missing])}"
        problem = Status(StatusCode.MISSING_INTERNAL_TOPICS, detail)
    return ConfiguredTopology(topology.epoch, configured, missing, problem)


def named(names: Iterable[str]) -> str:
    """Topic names for a status: the first three, and how many more there are."""
    ordered = sorted(names)
    text = ", ".join(ordered[:NAMED_TOPICS_MAX])
    omitted_count = len(ordered) - NAMED_TOPICS_MAX
    return f"{text} and {omitted_count} additional topics" if omitted_count > 0 else text


class _Counts:
    """Partition counts: of existing topics, else the decided ones."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self.decided: dict[str, int] = {}

    def get(self, name: str) -> int | None:
        """The count of a topic, if it is known."""
        topic = self._topics(name)
        return self.decided.get(name) if topic is None else topic.partitions

    def known_counts(self, names: Iterable[str]) -> list[int]:
        """The known counts of some topics."""
        counts = map(self.get, names)
        return [count for count in counts if count is not None]


def _require_sources(topology: Topology, topics: Topics) -> None:
    missing = {
        name for subtopology in topology.subtopologies for name in subtopology.source_topics if topics(name) is None
    }
    if missing:
        status = Status(StatusCode.MISSING_SOURCE_TOPICS, f"Source topics {named(missing)} are missing.")
        raise _TopicProblemError(status)


def _count_repartition_topics(topology: Topology, counts: _Counts) -> None:
    """Sets the counts of repartition topics: fixed counts, then those from the subtopologies that write them (§4.4)."""
    decided = counts.decided
    for subtopology in topology.subtopologies:
        decided.update(
            (topic.name, topic.partitions) for topic in subtopology.repartition_source_topics if topic.partitions
        )
    failed = "Failed to compute number of partitions for all repartition topics"
    undecided = [each for each in topology.subtopologies if _undecided_sinks(each, decided)]
    while undecided:
        for subtopology in undecided:
            sources = [decided[topic.name] for topic in subtopology.repartition_source_topics if topic.name in decided]
            candidates = sources + counts.known_counts(subtopology.source_topics)
            if candidates:
                decided.update(dict.fromkeys(_undecided_sinks(subtopology, decided), max(candidates)))
        remaining = [each for each in undecided if _undecided_sinks(each, decided)]
        if len(remaining) == len(undecided):
            raise InvalidTopologyError(f"{failed}. There may be loops in the topology that cannot be resolved.")
        undecided = remaining
    for subtopology in topology.subtopologies:
        if any(topic.name not in decided for topic in subtopology.repartition_source_topics):
            raise InvalidTopologyError(f"{failed}, because a repartition source topic is never used as a sink topic.")


def _undecided_sinks(subtopology: Subtopology, decided: Mapping[str, int]) -> list[str]:
    return [name for name in subtopology.repartition_sink_topics if name not in decided]


def _enforce_copartitioning(topology: Topology, counts: _Counts) -> None:
    """Repartition topics take the count of their copartition group (§4.5)."""
    repartition = {topic.name: topic for each in topology.subtopologies for topic in each.repartition_source_topics}
    fixed = {name for name, topic in repartition.items() if topic.partitions}
    for subtopology in topology.subtopologies:
        for group in subtopology.copartition_groups:
            names = _copartitioned(subtopology, group)
            internal = {name: counts.get(name) or 0 for name in names if name in repartition}
            external = {name: counts.get(name) or 0 for name in names if name not in repartition}
            decided = _group_count(internal, external, fixed)
            for name, count in internal.items():
                if name in fixed and count != decided:
                    raise _partition_problem(
                        f"Number of partitions [{count}] of repartition topic [{name}] doesn't match number of "
                        f"partitions [{decided}] of the source topic."
                    )
                counts.decided[name] = decided


def _group_count(internal: Mapping[str, int], external: Mapping[str, int], fixed: Collection[str]) -> int:
    """The partition count that all topics of a copartition group must have."""
    if external:
        return _same_count(external)
    fixed_counts = {name: count for name, count in internal.items() if name in fixed}
    if fixed_counts:
        return _same_count(fixed_counts)
    return max(internal.values(), default=0)


def _copartitioned(subtopology: Subtopology, group: CopartitionGroup) -> list[str]:
    """The topics of a copartition group.

    Raises:
        CopartitionIndexError: an index outside of the subtopology's lists.
    """
    sources, repartitions = subtopology.source_topics, subtopology.repartition_source_topics
    chosen: list[str] = []
    for indexes, names in (
        (group.source_topics, sources),
        (group.repartition_source_topics, tuple(topic.name for topic in repartitions)),
    ):
        for index in indexes:
            if not 0 <= index < len(names):
                where = f"Subtopology {subtopology.subtopology_id}"
                raise CopartitionIndexError(f"{where}: a copartition group names topic {index} of {len(names)}.")
            chosen.append(names[index])
    return chosen


def _same_count(counts: Mapping[str, int]) -> int:
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{name}={count}" for name, count in sorted(counts.items()))
        raise _partition_problem(f"Following topics do not have the same number of partitions: [{{{listed}}}]")
    return next(iter(counts.values()))


def _partition_problem(detail: str) -> _TopicProblemError:
    return _TopicProblemError(Status(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, detail))


def _task_count(subtopology: Subtopology, counts: _Counts) -> int:
    source_counts = counts.known_counts(input_topics(subtopology))
    if not source_counts:
        raise InvalidTopologyError(f"No source topics found for subtopology {subtopology.subtopology_id}")
    return max(source_counts)


def _configured(subtopology: Subtopology, counts: _Counts) -> ConfiguredSubtopology:
    def decided(topics: Iterable[TopicInfo]) -> tuple[TopicInfo, ...]:
        return tuple(topic._replace(partitions=counts.decided[topic.name]) for topic in topics)

    with_counts = subtopology._replace(
        repartition_source_topics=decided(subtopology.repartition_source_topics),
        state_changelog_topics=decided(subtopology.state_changelog_topics),
    )
    return ConfiguredSubtopology(with_counts, _task_count(subtopology, counts))


def _missing_topics(configured: Iterable[ConfiguredSubtopology], topics: Topics) -> tuple[TopicInfo, ...]:
    """Internal topics that do not exist, by name; existing ones must have their decided count (§4.7)."""
    internal = {
        topic.name: topic
        for each in configured
        for topic in (*each.subtopology.repartition_source_topics, *each.subtopology.state_changelog_topics)
    }
    missing = []
    for name, decided in sorted(internal.items()):
        existing = topics(name)
        if existing is None:
            missing.append(decided)
        elif existing.partitions != decided.partitions:
            raise _partition_problem(
                f"Existing topic {name} has different number of partitions: expected {decided.partitions}, "
                f"found {existing.partitions}"
            )
    return tuple(missing)
