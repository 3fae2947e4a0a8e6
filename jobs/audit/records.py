"""The records that the audit keeps (gold.audit_record): each run adds new ones, and drops those that are refuted.

A state partition is audited from its beginning again where its kept records don't suffice: where the end or the leader
epochs of a topic became known after its records, or were replaced by earlier ones.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from jobs import books
from jobs.audit.topics import LakeTopics
from sharelens.lake.lake import Lake
from sharelens.lake.parquet import ParquetSink
from sharelens.lake.slices import PartitionKey
from sharelens.lake.tables import GOLD_AUDIT_STATE, TABLES
from state_model.audit.columnar.across import LOG, PLACE
from state_model.audit.columnar.continuation import AUDITED, rows_of
from state_model.audit.columnar.kept_records import (
    as_kept_records,
    distinct,
    is_outdated,
    places_of,
    topic_records_of,
    turns_of,
    with_epochs,
)
from state_model.audit.columnar.kept_schema import AHEAD, KEPT_RECORD, LIFE, NEWEST, TOPIC, WINDOW
from state_model.audit.columnar.lives import without_repetition
from state_model.audit.columnar.user_topics import ahead, lagging, widest

RECORDS: Final = "gold.audit_record"
STORED: Final = pa.schema([*(pa.field(name, pa.string()) for name in LOG), *KEPT_RECORD])
"""A kept record with its cluster and the id of its log's topic."""
IN_ORDER: Final = [(name, "ascending") for name in (*PLACE, "kind", "log_offset", "topic_id", "partition")]
IS_LIFE: Final = pc.field("kind") == LIFE
Topics = Mapping[str, LakeTopics]
"""What the lake knows of user topics, by cluster."""


def stored_lives(lake: Lake) -> pa.Table:
    """The kept records of the kind LIFE (STORED), which grow with share partitions: in row groups of their own."""
    return lake.snapshot(RECORDS).rows(STORED.names, IS_LIFE).cast(STORED)


def stored_others(lake: Lake) -> pa.Table:
    """The kept records of the other kinds (STORED)."""
    return lake.snapshot(RECORDS).rows(STORED.names, ~IS_LIFE).cast(STORED)


def to_start_over(
    lake: Lake, topics: Topics, kept_records: pa.Table, audited: pa.Table, before: int
) -> set[PartitionKey]:
    """Audited state partitions whose kept records don't suffice; `audited`: their rows of gold.audit_state.

    `kept_records`: `stored_others`. `before`: the last run whose audit is complete.
    """
    result: set[PartitionKey] = set()
    for cluster_id, of_cluster in topics.items():
        cluster_places = audited.filter(pc.field("cluster_id") == cluster_id).select(PLACE)
        keys = {
            (cluster_id, *place)
            for place in zip(*(cluster_places.column(name).to_pylist() for name in PLACE), strict=True)
        }
        topic_records = kept_records.filter((pc.field("cluster_id") == cluster_id) & (pc.field("kind") == TOPIC))
        epochs = of_cluster.known_topics.epochs
        if epochs is not None:
            result |= keys - _keys(topic_records)
            result |= _keys(topic_records.filter(pa.array(is_outdated(topic_records, epochs), pa.bool_()))) & keys
        elif topic_records.num_rows:
            result |= _keys(topic_records) & keys
        changed = of_cluster.changed_ends(before)
        if changed and keys - result:
            result |= _with_topics(lake, cluster_id, changed) & keys
    return result


def _keys(rows: pa.Table) -> set[PartitionKey]:
    grouped = rows.select(["cluster_id", *PLACE]).group_by(["cluster_id", *PLACE]).aggregate([])
    return set(zip(*(grouped.column(name).to_pylist() for name in ("cluster_id", *PLACE)), strict=True))


def _with_topics(lake: Lake, cluster_id: str, places: set[tuple[str, int]]) -> set[PartitionKey]:
    """The audited state partitions with a share partition of some user partitions."""
    rows = lake.snapshot(GOLD_AUDIT_STATE).rows([*PLACE, "share_partitions"], pc.field("cluster_id") == cluster_id)
    result = set()
    for number in range(rows.num_rows):
        row = rows.slice(number, 1)
        if not places.isdisjoint(places_of(rows_of(row, "share_partitions", AUDITED))):
            result.add((cluster_id, *(row.column(name)[0].as_py() for name in PLACE)))
    return result


def commit_records(
    lake: Lake,
    run: int,
    topics: Topics,
    kept_records: pa.Table,
    fresh: pa.Table,
    audited: set[PartitionKey],
    begins: Mapping[PartitionKey, int],
) -> pa.Table:
    """Commits what is kept after a run; returns its rows of other kinds than LIFE.

    Args:
        kept_records: `stored_others`.
        fresh: STORED rows of the run's tasks.
        audited: the state partitions that the run audited.
        begins: of those that started over the log offset below which their earlier rows stay.
    """
    if books.is_committed(lake, RECORDS, "audit", run):
        return kept_records
    lives = fresh.filter(IS_LIFE)
    after = _without_refuted(
        pa.concat_tables([_staying(kept_records, audited, begins), fresh.filter(~IS_LIFE)]), topics
    )
    if lives.num_rows or begins or not after.equals(kept_records):
        lives = _lives(pa.concat_tables([_staying(stored_lives(lake), audited, begins), lives]))
        with ParquetSink(lake, TABLES[RECORDS], constants={"run_id": run}) as sink:
            sink.write_all([lives, after])
        books.commit(lake, RECORDS, "audit", run, sink.files, lake.snapshot(RECORDS).paths)
    return after


def _staying(stored: pa.Table, audited: set[PartitionKey], begins: Mapping[PartitionKey, int]) -> pa.Table:
    """The rows that count beside those of the run."""
    of_states = pc.is_in(stored.column("kind"), value_set=pa.array([NEWEST, TOPIC])).to_numpy().astype(np.bool_)
    rows = np.arange(stored.num_rows) if begins else np.flatnonzero(of_states)  # the others are not looked at
    if not len(rows):
        return stored
    stays = np.ones(stored.num_rows, np.bool_)
    candidate_rows = stored.take(pa.array(rows))
    columns = (candidate_rows.column(name).to_pylist() for name in ("cluster_id", *PLACE, "log_offset"))
    for row, *key, log_offset in zip(rows.tolist(), *columns, strict=True):
        place = tuple(key)
        if of_states[row]:
            stays[row] = place not in audited
        else:
            stays[row] = place not in begins or log_offset < begins[place]
    return stored.filter(pa.array(stays))


def _lives(rows: pa.Table) -> pa.Table:
    """The rows of the kind LIFE of all logs, without those that begin nothing new."""
    parts = [
        of_log(as_kept_records(without_repetition(turns_of(log_rows)), LIFE), **log) for log, log_rows in _by_log(rows)
    ]
    return pa.concat_tables([STORED.empty_table(), *parts]).sort_by(IN_ORDER)


def _without_refuted(rows: pa.Table, topics: Topics) -> pa.Table:
    """The rows of the other kinds of all logs, without those that are refuted."""
    tables = [STORED.empty_table()]
    for log, log_rows in _by_log(rows):
        topics_of_cluster = topics[log["cluster_id"]].known_topics
        kinds = log_rows.column("kind")
        rows_by_kind = {kind: log_rows.filter(pc.equal(kinds, kind)) for kind in (AHEAD, WINDOW, NEWEST, TOPIC)}
        in_front = distinct(topic_records_of(rows_by_kind[AHEAD]))
        newest = topic_records_of(rows_by_kind[NEWEST])
        parts = [
            as_kept_records(
                in_front.filter(pa.array(ahead(in_front, topics_of_cluster.ends, topics_of_cluster.epochs or {}))),
                AHEAD,
            ),
            as_kept_records(widest(topic_records_of(rows_by_kind[WINDOW])), WINDOW),
            as_kept_records(newest.filter(pa.array(lagging(newest, topics_of_cluster.ends))), NEWEST),
            with_epochs(rows_by_kind[TOPIC].select(KEPT_RECORD.names), topics_of_cluster.epochs or {}),
        ]
        tables.append(of_log(pa.concat_tables(parts), **log))
    return pa.concat_tables(tables).sort_by(IN_ORDER)


def _by_log(rows: pa.Table) -> Iterator[tuple[dict[str, str], pa.Table]]:
    """The rows of each log, by cluster and topic id."""
    for log in sorted(rows.select(LOG).group_by(LOG).aggregate([]).to_pylist(), key=lambda row: tuple(row.values())):
        is_own = [pc.equal(rows.column(name), value) for name, value in log.items()]
        yield log, rows.filter(pc.and_(*is_own))


def of_log(rows: pa.Table, cluster_id: str, log_topic_id: str) -> pa.Table:
    """KEPT_RECORD rows as STORED."""
    constants = [pa.repeat(value, rows.num_rows) for value in (cluster_id, log_topic_id)]
    return pa.Table.from_arrays([*constants, *rows.columns], schema=STORED)
