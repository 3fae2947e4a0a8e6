"""Compares answers from a cluster's logs with what its group coordinators say at the same time.

Both change while they are read. A difference counts where it is there twice, and no log that it follows from has grown
since it was fetched: a coordinator knows what is below the high watermark.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias, TypeVar

import pyarrow as pa

from sharelens.kafka_live.cluster import LATEST, Cluster, Place
from sharelens.kafka_live.coordinators import Coordinators
from sharelens.kafka_live.errors import ClusterError
from sharelens.kafka_live.group_now import GroupNow, MemberNow, OffsetNow, SharePartition
from sharelens.live.checked import UNCHECKED, Checked
from sharelens.output import name_cell, number_text
from sharelens.output.wording import counted
from state_model.group_schemas import GroupKind
from state_model.java import partition_for, partition_for_group
from state_model.topics import OFFSETS_TOPIC, STATE_TOPIC

MOST_GROUPS = 100
"""An answer about more groups is not compared: for each share partition the share coordinator is read."""
TRIES, PAUSE_S = 2, 0.5
LISTED = 5
NOT_DESCRIBED = "not compared with the coordinators: they name no group; add DESCRIBE on groups for this user"
COLUMNS = ["group_id", "topic_id", "partition", "start_offset", "completeness"]
OF_LAG = ["topic", "lag", "end_offset"]
Key = TypeVar("Key")
Value = TypeVar("Value")
Ends: TypeAlias = dict[Place, int | None]
"""The offset behind the last record of each partition that a value follows from, as it was read."""


class LiveCheck:
    """`ends`: the offset behind the last batch that was fetched of each partition of the logs."""

    def __init__(self, cluster: Cluster, ends: Mapping[Place, int]) -> None:
        self._cluster = cluster
        self._ends = ends
        self._coordinators = Coordinators(cluster.connection)

    def of_share_partitions(self, table: pa.Table) -> Checked:
        """Start offsets of rows with COLUMNS, and lags where they have OF_LAG, too."""
        lag_columns = OF_LAG if set(OF_LAG) <= set(table.column_names) else []
        rows: dict[SharePartition, OffsetNow] = {}
        ends: dict[SharePartition, Ends] = {}
        for row in table.select(COLUMNS + lag_columns).to_pylist():
            if row["completeness"] == "complete" and (row["start_offset"] or 0) >= 0:
                key = SharePartition(row["group_id"], row["topic_id"], row["partition"])
                rows[key] = OffsetNow(row["start_offset"], row.get("lag"))
                ends[key] = self._end(STATE_TOPIC, partial(partition_for, *key))
                if rows[key].lag is not None:
                    ends[key][Place(row["topic"], row["partition"])] = row["end_offset"]
        groups = {key.group_id for key in rows}
        if len(groups) > MOST_GROUPS:
            return Checked(f"not compared with the coordinators: more than {MOST_GROUPS} groups; give --group")

        def ask() -> Mapping[SharePartition, OffsetNow]:
            answers = self._coordinators.offsets(groups)
            return {key: _comparable(now, rows[key]) for key, now in answers.items() if key in rows}

        return self._compared(rows, ask, ends, groups, _of_share_partition)

    def of_group(self, name: str, group: GroupNow, kind: GroupKind = GroupKind.SHARE) -> Checked:
        """A group: its state, epochs and members with their assignments."""
        coordinators = self._coordinators
        ask = {GroupKind.CONSUMER: coordinators.consumer_groups, GroupKind.STREAMS: coordinators.streams_groups}.get(
            kind, coordinators.share_groups
        )
        end = self._end(OFFSETS_TOPIC, partial(partition_for_group, name))
        return self._compared({name: group}, lambda: ask([name]), {name: end}, [name], _of_group)

    def _end(self, topic: str, partition: Callable[[int], int]) -> Ends:
        """The end of the log that has a share partition or a group."""
        count = sum(place.topic == topic for place in self._ends)
        return {(place := Place(topic, partition(count))): self._ends.get(place)} if count else {}

    def _compared(
        self,
        rows: Mapping[Key, Value],
        ask: Callable[[], Mapping[Key, Value]],
        ends: Mapping[Key, Ends],
        groups: Iterable[str],
        text: Callable[[Key, Value, Value], Iterator[str]],
    ) -> Checked:
        noun = "group" if text is _of_group else "share partition"
        if not rows or not any(place.topic == OFFSETS_TOPIC for place in self._ends):
            return UNCHECKED
        try:
            differing, answers = _differing(rows, ask)
            grown = self._grown({key: ends[key] for key in differing})
            nodes = self._nodes_of(groups)
        except ClusterError as error:
            return Checked(f"not compared with the coordinators: {error}")
        if not nodes:
            return Checked(NOT_DESCRIBED)
        answered = [key for key in rows if key in answers]
        texts = [each for key in answered if key in differing - grown for each in text(key, rows[key], answers[key])]
        same = len(answered) - len(differing)
        line = f"compared with {nodes}: {same} of {counted(len(rows), noun)} the same"
        line += f", {len(rows) - len(answered)} not answered" if len(answered) < len(rows) else ""
        line += f", {len(grown)} changed meanwhile" if grown else ""
        return Checked(line, tuple(_warnings(self._cluster.bootstrap_server, texts)))

    def _nodes_of(self, groups: Iterable[str]) -> str:
        """The coordinators of groups; empty: the cluster names none."""
        nodes = sorted(set(self._coordinators.nodes(groups).values()))
        listed = ", ".join(map(str, nodes[:LISTED])) + (", …" if len(nodes) > LISTED else "")
        if not nodes:
            return ""
        return f"the coordinator on node {listed}" if len(nodes) == 1 else f"the coordinators on nodes {listed}"

    def _grown(self, ends: Mapping[Key, Ends]) -> set[Key]:
        """The keys of which a log has grown since it was read."""
        now = self._cluster.offsets({place for of_key in ends.values() for place in of_key}, LATEST) if ends else {}
        return {key for key, of_key in ends.items() if any(now[place] != end for place, end in of_key.items())}


def _differing(
    rows: Mapping[Key, Value], ask: Callable[[], Mapping[Key, Value]]
) -> tuple[set[Key], Mapping[Key, Value]]:
    """The rows that the last answers differ from, and those answers."""
    for attempt in range(TRIES):
        time.sleep(PAUSE_S if attempt else 0)
        answers = ask()
        differing = {key for key, value in rows.items() if key in answers and answers[key] != value}
        if not differing:
            break
    return differing, answers


def _comparable(now: OffsetNow, log: OffsetNow) -> OffsetNow:
    """What a coordinator says, without a lag that only one of both knows."""
    return now if None not in (now.lag, log.lag) else now._replace(lag=log.lag)


def _of_share_partition(key: SharePartition, log: OffsetNow, now: OffsetNow) -> Iterator[str]:
    place = f"{name_cell(key.group_id)} {key.topic_id}-{key.partition}"
    yield f"{place} has {_offsets(log)} by the log, {_offsets(now)} by the coordinator"


def _offsets(now: OffsetNow) -> str:
    return f"start offset {now.start_offset}" + ("" if now.lag is None else f" and lag {now.lag}")


def _of_group(name: str, log: GroupNow, now: GroupNow) -> Iterator[str]:
    for value in ("state", "group_epoch", "assignment_epoch"):
        log_value, other = getattr(log, value), getattr(now, value)
        if log_value != other:
            by_log, by_coordinator = number_text(log_value), number_text(other)
            yield f"{name_cell(name)} has {value} {by_log} by the log, {by_coordinator} by the coordinator"
    for member_id in sorted(log.members.keys() | now.members.keys()):
        of_log, of_now = log.members.get(member_id), now.members.get(member_id)
        if of_log != of_now:
            yield f"member {name_cell(member_id)} {_member(of_log)} by the log, {_member(of_now)} by the coordinator"


def _member(member: MemberNow | None) -> str:
    return "is none" if member is None else f"has epoch {number_text(member.epoch)} and {len(member.assigned)} assigned"


def _warnings(where: str, texts: Sequence[str]) -> Iterator[str]:
    if texts:
        remainder_text = f"; and {len(texts) - LISTED} more" if len(texts) > LISTED else ""
        yield (
            f"{where}: the log and the coordinator differ, and the log did not change meanwhile: "
            f"{'; '.join(texts[:LISTED])}{remainder_text}; sharelens records shows what the log has"
        )
