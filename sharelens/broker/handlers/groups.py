"""Groups of all kinds: list them, delete them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol

from kio.schema.errors import ErrorCode

from sharelens.broker.coordinators.classic_groups import ClassicGroups
from sharelens.broker.coordinators.epoch_groups import AnyEpochGroups, groups_with
from sharelens.broker.coordinators.share_group import GroupError
from sharelens.broker.coordinators.share_groups import ShareGroups
from sharelens.broker.coordinators.share_offsets import ShareOffsets
from sharelens.broker.protocol.registry import Answer, RequestContext, handles
from sharelens.broker.protocol.steps import LazyArray
from sharelens.kafka_formats.messages.api_keys import ApiKey
from state_model.group_schemas import GroupKind
from state_model.streams.values import GroupState

SHARE_PROTOCOL_TYPE = "share"
FILTERED_AS = {GroupState.NOT_READY.value: "not_ready"}
"""States that Kafka compares with a filter under another name than it prints."""


class GroupServer(Protocol):
    """The parts of the broker that these handlers use."""

    @property
    def share_groups(self) -> ShareGroups:
        """The share groups."""

    @property
    def share_offsets(self) -> ShareOffsets:
        """Admin operations on them."""

    @property
    def epoch_groups(self) -> Sequence[AnyEpochGroups]:
        """The consumer and the streams groups."""

    @property
    def classic_groups(self) -> ClassicGroups:
        """The classic groups."""


@handles(ApiKey.LIST_GROUPS, (0, 5))
def list_groups(broker: GroupServer, request: Any, context: RequestContext) -> Answer:
    """All groups, or those of certain states (from version 4 on) and kinds (5), ignoring case."""
    states = _lowered(getattr(request, "states_filter", ()))
    kinds = _lowered(getattr(request, "types_filter", ()))
    return {
        "groups": [
            group
            for group in _all_groups(broker)
            if (not states or _filtered_as(group["group_state"]) in states)
            and (not kinds or group["group_type"] in kinds)
        ]
    }


@handles(ApiKey.DELETE_GROUPS, (0, 2))
def delete_groups(broker: GroupServer, request: Any, context: RequestContext) -> Answer:
    """Delete groups without members."""
    return {
        "results": LazyArray(
            lambda group_id: {"group_id": group_id, "error_code": _delete(broker, group_id)},
            list(dict.fromkeys(request.groups_names)),
        )
    }


def _all_groups(broker: GroupServer) -> Iterator[Mapping[str, str]]:
    for group in broker.share_groups:
        yield _listed(group.group_id, SHARE_PROTOCOL_TYPE, group.state, GroupKind.SHARE)
    for groups in broker.epoch_groups:
        for group_id, epoch_group in groups:
            yield _listed(group_id, groups.kind.value, epoch_group.state.value, groups.kind)
    for classic in broker.classic_groups:
        yield _listed(classic.group_id, classic.protocol_type or "", classic.state.value, GroupKind.CLASSIC)


def _listed(group_id: str, protocol_type: str, state: str, kind: GroupKind) -> Mapping[str, str]:
    return {"group_id": group_id, "protocol_type": protocol_type, "group_state": state, "group_type": kind.value}


def _filtered_as(state: str) -> str:
    return FILTERED_AS.get(state, state.lower())


def _lowered(texts: Collection[str]) -> frozenset[str]:
    return frozenset(text.lower() for text in texts)


def _delete(broker: GroupServer, group_id: str) -> ErrorCode:
    epoch_groups = groups_with(broker.epoch_groups, group_id)
    if epoch_groups is not None:
        return epoch_groups.delete(group_id)
    if broker.share_groups.get(group_id) is None:
        return broker.classic_groups.delete(group_id)
    try:
        broker.share_offsets.delete_group(group_id)
    except GroupError as error:
        return error.code
    return ErrorCode.none
