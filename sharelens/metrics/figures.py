"""The figures of one cluster: per share partition, per group, and of the evidence itself. None: unknown."""

import math
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.as_of import LogPrefix
from sharelens.metrics import catalog
from sharelens.metrics.catalog import Metric
from sharelens.metrics.measured import Measured
from sharelens.metrics.rule_counts import rule_counts
from sharelens.questions.answers.completeness import COMPLETE, times
from sharelens.questions.answers.missing import unknown_ends, unnamed_topics
from sharelens.questions.answers.now import now_of
from sharelens.source.request import CutChoice
from sharelens.tables.port import Tables
from state_model.columnar.keys import SHARE_PARTITION_KEY
from state_model.topics import UNKNOWN_CLUSTER

Key = tuple[str, str, int]
"""Group, topic id, partition."""
LIVE = (catalog.LAG, catalog.START_OFFSET, catalog.END_OFFSET)
SUMS = {
    catalog.ARCHIVED: catalog.GROUP_ARCHIVED,
    catalog.REDELIVERED: catalog.GROUP_REDELIVERED,
    catalog.DEAD_LETTERS_MISSING: catalog.GROUP_DEAD_LETTERS_MISSING,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Values by metric; `topics`: the label of each topic id; times are epoch milliseconds.

    `data_ms`: log time of the newest record; `read_ms`: until when the evidence was read. `of_rules`: findings of the
    audit by severity and rule. `of_kinds`: findings of the overview by severity, kind and result.
    """

    cluster: str
    first_ms: int | None
    data_ms: int | None
    read_ms: int
    of_cluster: Mapping[Metric, float]
    of_groups: Mapping[str, Mapping[Metric, float]]
    of_share_partitions: Mapping[Key, Mapping[Metric, float]]
    topics: Mapping[str, str]
    of_rules: Mapping[tuple[str, str], int] = field(default_factory=dict)
    of_kinds: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    """What is missing in the evidence, and how to supply it."""


@dataclass(slots=True)
class _Group:
    """Sums of a group over its share partitions."""

    values: dict[Metric, float] = field(default_factory=dict)

    def add(self, metric: Metric, value: float) -> None:
        self.values[metric] = self.values.get(metric, 0) + value


def figures(evidence: Tables) -> Figures:
    """The figures of the evidence's cluster, all at its end; durations last until it was read."""
    measured = Measured(evidence)
    cover = evidence.cover()
    first_ms, data_ms = times(cover)
    read_ms = now_of(evidence, CutChoice())
    audited = rule_counts(evidence)
    verdict = measured.verdict()
    partitions = _live(measured.lag)
    _add_stalls(partitions, measured.stalls, _record_times(evidence, measured.stalls), read_ms)
    _add_counts(partitions, catalog.ARCHIVED, measured.archived())
    _add_counts(partitions, catalog.REDELIVERED, measured.redelivered())
    groups, missing = measured.dead_letters_missing()
    _add_counts(partitions, catalog.DEAD_LETTERS_MISSING, missing, groups)
    of_cluster: dict[Metric, float] = {
        catalog.READ_TIMESTAMP: read_ms / 1000,
        catalog.STATE_PARTITIONS: len(cover),
        catalog.GAPS: sum(len(part.gaps) for part in cover),
        catalog.GAP_OFFSETS: sum(part.gap_offsets for part in cover),
        catalog.QUARANTINED: sum(part.quarantined for part in cover),
        catalog.HELD_BACK: sum(part.held_back for part in cover),
    }
    if data_ms is not None:
        of_cluster[catalog.DATA_TIMESTAMP] = data_ms / 1000
    return Figures(
        cluster=evidence.cluster_id or UNKNOWN_CLUSTER,
        first_ms=first_ms,
        data_ms=data_ms,
        read_ms=read_ms,
        of_cluster=of_cluster,
        of_groups=_groups(partitions, measured.lag),
        of_share_partitions=partitions,
        topics=_topic_labels(evidence, partitions, measured.lag),
        of_rules=audited.findings,
        of_kinds=verdict.counts(),
        warnings=(
            *unknown_ends(measured.lag),
            *unnamed_topics(measured.lag),
            *dict.fromkeys((*audited.warnings, *verdict.warnings)),
        ),
    )


def _keys(rows: pa.Table) -> Iterator[Key]:
    return zip(*(rows.column(name).to_pylist() for name in SHARE_PARTITION_KEY), strict=True)


def _live(lag: pa.Table) -> dict[Key, dict[Metric, float]]:
    """Figures of `lag`; where nothing is left to do, nothing stands still."""
    values_of_key: dict[Key, dict[Metric, float]] = {}
    columns = (lag.column(name).to_pylist() for name in ("lag", "start_offset", "end_offset"))
    for key, *numbers in zip(_keys(lag), *columns, strict=True):
        values: dict[Metric, float] = {
            metric: value for metric, value in zip(LIVE, numbers, strict=True) if value is not None and value >= 0
        }
        if values.get(catalog.LAG) == 0:
            values |= {catalog.STALLED: 0, catalog.WINDOW_USED: 0}
        values_of_key[key] = values
    return values_of_key


def _record_times(evidence: Tables, stalls: pa.Table) -> dict[tuple[str, int, int], int]:
    """Largest timestamp of the batch of each first unfinished record, by topic id, partition and offset."""
    from sharelens.measures.inputs import offset_times
    from sharelens.tables.measure_inputs import EvidenceInputs

    offsets_of: dict[tuple[str, int], set[int]] = {}
    offsets = stalls.column("first_incomplete_offset").to_pylist()
    for (_, topic_id, partition), offset in zip(_keys(stalls), offsets, strict=True):
        offsets_of.setdefault((topic_id, partition), set()).add(offset)
    lasting = {place: np.array(sorted(numbers), np.int64) for place, numbers in offsets_of.items()}
    table = offset_times(EvidenceInputs(evidence, LogPrefix()), lasting, lasting)
    rows = table.select(["topic_id", "partition", "offset", "max_timestamp_ms"]).to_pylist()
    return {(row["topic_id"], row["partition"], row["offset"]): row["max_timestamp_ms"] for row in rows}


def _add_stalls(
    partitions: dict[Key, dict[Metric, float]],
    stalls: pa.Table,
    record_times: Mapping[tuple[str, int, int], int],
    read_ms: int,
) -> None:
    """Adds what still stands; times after `read_ms` make an age of 0."""
    columns = (stalls.column(name).to_pylist() for name in ("since_ms", "first_incomplete_offset", "window_used"))
    for key, since_ms, offset, window in zip(_keys(stalls), *columns, strict=True):
        values = partitions.get(key)
        if values is None or since_ms is None:
            continue
        values[catalog.STALLED] = max(0, read_ms - since_ms) / 1000
        values[catalog.STALLED_SINCE] = since_ms / 1000
        if window is not None:
            values[catalog.WINDOW_USED] = window
        record_ms = record_times.get((key[1], key[2], offset))
        if record_ms is not None and record_ms >= 0:
            values[catalog.OLDEST_INCOMPLETE_AGE] = max(0, read_ms - record_ms) / 1000


def _add_counts(
    partitions: dict[Key, dict[Metric, float]], metric: Metric, counted: pa.Table, groups: Collection[str] | None = None
) -> None:
    """Adds counts; what was not counted has 0 (of `groups` alone, if given). What is gone keeps its count."""
    for key, values in partitions.items():
        if groups is None or key[0] in groups:
            values.setdefault(metric, 0)
    for key, records in zip(_keys(counted), counted.column("records").to_pylist(), strict=True):
        partitions.setdefault(key, {})[metric] = records


def _groups(partitions: Mapping[Key, Mapping[Metric, float]], lag: pa.Table) -> dict[str, dict[Metric, float]]:
    """The sums of each group, and the worst of its stalls."""
    groups: dict[str, _Group] = {}
    complete = pc.equal(lag.column("completeness"), COMPLETE).to_pylist()
    for key, is_complete in zip(_keys(lag), complete, strict=True):
        group = groups.setdefault(key[0], _Group())
        lags = partitions[key].get(catalog.LAG)
        group.add(catalog.GROUP_SHARE_PARTITIONS, 1)
        group.add(catalog.GROUP_INCOMPLETE, 0 if is_complete else 1)
        group.add(catalog.GROUP_LAG_UNKNOWN, 1 if lags is None else 0)
        if lags is not None:
            group.add(catalog.GROUP_LAG, lags)
    for (group_id, _, _), values in partitions.items():
        group = groups.setdefault(group_id, _Group())
        group.values.setdefault(catalog.GROUP_SHARE_PARTITIONS, 0)
        for metric, total in SUMS.items():
            if metric in values:
                group.add(total, values[metric])
        if catalog.STALLED in values:
            longest_stall = max(values[catalog.STALLED], group.values.get(catalog.GROUP_STALLED, 0))
            group.values[catalog.GROUP_STALLED] = longest_stall
        if catalog.STALLED_SINCE in values:
            least = min(values[catalog.STALLED_SINCE], group.values.get(catalog.GROUP_STALLED_SINCE, math.inf))
            group.values[catalog.GROUP_STALLED_SINCE] = least
    return {group_id: group.values for group_id, group in groups.items()}


def _topic_labels(evidence: Tables, partitions: Mapping[Key, object], lag: pa.Table) -> dict[str, str]:
    """A topic's name; of several ids that bear one name the newest has it, the others are shown by id.

    A name that is another topic's id is not used: no two series may have the same labels.
    """
    ids = {topic_id for _, topic_id, _ in partitions}
    names = evidence.names(ids)
    newest = lag.select(["topic_id", "log_time_ms"]).group_by("topic_id").aggregate([("log_time_ms", "max")])
    moments = dict(
        zip(newest.column("topic_id").to_pylist(), newest.column("log_time_ms_max").to_pylist(), strict=True)
    )
    bearer: dict[str, str] = {}
    for topic_id in sorted(ids, key=lambda topic_id: (moments.get(topic_id, -1), topic_id)):
        if topic_id in names and names[topic_id] not in ids:
            bearer[names[topic_id]] = topic_id
    labels = {topic_id: name for name, topic_id in bearer.items()}
    return {topic_id: labels.get(topic_id, topic_id) for topic_id in ids}
