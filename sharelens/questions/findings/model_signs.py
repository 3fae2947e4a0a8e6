"""What signs of streams and consumer groups have in common: since when a group has its state, rebalances and lag.

Histories are replayed only of groups that rebalance or wait.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.as_of import LogPrefix
from sharelens.evidence.offset_commit_rows import commits_by_group
from sharelens.findings.signs import Lag
from sharelens.groups.committed_offsets import TRANSACTIONAL
from sharelens.groups.histories import histories
from sharelens.groups.intervals import Histories
from sharelens.groups.moment import ConsumerMoment, StreamsMoment
from sharelens.groups.schemas import DEAD, NOT_READY, UNSETTLED
from sharelens.tables.port import Tables
from sharelens.tables.reading import read_offset_commits

WINDOW_MS = 600_000
"""How long before now rebalances count, and the lag is compared with."""
Rows = Sequence[Mapping[str, Any]]
M = TypeVar("M", StreamsMoment, ConsumerMoment)
OffsetRows = Callable[[Tables, str, M, pa.Table, LogPrefix, None], Rows]
"""The committed offsets of a group with their lags (describe)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The time before now that signs look at, from `from_ms` on."""

    from_ms: int
    now_ms: int


def window_of(records: pa.Table, now_ms: int) -> Window:
    """The window of GROUP_RECORD rows; `now_ms`: the present, or later the time of the newest record."""
    now_ms = max(now_ms, pc.max(records.column("timestamp_ms")).as_py())
    first_ms = pc.min(records.column("timestamp_ms")).as_py() or 0
    return Window(from_ms=max(now_ms - WINDOW_MS, (first_ms + now_ms) // 2), now_ms=now_ms)


def histories_of(
    records: pa.Table, moments: Mapping[str, StreamsMoment] | Mapping[str, ConsumerMoment], metadata: int, from_ms: int
) -> tuple[frozenset[str], Histories]:
    """The groups that wait or rebalance, or did so since `from_ms`, and their histories; `metadata`: type of epochs."""
    raised = records.filter((pc.field("record_type") == metadata) & (pc.field("timestamp_ms") >= from_ms))
    changing = set(raised.column("group_id").to_pylist())
    names = [
        name for name, moment in moments.items() if moment.group.state in (*UNSETTLED, NOT_READY) or name in changing
    ]
    of_groups = records.filter(pc.field("group_id").isin(pa.array(names, pa.string())))
    return frozenset(names), histories(of_groups)


def rows_by_group(rows: pa.Table) -> dict[str, pa.Table]:
    """Slices of history rows by group; the rows of a group stand together, those of one kind of groups."""
    names = rows.column("group_id").combine_chunks().dictionary_encode()
    codes = names.indices.to_numpy()
    bounds = [*np.flatnonzero(np.diff(codes, prepend=-1)).tolist(), len(codes)]
    dictionary = names.dictionary.to_pylist()
    return {dictionary[codes[begin]]: rows.slice(begin, end - begin) for begin, end in pairwise(bounds)}


def since_last_end(group_rows: pa.Table) -> tuple[Rows, int]:
    """GROUP_HISTORY rows of a group since its last deletion, and the log offset of the first."""
    lives = group_rows.to_pylist()
    begin = max((place for place, row in enumerate(lives) if row["state"] == DEAD), default=-1) + 1
    return lives[begin:], lives[begin]["valid_from_log_offset"]


def state_signs(groups: Rows, state: str, newest_ms: int, window: Window) -> dict[str, Any]:
    """The fields of GroupSign that follow from GROUP_HISTORY rows; `newest_ms`: of the group's newest record."""
    lasting = [row for row in groups if row["valid_to_ms"] != row["valid_from_ms"]]
    alike = list(_alike(lasting, UNSETTLED if state in UNSETTLED else (state,)))
    in_window = [row for row in lasting if row["valid_to_ms"] is None or row["valid_to_ms"] > window.from_ms]
    return {
        "now_ms": window.now_ms,
        "state": state,
        "since_ms": alike[-1]["valid_from_ms"] if alike else newest_ms,
        "epochs": len({row["group_epoch"] for row in alike}),
        "unsettled_ms": sum(
            (window.now_ms if row["valid_to_ms"] is None else row["valid_to_ms"])
            - max(row["valid_from_ms"], window.from_ms)
            for row in in_window
            if row["state"] in UNSETTLED
        ),
        "window_ms": window.from_ms,
        "window_epochs": len({row["group_epoch"] for row in in_window}),
    }


def _alike(rows: Rows, states: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    """The newest rows in one of the states, back to the first of them."""
    for row in reversed(rows):
        if row["state"] not in states:
            return
        yield row


def lags_of(
    evidence: Tables, moments: Mapping[str, M], as_of_ms: int | None, before_ms: int | None, rows_of: OffsetRows[M]
) -> dict[str, tuple[Lag, Rows]]:
    """The lag of each group and its growth since a moment (None: it is not computed), and its rows of offsets."""
    commits = read_offset_commits(evidence, frozenset(moments))
    commits_of = commits_by_group(commits)
    lags = {}
    for name, moment in moments.items():
        of_group = commits_of.get(name, commits.slice(0, 0))
        newest_commits = _newest_plain(of_group) if as_of_ms is None else of_group
        rows = rows_of(evidence, name, moment, newest_commits, LogPrefix(as_of_ms=as_of_ms), None)
        now = _known_lags(rows)
        growth, finished = None, 0
        if (
            before_ms is not None
            and any(now.values())
            and moment.group.group is not None
            and moment.group.group.members
        ):
            rows_before = rows_of(evidence, name, moment, of_group, LogPrefix(as_of_ms=before_ms), None)
            growth = _growth(_known_lags(rows_before), now)
            finished = _growth(_committed(rows_before), _committed(rows)) or 0
        lag = Lag(
            records=sum(now.values()) if now else None,
            unknown=len(rows) - len(now),
            partitions=len(rows),
            growth=growth,
            finished=finished,
        )
        lags[name] = lag, rows
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
