"""A group as the tool for its kind printed it at a moment: offsets, members or state; of streams groups also tasks.

The group coordinator's log has neither the coordinator, which the metadata log says, nor a lag, which is that of `lag`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

import pyarrow as pa

from sharelens.groups.model_replay import ConsumerReplay, LateStreamsReplay
from sharelens.groups.moment import GroupMoment, consumer_groups_at, groups_at, streams_groups_at
from sharelens.groups.replay import ShareGroup, changes
from sharelens.kafka_live.group_now import GroupNow
from sharelens.measures.topics.file_ends import EndOffsets
from sharelens.output import Answer, name_cell
from sharelens.parameters.times import time_text
from sharelens.questions.answers.checked import with_check, with_coordinators
from sharelens.questions.answers.completeness import prefix_of
from sharelens.questions.groups import (
    describe_consumer,
    describe_share,
    describe_streams,
    describe_streams_offsets,
)
from sharelens.questions.groups.describe_answer import with_coordinator
from sharelens.questions.groups.groups_now import consumer_now, share_now, streams_now
from sharelens.source.request import CutChoice
from sharelens.tables.known_groups import group_kind, records_of_groups, share_group_records
from sharelens.tables.port import Tables
from state_model.errors import SharelensError, UsageError
from state_model.group_schemas import RECORD_TYPES, GroupKind

Existing = TypeVar("Existing", ShareGroup, LateStreamsReplay, ConsumerReplay)


class View(Enum):
    """What to describe; the words are those of Kafka's tools."""

    OFFSETS = "offsets"
    MEMBERS = "members"
    STATE = "state"
    TASKS = "tasks"


def view_of(*, offsets: bool, members: bool, tasks: bool, state: bool) -> View:
    """The view that the options choose; without one of them and with `offsets` that of the offsets."""
    chosen = {View.OFFSETS: offsets, View.MEMBERS: members, View.TASKS: tasks, View.STATE: state}
    return next((view for view, is_chosen in chosen.items() if is_chosen), View.OFFSETS)


def describe(
    evidence: Tables,
    name: str,
    as_of_ms: int | None = None,
    view: View = View.OFFSETS,
    *,
    end_offsets: EndOffsets | None = None,
) -> Answer:
    """The answer to `sharelens describe`; `end_offsets` replaces the end offsets of the evidence.

    Raises:
        UsageError: nothing names the group.
        SharelensError: the group did not exist at the moment.
    """
    cut = CutChoice(as_of_ms=as_of_ms)
    request = _Request(evidence=evidence, name=name, cut=cut, view=view, end_offsets=end_offsets)
    records = records_of_groups(evidence, frozenset([name]))
    match group_kind(records, as_of_ms):
        case GroupKind.STREAMS:
            return _streams(request, records)
        case GroupKind.CONSUMER:
            return _consumer(request, records)
    answer = _share(request, share_group_records(evidence, name))
    is_of_offsets = view is View.OFFSETS and end_offsets is None
    return with_coordinators(evidence, answer, cut) if is_of_offsets else answer


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """What to describe: the parameters of `describe`."""

    evidence: Tables
    name: str
    cut: CutChoice
    view: View
    end_offsets: EndOffsets | None


def _share(request: _Request, records: pa.Table) -> Answer:
    """The view of a share group."""
    evidence, name, cut = request.evidence, request.name, request.cut
    moment = _existing(groups_at(records, cut.as_of_ms).get(name), name, records, cut.as_of_ms)
    match request.view:
        case View.TASKS:
            raise _no_tasks(name, GroupKind.SHARE)
        case View.STATE:
            answer = describe_share.state(evidence, name, moment)
        case View.MEMBERS:
            answer = describe_share.members(evidence, name, moment)
        case View.OFFSETS:
            answer = describe_share.offsets(evidence, name, moment, cut, request.end_offsets)
    return _compared(request, answer, moment, lambda: share_now(moment.group), GroupKind.SHARE)


def _consumer(request: _Request, records: pa.Table) -> Answer:
    """The view of a consumer group."""
    evidence, name, cut = request.evidence, request.name, request.cut
    moment = _existing(consumer_groups_at(records, cut.as_of_ms).get(name), name, records, cut.as_of_ms)
    match request.view:
        case View.TASKS:
            raise _no_tasks(name, GroupKind.CONSUMER)
        case View.STATE:
            answer = describe_consumer.state(evidence, name, moment)
        case View.MEMBERS:
            answer = describe_consumer.members(evidence, name, moment)
        case View.OFFSETS:
            answer = describe_consumer.offsets(evidence, name, moment, prefix_of(cut), request.end_offsets)
    return _compared(
        request, answer, moment, lambda: consumer_now(describe_consumer.group_of(moment)), GroupKind.CONSUMER
    )


def _streams(request: _Request, records: pa.Table) -> Answer:
    """The view of a streams group."""
    evidence, name, cut = request.evidence, request.name, request.cut
    moment = _existing(streams_groups_at(records, cut.as_of_ms).get(name), name, records, cut.as_of_ms)
    match request.view:
        case View.STATE:
            answer = describe_streams.state(evidence, name, moment)
        case View.MEMBERS:
            answer = describe_streams.members(evidence, name, moment)
        case View.TASKS:
            answer = describe_streams.tasks(evidence, name, moment)
        case View.OFFSETS:
            answer = describe_streams_offsets.offsets(evidence, name, moment, prefix_of(cut), request.end_offsets)
    return _compared(request, answer, moment, lambda: streams_now(describe_streams.group_of(moment)), GroupKind.STREAMS)


def _compared(
    request: _Request, answer: Answer, moment: GroupMoment[Existing], now: Callable[[], GroupNow], kind: GroupKind
) -> Answer:
    """The answer with its coordinator; of a running cluster as it is now, also compared with what that says.

    `now`: the group of the log, in the values that the coordinator describes it with.
    """
    evidence, cut = request.evidence, request.cut
    answer = with_coordinator(evidence, answer, moment, cut.as_of_ms, reads_log=request.view is View.STATE)
    if evidence.cluster is None or cut != CutChoice():
        return answer
    return with_check(answer, evidence.cluster.coordinators().of_group(request.name, now(), kind))


def _no_tasks(name: str, kind: GroupKind) -> UsageError:
    return UsageError(f"describe: {name_cell(name)} is a {kind.value} group, which has no tasks; leave --tasks out")


def _existing(
    moment: GroupMoment[Existing] | None, name: str, records: pa.Table, as_of_ms: int | None
) -> GroupMoment[Existing]:
    """The moment of a group that exists; an error that says since when, or until when."""
    of_kind = group_kind(records, as_of_ms)
    kind = f"{of_kind.value} group"
    if moment is None:
        types = [number for number, record_type in RECORD_TYPES.items() if record_type.group_kind is of_kind]
        first_ms = next(changes(records, types)).log_time_ms
        raise SharelensError(
            f"{kind} {name_cell(name)} has no record up to {time_text(as_of_ms)}; the first one is of "
            f"{time_text(first_ms)}: describe it as of then, or later"
        )
    if moment.group.is_deleted:
        newest = moment.newest
        when = "is deleted" if as_of_ms is None else f"did not exist at {time_text(as_of_ms)}"
        if of_kind is GroupKind.CONSUMER:  # a group that has only members of the classic protocol is a classic group
            when += ", or a classic group again" if as_of_ms is None else ", or was a classic group"
        raise SharelensError(
            f"{kind} {name_cell(name)} {when}: its tombstone is of {time_text(newest.log_time_ms)} "
            f"(__consumer_offsets-{newest.log_partition} @ {newest.log_offset}); describe it as of a time before"
        )
    return moment
