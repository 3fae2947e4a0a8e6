"""The signs of trouble of streams groups at the end of the evidence: what their findings are made of.

All comes from the group coordinator's log and the ends of the topics that the groups read.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.findings.signs import Lag, StreamsSign
from sharelens.groups.moment import StreamsMoment, streams_groups_at
from sharelens.groups.replay import is_of_types, up_to
from sharelens.groups.schemas import ACTIVE, EMPTY, NOT_READY
from sharelens.questions.findings.model_signs import (
    Rows,
    Window,
    histories_of,
    lags_of,
    rows_by_group,
    since_last_end,
    state_signs,
    window_of,
)
from sharelens.questions.groups.describe_streams import group_of
from sharelens.questions.groups.describe_streams_offsets import offset_rows
from sharelens.tables.port import Tables
from state_model.streams.records import METADATA, STREAMS_TYPES
from state_model.streams.values import StreamsGroup, TaskId, Tasks


def streams_signs(evidence: Tables, records: pa.Table, as_of_ms: int | None, now_ms: int) -> tuple[StreamsSign, ...]:
    """The streams groups among GROUP_RECORD rows that exist at the moment, by name.

    `now_ms`: the present, or later the time of the newest record.
    """
    records = up_to(records.filter(is_of_types(records, STREAMS_TYPES)), as_of_ms)
    moments = {name: moment for name, moment in streams_groups_at(records).items() if moment.group.group is not None}
    if not moments:
        return ()
    window = window_of(records, now_ms)
    replayed = _histories(records, moments, window.from_ms)
    lags = lags_of(evidence, moments, as_of_ms, window.from_ms, offset_rows)
    return tuple(_sign(name, moment, replayed.get(name), lags[name][0], window) for name, moment in moments.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class _History:
    """GROUP_HISTORY and active TASK_HISTORY rows of a group since its last deletion, in order."""

    groups: Rows
    tasks: Rows


def _histories(records: pa.Table, moments: Mapping[str, StreamsMoment], from_ms: int) -> dict[str, _History]:
    """The histories of the groups that are not ready or rebalance, or did so since `from_ms`."""
    names, group_histories = histories_of(records, moments, METADATA, from_ms)
    groups_by_name, tasks_by_name = rows_by_group(group_histories.groups), rows_by_group(group_histories.tasks)
    result = {}
    for name in names:
        groups, since = since_last_end(groups_by_name[name])
        is_active = (pc.field("task_type") == ACTIVE) & (pc.field("valid_from_log_offset") >= since)
        tasks = tasks_by_name[name].filter(is_active).to_pylist() if name in tasks_by_name else ()
        result[name] = _History(groups=groups, tasks=tasks)
    return result


def _sign(name: str, moment: StreamsMoment, history: _History | None, lag: Lag, window: Window) -> StreamsSign:
    group, state = group_of(moment), moment.group.state
    had = {_task(row) for row in (history.tasks if history else ())}
    tasks = _targets(group) | had if group.members else frozenset()
    of_state = state_signs(history.groups if history else (), state, moment.newest.log_time_ms, window)
    is_assigned = state not in (EMPTY, NOT_READY)
    return StreamsSign(
        group_id=name,
        members=len(group.members),
        topology_epoch=None if group.topology is None else group.topology.epoch,
        validated_topology_epoch=group.validated_topology_epoch,
        tasks=len(tasks),
        without_owner=_without_owner(group, tasks, history, of_state["since_ms"]) if is_assigned else {},
        lag=lag,
        **of_state,
    )


def _targets(group: StreamsGroup) -> Tasks:
    return frozenset(task for target_tasks in group.targets.values() for task in target_tasks.active)


def _task(row: Mapping[str, Any]) -> TaskId:
    return TaskId(row["subtopology_id"], row["partition"])


def _without_owner(group: StreamsGroup, tasks: Tasks, history: _History | None, since_ms: int) -> dict[TaskId, int]:
    """The tasks that no member has, each with the time since when: that of its last owner, else that of the state."""
    owned = {
        task
        for _, assignment in group.members.values()
        if assignment is not None
        for task in (*assignment.assigned.active, *assignment.pending.active)
    }
    ends: dict[TaskId, int] = {}
    for row in history.tasks if history else ():
        ends[_task(row)] = max(row["valid_to_ms"] or 0, ends.get(_task(row), 0))
    return {task: ends.get(task, since_ms) for task in sorted(tasks - owned)}
