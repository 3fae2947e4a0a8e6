"""One order of groups and of share partitions for every part of a report: what is open now first, the worst first.

A group stands where its worst finding does: by severity, then in the order of findings (kind, then size). Groups with
a lag but no finding follow, the largest lag first. The others have nothing open.

A share partition has the severity of its group where something of it is open: a stall that lasts, a lag, or a finding
that names it. Of each severity every group has its first share partition before any group has its second, so that one
bad group does not hide the next. Share partitions with nothing open come last, those with the most in the past first.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.findings.finding import ERROR, INFO, WARNING, Finding
from sharelens.findings.group_rows import sums_of_groups
from sharelens.questions.answers.share_partitions import Key, key_of
from state_model.columnar.keys import SHARE_PARTITION_KEY

SEVERITIES = (ERROR, WARNING, INFO)
BEHIND, CLOSED = len(SEVERITIES), len(SEVERITIES) + 1
"""Severities as numbers are places in SEVERITIES; then come a lag without a finding, and nothing open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRanking:
    """The place and the severity of each group with something open; the places ascend from 0, the worst first."""

    places: Mapping[str, int]
    severities: Mapping[str, int]

    def place(self, group: str) -> int:
        """The place of a group; the same one, behind all others, for each group with nothing open."""
        return self.places.get(group, len(self.places))

    def severity(self, group: str) -> int:
        """The severity of a group as a number, 0: error."""
        return self.severities.get(group, CLOSED)

    def severity_of(self, rows: pa.Table) -> pa.ChunkedArray:
        """The severity of each row's group."""
        numbers = pc.index_in(rows.column("group_id"), value_set=pa.array(self.severities, pa.string()))
        severities = pa.array([*self.severities.values(), CLOSED], pa.int8())
        return pc.take(severities, pc.fill_null(numbers, len(self.severities)))


def group_ranking(findings: Iterable[Finding], lags: pa.Table) -> GroupRanking:
    """The groups by their findings, which come in their own order, and by their LAG rows."""
    severities: dict[str, int] = {}
    for finding in sorted(findings, key=_severity):
        if finding.group_id is not None:
            severities.setdefault(finding.group_id, _severity(finding))
    for row in sums_of_groups(lags, "lag"):
        severities.setdefault(row["group_id"], BEHIND)
    return GroupRanking(places={group: place for place, group in enumerate(severities)}, severities=severities)


def share_partition_ranking(
    groups: GroupRanking, findings: Iterable[Finding], lags: pa.Table, stalls: pa.Table, past: Sequence[pa.Table]
) -> Sequence[Key]:
    """All share partitions of the tables, the worst first.

    Args:
        groups: the order of their groups.
        findings: those that the groups are ranked by, in their own order.
        lags: LAG rows.
        stalls: sums of stalls by share partition and is_over, with `score`.
        past: sums of `records` of what else is over by share partition, the most important table first.
    """
    stalled, behind = _scores(stalls.filter(pc.field("is_over") == 0), "score"), _scores(lags, "lag")
    named: dict[Key, int] = {}
    for finding in findings:
        if finding.group_id is not None and finding.topic_id is not None and finding.partition is not None:
            key = finding.group_id, finding.topic_id, finding.partition
            named[key] = min(_severity(finding), named.get(key, CLOSED))
    stalls_over = _scores(stalls.filter(pc.field("is_over") == 1), "score")
    scores = [stalls_over, *(_scores(table, "records") for table in past)]

    def severity(key: Key) -> int:
        is_open = stalled.get(key, 0) > 0 or behind.get(key, 0) > 0
        return min(groups.severity(key[0]) if is_open else CLOSED, named.get(key, CLOSED))

    def size(key: Key) -> tuple[object, ...]:
        has_no_name = key not in named
        return -stalled.get(key, 0), has_no_name, -behind.get(key, 0), *(-score.get(key, 0) for score in scores), key

    keys = sorted({key for table in (stalled, behind, *scores) for key in table}, key=size)
    counts: dict[tuple[str, int], int] = {}
    order = []
    for key in keys:
        number = severity(key)
        turn = counts[key[0], number] = counts.get((key[0], number), 0) + 1
        order.append((number, turn, groups.place(key[0])) if number < CLOSED else (number, 0, 0))
    return tuple(key for _, key in sorted(zip(order, keys, strict=True), key=lambda pair: pair[0]))


def _severity(finding: Finding) -> int:
    return SEVERITIES.index(finding.severity)


def _scores(table: pa.Table, column: str) -> dict[Key, int]:
    """Sums of a column by share partition; unknown values count as 0."""
    sums = table.group_by(SHARE_PARTITION_KEY).aggregate([(column, "sum")])
    return {key_of(row): row[f"{column}_sum"] or 0 for row in sums.to_pylist()}
