"""The signs of trouble of streams groups at the end of the evidence: what their findings are made of.

All comes from the group coordinator's log and the ends of the topics that the groups read. Histories are replayed only
of groups that rebalance or are not ready.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.as_of import LogPrefix
from sharelens.evidence.offset_commit_rows import offset_commit_or_marker, without_other_markers
from sharelens.findings.signs import Lag, StreamsSign
from sharelens.groups.committed_offsets import TRANSACTIONAL
from sharelens.groups.histories import histories
from sharelens.groups.intervals import Histories
from sharelens.groups.moment import StreamsMoment, streams_groups_at
from sharelens.groups.replay import is_of_types
from sharelens.groups.schemas import ACTIVE, DEAD, EMPTY, NOT_READY, UNSETTLED
from sharelens.questions.groups.describe_streams import group_of
from sharelens.questions.groups.describe_streams_offsets import offset_rows
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_offset_commits
from state_model.streams.records import METADATA, STREAMS_TYPES
from state_model.streams.values import StreamsGroup, TaskId, Tasks

WINDOW_MS = 600_000
"""How long before now rebalances count, and the lag is compared with."""
Rows = Sequence[Mapping[str, Any]]


def streams_signs(evidence: Tables, records: pa.Table, as_of_ms: int | None, now_ms: int) -> tuple[StreamsSign, ...]:
    """The streams groups among GROUP_RECORD rows that exist at the moment, by name.

    `now_ms`: the present, or later the time of the newest record.
    """
    records = records.filter(is_of_types(records, STREAMS_TYPES))
    if as_of_ms is not None:
        records = records.filter(pc.field("timestamp_ms") <= as_of_ms)
    moments = {name: moment for name, moment in streams_groups_at(records).items() if moment.group.group is not None}
    if not moments:
        return ()
    now_ms = max(now_ms, pc.max(records.column("timestamp_ms")).as_py())
    window_ms = max(now_ms - WINDOW_MS, (_first_ms(records) + now_ms) // 2)
    replayed = _histories(records, moments, window_ms)
    lags = _lags(evidence, moments, as_of_ms, window_ms)
    return tuple(
        _sign(name, moment, replayed.get(name), lags[name], window_ms, now_ms) for name, moment in moments.items()
    )


def _first_ms(records: pa.Table) -> int:
    return pc.min(records.column("timestamp_ms")).as_py() or 0


@dataclass(frozen=True, slots=True, kw_only=True)
class _History:
    """GROUP_HISTORY and active TASK_HISTORY rows of a group since its last deletion, in order."""

    groups: Rows
    tasks: Rows


def _histories(records: pa.Table, moments: Mapping[str, StreamsMoment], window_ms: int) -> dict[str, _History]:
    """The histories of the groups that are not ready or rebalance, or did so since `window_ms`."""
    raised = records.filter((pc.field("record_type") == METADATA) & (pc.field("timestamp_ms") >= window_ms))
    changing = set(raised.column("group_id").to_pylist())
    names = [
        name for name, moment in moments.items() if moment.group.state in (*UNSETTLED, NOT_READY) or name in changing
    ]
    group_histories = histories(records.filter(pc.field("group_id").isin(pa.array(names, pa.string()))))
    return {name: _history(group_histories, name) for name in names}


def _history(group_histories: Histories, name: str) -> _History:
    groups, tasks = (
        rows.filter(pc.field("group_id") == name) for rows in (group_histories.groups, group_histories.tasks)
    )
    lives = groups.to_pylist()
    begin = max((place for place, row in enumerate(lives) if row["state"] == DEAD), default=-1) + 1
    since = lives[begin]["valid_from_log_offset"]
    active_tasks = tasks.filter((pc.field("task_type") == ACTIVE) & (pc.field("valid_from_log_offset") >= since))
    return _History(groups=lives[begin:], tasks=active_tasks.to_pylist())


def _sign(
    name: str, moment: StreamsMoment, history: _History | None, lag: Lag, window_ms: int, now_ms: int
) -> StreamsSign:
    group, state = group_of(moment), moment.group.state
    lasting = [row for row in (history.groups if history else ()) if row["valid_to_ms"] != row["valid_from_ms"]]
    alike = list(_alike(lasting, UNSETTLED if state in UNSETTLED else (state,)))
    window = [row for row in lasting if row["valid_to_ms"] is None or row["valid_to_ms"] > window_ms]
    had = {_task(row) for row in (history.tasks if history else ())}
    tasks = _targets(group) | had if group.members else frozenset()
    since_ms = alike[-1]["valid_from_ms"] if alike else moment.newest.log_time_ms
    return StreamsSign(
        group_id=name,
        now_ms=now_ms,
        state=state,
        members=len(group.members),
        since_ms=since_ms,
        epochs=len({row["group_epoch"] for row in alike}),
        unsettled_ms=sum(
            (now_ms if row["valid_to_ms"] is None else row["valid_to_ms"]) - max(row["valid_from_ms"], window_ms)
            for row in window
            if row["state"] in UNSETTLED
        ),
        window_ms=window_ms,
        window_epochs=len({row["group_epoch"] for row in window}),
        topology_epoch=None if group.topology is None else group.topology.epoch,
        validated_topology_epoch=group.validated_topology_epoch,
        tasks=len(tasks),
        without_owner={} if state in (EMPTY, NOT_READY) else _without_owner(group, tasks, history, since_ms),
        lag=lag,
    )


def _alike(rows: Rows, states: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """The newest rows in one of the states, back to the first of them."""
    for row in reversed(rows):
        if row["state"] not in states:
            return
        yield row


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


def _lags(
    evidence: Tables, moments: Mapping[str, StreamsMoment], as_of_ms: int | None, before_ms: int
) -> dict[str, Lag]:
    """The lag of each group, and its growth since a moment."""
    commits = read_offset_commits(evidence, frozenset(moments))
    lags = {}
    for name, moment in moments.items():
        group_commits = without_other_markers(commits.filter(offset_commit_or_marker([name])))
        rows = offset_rows(evidence, name, moment, _newest_plain(group_commits) if as_of_ms is None else group_commits,
                           LogPrefix(as_of_ms=as_of_ms), None)  # fmt: skip
        now = _known_lags(rows)
        growth, finished = None, 0
        if any(now.values()) and group_of(moment).members:
            rows_before = offset_rows(evidence, name, moment, group_commits, LogPrefix(as_of_ms=before_ms), None)
            growth = _growth(_known_lags(rows_before), now)
            finished = _growth(_committed(rows_before), _committed(rows)) or 0
        lags[name] = Lag(
            records=sum(now.values()) if now else None,
            unknown=len(rows) - len(now),
            partitions=len(rows),
            growth=growth,
            finished=finished,
        )
    return lags


def _known_lags(rows: Rows) -> dict[tuple[str, int], int]:
    """The lag of each partition of which it is known."""
    lags = {(row["topic"], row["partition"]): row["lag"] for row in rows}
    lags |= {(row["topic"], row["partition"]): row["lag_inferred"] for row in rows if row["lag"] is None}
    return {place: max(0, lag) for place, lag in lags.items() if lag is not None}


def _committed(rows: Rows) -> dict[tuple[str, int], int]:
    """The committed offset of each partition that has one."""
    offsets = {(row["topic"], row["partition"]): row["committed_offset"] for row in rows}
    return {place: offset for place, offset in offsets.items() if offset is not None}


def _growth(before: Mapping[tuple[str, int], int], now: Mapping[tuple[str, int], int]) -> int | None:
    """By how much the values of partitions of both moments grew; None: there is none."""
    common_places = now.keys() & before.keys()
    return sum(now[place] - before[place] for place in common_places) if common_places else None


def _newest_plain(commits: pa.Table) -> pa.Table:
    """The offset commits, of those outside transactions few that a later one of the same partition replaces."""
    plain = (pc.bit_wise_and(pc.field("attributes"), TRANSACTIONAL) == 0) & ~pc.field("is_control")
    newest = commits.filter(plain).group_by(["partition", "key"]).aggregate([("offset", "max")]).column("offset_max")
    return commits.filter(~plain | pc.field("offset").isin(newest.combine_chunks()))
