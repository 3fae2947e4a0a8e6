"""Retention: the rows that are older than the age of their tables, less rows that still count.

Age is log time, against the newest one of the cluster (never past the wall clock): a log that stands still loses
no rows. In a log partition, the cut is the first offset that is young enough, and the rows below it are dropped. Rows
that are still valid at the cut stay: the last snapshot or tombstone of a share partition and the records behind it, the
last record of any other key of __consumer_offsets, the last history row of each share partition, and every deletion
(without it a new creation looks like a reset). Other tables have their own times: the end of a range of the delivery
history, the end of a measure's interval, the time of a check. Dead letters stay, with the rows about their records.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jobs import books
from jobs.measure import bases as measure_base
from jobs.measure import reconcile
from jobs.measure.bases import Passed
from jobs.quality import results
from jobs.retained import BRONZE, CHECKS, HISTORY, MEASURES, SILVER, Cut, joined
from jobs.upkeep.compaction import row_groups
from sharelens.lake import gates
from sharelens.lake.lake import Lake
from sharelens.lake.slices import PartitionKey
from sharelens.lake.tables import TABLES
from sharelens.measures.histories.settled import HOUR_MS
from state_model.topics import OFFSETS_TOPIC, STATE_TOPIC, UNKNOWN_CLUSTER

SCALARS, RANGES = "gold.share_partition_history", "gold.delivery_history"
SNAPSHOT_KEY = b"\0\0"
KNOWN_KEYS = pa.array([b"\0\0", b"\0\1"])
LONGEST_KEY = 1 << 16
LOG_KEY = ["cluster_id", "place_id", "place"]
TIMES = ("log_time_ms", "timestamp_ms")
NAMED = {"cluster_id": pa.string(), "place_id": pa.string(), "place": pa.int32(), "offset": pa.int64()}
NAMING = ("valid_from_log_offset", "valid_to_log_offset", "life_log_offset")
"""Columns of a range of the delivery history that name records of the history."""
VIEW = [*LOG_KEY, "offset", "time_ms", "key", "anchor"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ByLog:
    """A table cut at an offset of each log partition.

    `view`: its rows as VIEW: place in the log, time, key, and whether a row replaces all earlier rows of its key
    (`anchor`; null: an old row never counts). `lasting`: a value of `record_type` whose rows stay whatever their age;
    null: none.
    """

    group: str
    columns: tuple[str, ...]
    view: Callable[[pa.Table], pa.Table]
    lasting: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ByTime:
    """A table whose rows are dropped when their `column` plus `lasting_ms` lies before the moment; null stays."""

    group: str
    column: str
    lasting_ms: int = 0
    partition_values: Mapping[str, str] = field(default_factory=dict)


def _view(rows: pa.Table, place: tuple[str, str, str], time: str, key: pa.Array, anchor: pa.Array) -> pa.Table:
    columns = [rows.column("cluster_id"), *(rows.column(name) for name in (*place, time)), key, anchor]
    kinds = [pa.string(), pa.string(), pa.int32(), pa.int64(), pa.int64(), pa.binary(), pa.bool_()]
    return pa.table([column.cast(kind) for column, kind in zip(columns, kinds, strict=True)], names=VIEW)


def _every(rows: pa.Table) -> pa.Array:
    return pa.repeat(True, rows.num_rows)


def _raw(rows: pa.Table) -> pa.Table:
    """Keys of the state topic begin with their type: 0 a snapshot, 1 an update of the same share partition."""
    topic = rows.column("topic").cast(pa.string())
    key = pc.fill_null(rows.column("key"), b"")
    in_state, in_offsets = pc.equal(topic, STATE_TOPIC), pc.equal(topic, OFFSETS_TOPIC)
    kind = pc.binary_slice(key, 0, 2)
    is_tombstone = pc.and_(pc.is_in(kind, value_set=KNOWN_KEYS), pc.is_null(rows.column("value")))
    is_state_anchor = pc.or_(pc.equal(kind, SNAPSHOT_KEY), is_tombstone)
    anchor = pc.if_else(in_state, is_state_anchor, pc.if_else(in_offsets, True, pa.scalar(None, pa.bool_())))
    key = pc.if_else(in_state, pc.binary_slice(key, 2, LONGEST_KEY), key)
    return _view(rows, ("topic_id", "partition", "offset"), "timestamp_ms", key, anchor)


def _share(rows: pa.Table) -> pa.Table:
    anchor = pc.is_in(rows.column("record_type").cast(pa.string()), value_set=pa.array(["snapshot", "tombstone"]))
    key = joined(rows, ("group_id", "topic_id", "partition"))
    return _view(rows, ("log_topic_id", "state_partition", "log_offset"), "log_time_ms", key, anchor)


def _group(rows: pa.Table) -> pa.Table:
    key = joined(rows, ("record_type", "group_id", "member_id"))
    return _view(rows, ("log_topic_id", "partition", "log_offset"), "timestamp_ms", key, _every(rows))


def _scalars(rows: pa.Table) -> pa.Table:
    key = joined(rows, ("group_id", "topic_id", "partition"))
    return _view(rows, ("log_topic_id", "state_partition", "log_offset"), "log_time_ms", key, _every(rows))


_SHARE_COLUMNS = ("cluster_id", "log_topic_id", "state_partition", "log_offset", "log_time_ms", "group_id", "topic_id")
RULES: dict[str, ByLog | ByTime] = {
    "bronze.log_record": ByLog(
        group=BRONZE,
        columns=("cluster_id", "topic_id", "partition", "offset", "timestamp_ms", "topic", "key", "value"),
        view=_raw,
    ),
    "silver.share_record": ByLog(group=SILVER, columns=(*_SHARE_COLUMNS, "partition", "record_type"), view=_share),
    "silver.group_record": ByLog(
        group=SILVER,
        columns=(
            "cluster_id", "log_topic_id", "partition", "log_offset", "timestamp_ms", "record_type", "group_id",
            "member_id",
        ),
        view=_group,
    ),
    "silver.clock_step": ByTime(group=SILVER, column="log_time_ms"),
    "gold.share_partition_history": ByLog(
        group=HISTORY, columns=(*_SHARE_COLUMNS, "partition", "record_type"), view=_scalars, lasting="tombstone"
    ),
    "gold.delivery_history": ByTime(group=HISTORY, column="valid_to_ms", partition_values={"is_open": "false"}),
    "gold.stall": ByTime(group=MEASURES, column="until_ms", partition_values={"is_final": "true"}),
    "gold.poison_record": ByTime(group=MEASURES, column="last_outcome_ms", partition_values={"is_final": "true"}),
    "gold.redelivered_record": ByTime(group=MEASURES, column="last_ms", partition_values={"is_final": "true"}),
    "gold.latency": ByTime(
        group=MEASURES, column="hour_ms", lasting_ms=HOUR_MS, partition_values={"is_final": "true"}
    ),
    "gold.attempts": ByTime(
        group=MEASURES, column="hour_ms", lasting_ms=HOUR_MS, partition_values={"is_final": "true"}
    ),
    "gold.lag_over_time": ByTime(group=MEASURES, column="at_ms", partition_values={"is_final": "true"}),
    gates.RESULTS: ByTime(group=CHECKS, column="checked_ms"),
}  # fmt: skip
"""Tables that retention applies to; why the others keep their rows: `jobs.retained.STAYS`."""
IN_USE: dict[str, Callable[[Lake], pa.Table]] = {
    gates.RESULTS: results.in_use,
    reconcile.GIVEN_UP: reconcile.rests_on,
}
"""Rows of ByTime tables that stay whatever their age: those that gates and verdicts on dead letters depend on."""
CUT_BY = {
    BRONZE: ("bronze.log_record",), SILVER: ("silver.share_record", "silver.group_record"),
    HISTORY: ("gold.share_partition_history",),
}  # fmt: skip
"""Tables whose log partitions are cut for a group, as the books record it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropping:
    """The rows to drop from one table: `moments` by cluster; of a ByLog table the cuts and the first kept offset.

    `kept_from`: LOG_KEY, key and `from`, for keys with an anchor below the cut. `named`: LOG_KEY and offset of rows
    that a remaining row of another table points to. `passed`: rows of a ByTime table that no later record changes.
    `in_use`: values of columns whose rows of a ByTime table stay.
    """

    rule: ByLog | ByTime
    moments: dict[str, int]
    cuts: dict[PartitionKey, int]
    kept_from: pa.Table | None = None
    named: pa.Table | None = None
    passed: Passed | None = None
    in_use: pa.Table | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that decide which rows are dropped."""
        if isinstance(self.rule, ByLog):
            return self.rule.columns
        range_columns = () if self.passed is None else measure_base.RANGE_COLUMNS
        names = () if self.in_use is None else self.in_use.column_names
        return tuple(dict.fromkeys(["cluster_id", self.rule.column, *range_columns, *names]))

    def may_hold(self, file: Mapping[str, Any]) -> bool:
        """Whether a file may have a row to drop, by its statistics."""
        return _is_old(file, self.rule, self.moments)

    def keep(self, rows: pa.Table) -> pa.Table:
        """The rows that stay."""
        return rows.filter(pc.invert(self.gone(rows)))

    def gone(self, rows: pa.Table) -> pa.Array:
        """Whether each row is dropped."""
        if isinstance(self.rule, ByTime):
            moment = _moment_of(rows.column("cluster_id"), self.moments)
            old = pc.fill_null(pc.less(pc.add(rows.column(self.rule.column), self.rule.lasting_ms), moment), False)
            if self.in_use is not None:
                old = pc.and_(old, pc.invert(_is_one_of(rows, self.in_use)))
            return old if self.passed is None else pc.and_(old, pa.array(self.passed.holds(rows)))
        view = self.rule.view(rows.select(self.rule.columns))
        old = below(view, self.cuts)
        if self.rule.lasting is not None:
            old = pc.and_(old, pc.not_equal(rows.column("record_type").cast(pa.string()), self.rule.lasting))
        if self.kept_from is None or not pc.any(old).as_py():
            return old
        return pc.and_(old, pc.invert(self._counts(view, old)))

    def _counts(self, view: pa.Table, old: pa.Array) -> pa.Array:
        """Which of the old rows still count: at or behind the last anchor of their key, or of a key without one."""
        assert self.kept_from is not None
        numbered = view.append_column("row", pa.array(np.arange(view.num_rows))).filter(old)
        numbered = numbered.filter(pc.is_valid(numbered.column("anchor")))
        matched = numbered.join(self.kept_from, keys=[*LOG_KEY, "key"], join_type="left outer")
        stays = pc.fill_null(pc.greater_equal(matched.column("offset"), matched.column("from")), True)
        result = np.zeros(view.num_rows, np.bool_)
        result[matched.column("row").to_numpy()[stays.to_numpy()]] = True
        if self.named is not None:
            pointed_to = numbered.join(self.named, keys=[*LOG_KEY, "offset"], join_type="left semi")
            result[pointed_to.column("row").to_numpy()] = True
        return pa.array(result)


def _is_old(file: Mapping[str, Any], rule: ByLog | ByTime, moments_ms: dict[str, int]) -> bool:
    """Whether a file holds rows older than the moment of some cluster; True without statistics."""
    name = rule.column if isinstance(rule, ByTime) else next(name for name in TIMES if name in rule.columns)
    least = file.get(f"min.{name}")
    lasting = rule.lasting_ms if isinstance(rule, ByTime) else 0
    return least is None or bool(least + lasting < max(moments_ms.values(), default=least))


def _is_one_of(rows: pa.Table, listed_rows: pa.Table) -> pa.Array:
    """Which rows have the values of one of some rows in the columns of these."""
    numbered_rows = (
        rows.select(listed_rows.column_names)
        .cast(listed_rows.schema)
        .append_column("row", pa.array(np.arange(rows.num_rows)))
    )
    result = np.zeros(rows.num_rows, np.bool_)
    result[
        numbered_rows.join(listed_rows, keys=listed_rows.column_names, join_type="left semi").column("row").to_numpy()
    ] = True
    return pa.array(result)


def _moment_of(clusters: pa.ChunkedArray, moments: dict[str, int]) -> pa.Array:
    """The moment of each row's cluster; null where none is known."""
    cluster_ids = clusters.cast(pa.string()).combine_chunks()
    index = pc.index_in(cluster_ids, pa.array(list(moments), pa.string()))
    return pa.array(list(moments.values()), pa.int64()).take(index)


def below(view: pa.Table, cuts: dict[PartitionKey, int]) -> pa.Array:
    """Whether each row lies below the cut of its log partition."""
    places = view.select(LOG_KEY).group_by(LOG_KEY).aggregate([]).to_pylist()
    result: pa.Array = pa.repeat(False, view.num_rows)
    for place in places:
        key = (place["cluster_id"], place["place_id"], place["place"])
        if key in cuts:
            in_partition = pc.and_(pc.equal(view.column("place_id"), key[1]), pc.equal(view.column("place"), key[2]))
            in_partition = pc.and_(in_partition, pc.equal(view.column("cluster_id"), key[0]))
            result = pc.or_(result, pc.and_(in_partition, pc.less(view.column("offset"), cuts[key])))
    return result


def moments(lake: Lake, ages: Mapping[str, int], now_ms: int) -> dict[str, dict[str, int]]:
    """By group of tables and cluster the log time (epoch ms) before which rows are older than their age."""
    ingested = books.extents(lake, (pc.field("status") == "taken") & (pc.field("topic") == STATE_TOPIC))
    newest: dict[str, int] = {}
    for row in ingested:
        if row["content"] == "log_record" and row["log_time_ms"] is not None:
            newest[row["cluster_id"]] = max(row["log_time_ms"], newest.get(row["cluster_id"], row["log_time_ms"]))
    moments_by_group = {
        group: {cluster: min(time, now_ms) - age for cluster, time in newest.items()} for group, age in ages.items()
    }
    if moments_by_group.get(CHECKS):  # results of a check over several clusters name no cluster
        moments_by_group[CHECKS].setdefault(UNKNOWN_CLUSTER, min(moments_by_group[CHECKS].values()))
    if HISTORY in moments_by_group:
        moments_by_group[HISTORY] = {
            cluster: moment - moment % HOUR_MS for cluster, moment in moments_by_group[HISTORY].items()
        }
    return moments_by_group


def histories(lake: Lake, moments_ms: dict[str, int], before: Mapping[PartitionKey, Cut]) -> dict[str, Dropping]:
    """The rows to drop from the two histories: see `dropping`. Rows from which the measures resume stay."""
    scalars = dropping(lake, SCALARS, moments_ms, before)
    ranges = dropping(lake, RANGES, moments_ms, before)
    if scalars.kept_from is not None:
        kept_from = measure_base.read_on(lake, scalars.kept_from)
        ranges = replace(ranges, passed=measure_base.passed(lake, kept_from, moments_ms))
        scalars = replace(scalars, kept_from=kept_from, named=_named_by(lake, ranges))
    return {SCALARS: scalars, RANGES: ranges}


def dropping(lake: Lake, name: str, moments_ms: dict[str, int], before: Mapping[PartitionKey, Cut]) -> Dropping:
    """The rows to drop from a table. `before`: earlier cuts; a cut never goes back."""
    rule = RULES[name]
    if isinstance(rule, ByTime):
        in_use = IN_USE[name](lake) if name in IN_USE else None
        return Dropping(rule=rule, moments=moments_ms, cuts={}, in_use=in_use)
    cuts = _cuts(lake, name, rule, moments_ms)
    for key, cut in before.items():
        if key in cuts:
            cuts[key] = max(cuts[key], cut.offset)
    kept_from = _anchors(lake, name, rule, moments_ms, cuts)
    return Dropping(rule=rule, moments=moments_ms, cuts=cuts, kept_from=kept_from)


def _named_by(lake: Lake, ranges: Dropping) -> pa.Table:
    """LOG_KEY and offset of the records with which ranges that stay began and ended, and their lives began."""
    place = ["cluster_id", "log_topic_id", "state_partition"]
    named = pa.table({name: pa.array([], kind) for name, kind in NAMED.items()})
    files = lake.snapshot(RANGES).files
    for file in files:
        paths = [str(file["path"])]
        for rows in row_groups(lake, TABLES[RANGES], paths, {}, tuple({*ranges.columns, *place, *NAMING})):
            stay = ranges.keep(rows)
            parts = [stay.select([*place, name]).rename_columns([*LOG_KEY, "offset"]) for name in NAMING]
            all_named = pa.concat_tables([named, *(part.cast(named.schema) for part in parts)])
            named = (
                all_named.filter(pc.is_valid(all_named.column("offset"))).group_by(all_named.column_names).aggregate([])
            )
    return named


def _views(lake: Lake, name: str, rule: ByLog, moments_ms: dict[str, int]) -> Iterator[pa.Table]:
    """The row groups of the files that hold old rows."""
    snapshot_files = lake.snapshot(name).files
    files = [str(file["path"]) for file in snapshot_files if _is_old(file, rule, moments_ms)]
    for rows in row_groups(lake, TABLES[name], files, {}, rule.columns):
        yield rule.view(rows)


def _cuts(lake: Lake, name: str, rule: ByLog, moments_ms: dict[str, int]) -> dict[PartitionKey, int]:
    """For each log partition with old rows, the first offset inside the age, else the end of its files."""
    young: dict[PartitionKey, int] = {}
    ends: dict[PartitionKey, int] = {}
    for view in _views(lake, name, rule, moments_ms):
        moment = _moment_of(view.column("cluster_id"), moments_ms)
        fresh = pc.fill_null(pc.greater_equal(view.column("time_ms"), moment), True)
        for key, offset in _bounds(view.filter(fresh), "min"):
            young[key] = min(offset, young.get(key, offset))
        for key, offset in _bounds(view.filter(pc.invert(fresh)), "max"):
            ends[key] = max(offset + 1, ends.get(key, 0))
    return {key: young.get(key, end) for key, end in ends.items()}


def _bounds(view: pa.Table, how: str) -> Iterator[tuple[PartitionKey, int]]:
    for row in view.group_by(LOG_KEY).aggregate([("offset", how)]).to_pylist():
        yield (row["cluster_id"], row["place_id"], row["place"]), row[f"offset_{how}"]


def _anchors(
    lake: Lake, name: str, rule: ByLog, moments_ms: dict[str, int], cuts: dict[PartitionKey, int]
) -> pa.Table | None:
    """The last anchor below the cut of each key."""
    anchored: pa.Table | None = None
    for view in _views(lake, name, rule, moments_ms):
        anchors = view.filter(pc.and_(below(view, cuts), pc.fill_null(view.column("anchor"), False)))
        last = (
            anchors.group_by([*LOG_KEY, "key"]).aggregate([("offset", "max")]).rename_columns([*LOG_KEY, "key", "from"])
        )
        all_anchors = last if anchored is None else pa.concat_tables([anchored, last])
        anchored = (
            all_anchors.group_by([*LOG_KEY, "key"])
            .aggregate([("from", "max")])
            .rename_columns([*LOG_KEY, "key", "from"])
        )
    return anchored
