"""The state of a streams group, record by record (consumer-offsets-records §5, streams-group §10)."""

from typing import Any, Final

from state_model.group_replay import METADATA_CHANGE, Change, Replay, entry_change, field_change
from state_model.group_targets import NO_TARGET
from state_model.streams.records import (
    ASSIGNMENT,
    FORMS,
    MEMBER,
    MEMBER_TARGET,
    METADATA,
    TARGET,
    TOPOLOGY,
    RecordValue,
)
from state_model.streams.values import LEFT_ASSIGNMENT, StreamsGroup, StreamsMember

NEW_GROUP: Final = StreamsGroup()
NEW_MEMBER: Final = StreamsMember()


def _with_member(group: StreamsGroup, member_id: str, **parts: Any) -> StreamsGroup:
    member = group.members.get(member_id, NEW_MEMBER)._replace(**parts)
    return group._replace(members=group.members.set(member_id, member))


REPLAY: Final[Replay[StreamsGroup, RecordValue]] = Replay(
    NEW_GROUP,
    FORMS,
    {
        METADATA: METADATA_CHANGE,
        MEMBER: Change(
            lambda group, member_id, value: _with_member(group, member_id, metadata=value),
            lambda group, member_id: group._replace(members=group.members.remove(member_id)),
        ),
        TARGET: field_change("target", NO_TARGET),
        MEMBER_TARGET: entry_change("targets"),
        ASSIGNMENT: Change(
            lambda group, member_id, value: _with_member(group, member_id, assignment=value),
            lambda group, member_id: (
                _with_member(group, member_id, assignment=LEFT_ASSIGNMENT) if member_id in group.members else group
            ),
        ),
        TOPOLOGY: field_change("topology", None),
    },
    member_types=(ASSIGNMENT, MEMBER_TARGET, MEMBER),
)
apply, with_value, without_value = REPLAY.apply, REPLAY.with_value, REPLAY.without_value
