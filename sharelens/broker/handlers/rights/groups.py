"""Guards of requests about groups and their offsets."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final, cast

from sharelens.broker.handlers.rights.guards import (
    Call,
    Error,
    Guard,
    Outcome,
    Proceed,
    change_each,
    changed,
    each,
    followed_by,
    group,
    name_of_id,
    refusal,
    refused,
    require_any,
    topic_name,
    topics,
)
from sharelens.broker.protocol.registry import Answer
from sharelens.broker.protocol.steps import LazyArray
from sharelens.broker.security.authorization.entries import Operation, ResourceType

DESCRIBE: Final = Operation.DESCRIBE
SHARE_COORDINATOR: Final = 2
_GROUP_REFUSED: Final = refusal(ResourceType.GROUP)
_TOPIC_REFUSED: Final = refusal(ResourceType.TOPIC)
COORDINATED: Final = {0: (ResourceType.GROUP, DESCRIBE), 1: (ResourceType.TRANSACTIONAL_ID, DESCRIBE)}
"""The rights to find coordinators, by the type of the key; share coordinators need CLUSTER_ACTION."""


def find_coordinator(call: Call, request: Any, proceed: Proceed) -> Outcome:
    """DESCRIBE on groups and transactional ids, CLUSTER_ACTION for share coordinators."""
    key_type = getattr(request, "key_type", 0)
    is_of_share = key_type == SHARE_COORDINATOR
    nowhere = {"node_id": -1, "host": "", "port": -1}

    def error_of(key: str, *, is_batched: bool) -> Error | None:
        if is_of_share:
            may = call.rights.cluster(Operation.CLUSTER_ACTION)
            return None if may else refusal(ResourceType.CLUSTER, has_message=True, **nowhere)
        resource_type, operation = COORDINATED[key_type]
        if call.rights.has(operation, resource_type, key):
            return None
        return refusal(resource_type, has_message=True) | nowhere | ({"error_message": ""} if is_batched else {})

    if not is_of_share and key_type not in COORDINATED:
        return proceed(request)
    if hasattr(request, "coordinator_keys"):
        guard = each("coordinator_keys", lambda _call, _request, key: error_of(key, is_batched=True))
        return guard(call, request, proceed)
    error = error_of(request.key, is_batched=False)
    return proceed(request) if error is None else refused(call, request, error)


def list_groups(call: Call, request: Any, proceed: Proceed) -> Outcome:
    """DESCRIBE on the cluster shows all groups, else DESCRIBE on each; the others are left out."""
    if call.rights.cluster(DESCRIBE):
        return proceed(request)

    def visible(answer: Answer) -> Answer:
        shown = [each_group for each_group in answer["groups"] if _may_describe(call, each_group["group_id"])]
        return {**answer, "groups": shown}

    return changed(proceed(request), visible)


def _may_describe(call: Call, group_id: str) -> bool:
    return call.rights.has(DESCRIBE, ResourceType.GROUP, group_id)


# Heartbeats


def heartbeat(named_topics: Callable[[Any], Iterator[str]]) -> Guard:
    """READ on the group, DESCRIBE on all topics that the request names: without one of them the whole is refused."""
    # Answers of streams groups have no null for the list of statuses.
    may_read = require_any(group(Operation.READ), status=[])

    def guard(call: Call, request: Any, proceed: Proceed) -> Outcome:
        if all(call.rights.topic(DESCRIBE, name) for name in named_topics(request)):
            return proceed(request)
        return refused(call, request, {**_TOPIC_REFUSED, "status": []})

    return lambda call, request, proceed: may_read(
        call, request, lambda allowed_request: guard(call, allowed_request, proceed)
    )


def subscribed_topics(request: Any) -> Iterator[str]:
    """The topics of a heartbeat of a consumer or a share group."""
    yield from request.subscribed_topic_names or ()


def topology_topics(request: Any) -> Iterator[str]:
    """The topics of the topology in a heartbeat of a streams group."""
    for subtopology in () if request.topology is None else request.topology.subtopologies:
        yield from subtopology.source_topics
        yield from subtopology.repartition_sink_topics
        for topic in (*subtopology.repartition_source_topics, *subtopology.state_changelog_topics):
            yield topic.name


# Descriptions


def describe(list_name: str, described_topics: Callable[[Answer], Iterator[str]], message: str = "") -> Guard:
    """DESCRIBE on each group, and on each topic of its description; without the latter it is blank."""
    describable = each(
        list_name, lambda call, request, group_id: None if _may_describe(call, group_id) else _GROUP_REFUSED
    )

    def complete(call: Call, request: Any, described: Answer) -> Answer:
        if described.get("error_code"):
            return {name: value for name, value in described.items() if name != "authorized_operations"}
        if not all(call.rights.topic(DESCRIBE, name) for name in described_topics(described)):
            error = refusal(ResourceType.TOPIC, error_message=message)
            return {"group_id": described["group_id"], **error}
        return described

    completed = change_each("groups", complete)
    return lambda call, request, proceed: completed(
        call, request, lambda allowed_request: describable(call, allowed_request, proceed)
    )


def no_topics(described: Answer) -> Iterator[str]:
    """A description of a classic group names no topics."""
    yield from ()


def assigned_topics(described: Answer) -> Iterator[str]:
    """The topics that members of a group are assigned, those of their targets too (of consumer groups)."""
    for member in described.get("members", ()):
        for name in ("assignment", "target_assignment"):
            for topic in member.get(name, {}).get("topic_partitions", ()):
                yield topic["topic_name"]


def described_topology_topics(described: Answer) -> Iterator[str]:
    """The topics of a streams group's topology."""
    topology = described.get("topology")
    for subtopology in () if topology is None else topology["subtopologies"]:
        yield from subtopology["source_topics"]
        yield from subtopology["repartition_sink_topics"]
        for topic in (*subtopology["repartition_source_topics"], *subtopology["state_changelog_topics"]):
            yield topic["name"]


# Offsets


def with_topic_id(call: Call, request: Any, topic: Answer) -> Answer:
    """An answer about offsets of a topic with its id, also where the topic is refused."""
    existing_topic = call.broker.catalog.by_name(topic["topic_name"])
    return topic if existing_topic is None else {**topic, "topic_id": existing_topic.topic_id}


_NO_OFFSET: Final[Mapping[str, Any]] = {"committed_offset": -1, "committed_leader_epoch": -1, "metadata": ""}
_NO_START: Final[Mapping[str, Any]] = {"start_offset": -1, "lag": -1}
_named_offsets = topics("topics", DESCRIBE, is_always_handled=True, **_NO_OFFSET)


def fetch_offsets(call: Call, request: Any, proceed: Proceed) -> Outcome:
    """DESCRIBE on each group and topic; topics of a request for all are left out."""
    if not hasattr(request, "groups"):
        if not _may_describe(call, request.group_id):
            return refused(call, request, {**_GROUP_REFUSED, **_NO_OFFSET})
        if request.topics is None:
            return changed(proceed(request), lambda answer: _visible_offsets(call, answer))
        return _named_offsets(call, request, proceed)
    return _each_group(call, request, proceed, {**_TOPIC_REFUSED, **_NO_OFFSET})


def describe_share_offsets(call: Call, request: Any, proceed: Proceed) -> Outcome:
    """DESCRIBE on each group and topic; topics of a request for all are left out."""
    return _each_group(call, request, proceed, refusal(ResourceType.TOPIC, has_message=True, **_NO_START))


def _each_group(call: Call, request: Any, proceed: Proceed, topic_error: Error) -> Outcome:
    """Handles each group of the request on its own, while the answer is written."""

    def of_group(requested: Any) -> Answer:
        if not _may_describe(call, requested.group_id):
            return {"group_id": requested.group_id, "topics": [], **_GROUP_REFUSED}
        if requested.topics is None:
            return _visible_offsets(call, _of_one(requested, proceed, request))
        allowed_topics: list[Any] = []
        refusals: list[Any] = []
        for topic in requested.topics:
            name = topic_name(call, topic)
            is_kept = name is None or call.rights.topic(DESCRIBE, name)
            (allowed_topics if is_kept else refusals).append(topic)
        answer = _of_one(replace(requested, topics=tuple(allowed_topics)), proceed, request)
        return followed_by(answer, "topics", [_topic_error(topic, topic_error) for topic in refusals])

    return {"groups": LazyArray(of_group, request.groups)}


def _of_one(requested: Any, proceed: Proceed, request: Any) -> Answer:
    answer = cast(Answer, proceed(replace(request, groups=(requested,))))
    (of_group,) = answer["groups"]
    return cast(Answer, of_group)


def _topic_error(topic: Any, error: Error) -> Answer:
    """The answer to a topic of a group: the error for each of its partitions."""
    partitions = topic.partition_indexes if hasattr(topic, "partition_indexes") else topic.partitions
    same = {field: getattr(topic, field) for field in ("name", "topic_id", "topic_name") if hasattr(topic, field)}
    return {**same, "partitions": [{"partition_index": partition, **error} for partition in partitions]}


def _visible_offsets(call: Call, answer: Answer) -> Answer:
    """The answer without topics that the client may not describe."""

    def is_visible(topic: Answer) -> bool:
        name = topic.get("name", topic.get("topic_name"))
        name = name_of_id(call, topic["topic_id"]) if name is None else name
        return name is not None and call.rights.topic(DESCRIBE, name)

    return {**answer, "topics": [topic for topic in answer.get("topics", ()) if is_visible(topic)]}
