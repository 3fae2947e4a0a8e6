"""Heartbeats of streams groups: the request with its checks, and the answer (streams-group §1)."""

import re
from enum import IntEnum
from typing import Final, NamedTuple

from state_model.errors import SharelensError
from state_model.group_heartbeat import JOINING, LEAVING_STATIC, UNCHANGED_TIMEOUT
from state_model.streams.topology import Status
from state_model.streams.values import NO_TASKS, Endpoint, Pairs, Tasks, TasksByType, Topology
from state_model.topics import INTERNAL_TOPICS

TOPIC_NAME_LENGTH_MAX: Final = 249
_TOPIC_NAME: Final = re.compile(r"[a-zA-Z0-9._-]+")


class ErrorCode(IntEnum):
    """Kafka's error codes for streams groups."""

    UNKNOWN_SERVER_ERROR = -1
    UNKNOWN_MEMBER_ID = 25
    INVALID_REQUEST = 42
    GROUP_ID_NOT_FOUND = 69
    GROUP_MAX_SIZE_REACHED = 81
    FENCED_MEMBER_EPOCH = 110
    STREAMS_INVALID_TOPOLOGY = 130


class HeartbeatError(SharelensError):
    """Raised when a streams group refuses a heartbeat; nothing has changed then. `text` is null in some answers."""

    def __init__(self, code: ErrorCode, text: str | None = None) -> None:
        super().__init__(text or code.name)
        self.code = code
        self.text = text


class Heartbeat(NamedTuple):
    """A StreamsGroupHeartbeat. Null fields mean: as in the heartbeat before."""

    group_id: str
    member_id: str
    member_epoch: int
    client_id: str = ""
    client_host: str = ""
    endpoint_information_epoch: int = -1
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = UNCHANGED_TIMEOUT
    topology: Topology | None = None
    active_tasks: Tasks | None = None
    standby_tasks: Tasks | None = None
    warmup_tasks: Tasks | None = None
    process_id: str | None = None
    user_endpoint: Endpoint | None = None
    client_tags: Pairs | None = None
    has_task_offsets: bool = False
    has_task_end_offsets: bool = False
    shutdown_application: bool = False

    @property
    def owned(self) -> TasksByType | None:
        """The tasks that the member has; None when it does not say."""
        if self.active_tasks is None or self.standby_tasks is None:
            return None
        return TasksByType(self.active_tasks, self.standby_tasks, self.warmup_tasks or NO_TASKS)


class EndpointTopics(NamedTuple):
    """Partitions that the tasks of a member with an endpoint have, by topic."""

    endpoint: Endpoint
    active: tuple[tuple[str, tuple[int, ...]], ...]
    standby: tuple[tuple[str, tuple[int, ...]], ...]


class Answer(NamedTuple):
    """The answer to a heartbeat. `tasks` is None when they have not changed, `endpoints` when the client knows them."""

    member_id: str
    member_epoch: int
    heartbeat_interval_ms: int = 0
    statuses: tuple[Status, ...] = ()
    tasks: TasksByType | None = None
    endpoint_information_epoch: int = 0
    endpoints: tuple[EndpointTopics, ...] | None = None


def check_topic_names(topology: Topology) -> None:
    """Raise HeartbeatError when a topology names Kafka's own topics or no topics at all (§1.7)."""
    names = sorted(
        {
            name
            for subtopology in topology.subtopologies
            for name in (
                *subtopology.source_topics,
                *subtopology.repartition_sink_topics,
                *(topic.name for topic in subtopology.repartition_source_topics),
                *(topic.name for topic in subtopology.state_changelog_topics),
            )
        }
    )
    internal = [name for name in names if name in INTERNAL_TOPICS]
    if internal:
        raise HeartbeatError(
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            f"Use of Kafka internal topics {','.join(internal)} in a Kafka Streams topology is prohibited.",
        )
    illegal = [name for name in names if not _is_legal(name)]
    if illegal:
        raise HeartbeatError(
            ErrorCode.STREAMS_INVALID_TOPOLOGY, f"Topic names {','.join(illegal)} are not valid topic names."
        )


def check(request: Heartbeat) -> None:
    """Raise HeartbeatError for a request that is invalid for any group (§1.4 to §1.6, in Kafka's order)."""
    subtopologies = () if request.topology is None else request.topology.subtopologies
    unsupported = {
        "Static membership is not yet supported.": request.instance_id is not None,
        "TaskOffsets are not supported yet.": request.has_task_offsets,
        "TaskEndOffsets are not supported yet.": request.has_task_end_offsets,
        "WarmupTasks are not supported yet.": bool(request.warmup_tasks),
        "Regular expressions for source topics are not supported yet.": any(
            subtopology.source_topic_regex for subtopology in subtopologies
        ),
        "MemberId can't be empty.": not request.member_id.strip(),
        "GroupId can't be empty.": not request.group_id.strip(),
        "RackId can't be empty.": request.rack_id is not None and not request.rack_id.strip(),
    }
    _refuse_first(unsupported)
    if request.member_epoch == JOINING:
        _check_join(request)
        return
    epoch = request.member_epoch
    are_sent = [tasks is not None for tasks in (request.active_tasks, request.standby_tasks, request.warmup_tasks)]
    _refuse_first(
        {
            "InstanceId can't be null.": epoch == LEAVING_STATIC,
            f"MemberEpoch is {epoch}, but must be greater than or equal to -2.": epoch < LEAVING_STATIC,
            "If one task-type is non-null, all must be non-null.": any(are_sent) and not all(are_sent),
            "Topology can only be provided when (re-)joining.": request.topology is not None,
        }
    )


def _check_join(request: Heartbeat) -> None:
    must_be_empty = "must be empty when (re-)joining."
    _refuse_first(
        {
            "RebalanceTimeoutMs must be provided in first request.": request.rebalance_timeout_ms == UNCHANGED_TIMEOUT,
            f"ActiveTasks {must_be_empty}": request.active_tasks != NO_TASKS,
            f"StandbyTasks {must_be_empty}": request.standby_tasks != NO_TASKS,
            f"WarmupTasks {must_be_empty}": request.warmup_tasks != NO_TASKS,
            "Topology must be non-null when (re-)joining.": request.topology is None,
        }
    )
    assert request.topology is not None
    for subtopology in request.topology.subtopologies:
        for topic in subtopology.state_changelog_topics:
            if topic.partitions:
                raise HeartbeatError(
                    ErrorCode.STREAMS_INVALID_TOPOLOGY,
                    f"Changelog topic {topic.name} must have an undefined partition count, but it is set to "
                    f"{topic.partitions}.",
                )


def _refuse_first(faults: dict[str, bool]) -> None:
    for text, is_fault in faults.items():
        if is_fault:
            raise HeartbeatError(ErrorCode.INVALID_REQUEST, text)


def _is_legal(name: str) -> bool:
    return len(name) <= TOPIC_NAME_LENGTH_MAX and name not in (".", "..") and bool(_TOPIC_NAME.fullmatch(name))
