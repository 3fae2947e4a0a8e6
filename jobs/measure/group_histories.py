"""The histories of groups from silver.group_record: of groups with new records, each of them whole.

One commit a table, and none in a run without records of such groups.
"""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from jobs import books
from jobs.decode.stage import GROUP
from jobs.incarnations import incarnations, newest_incarnations
from sharelens.evidence.coverage import whole_logs
from sharelens.evidence.schemas import GROUP_RECORD
from sharelens.evidence.undecoded_groups import (
    DECODED_FROM_RUN,
    undecoded_consumer_records,
    without_consumer_groups,
)
from sharelens.groups.histories import histories
from sharelens.groups.intervals import Histories
from sharelens.groups.replay import in_log_order
from sharelens.groups.whole_logs import marked_each
from sharelens.lake.lake import Lake
from sharelens.lake.parquet import write_rows
from sharelens.lake.tables import TABLES
from state_model.topics import OFFSETS_TOPIC

STAGE = "groups"
TABLE_OF = {
    "members": "gold.member_history",
    "tasks": "gold.task_history",
    "initialization": "gold.share_initialization_history",
    "groups": "gold.group_history",
}
"""The table of each field of Histories; the last one is the mark (`books.MARKER`)."""


def run_group_histories(lake: Lake) -> dict[str, int]:
    """Replaces the histories of the groups with new records; returns the number of rows written by table."""
    before, run = books.done(lake, STAGE), books.done(lake, "decode")
    news = list(_news(lake, before))
    if not news:
        return {}
    rows: dict[str, list[pa.Table]] = {table: [] for table in TABLE_OF.values()}
    drop = pc.scalar(False)
    newest = newest_incarnations(lake, OFFSETS_TOPIC)
    for cluster_id, groups in news:
        is_of_cluster = pc.field("cluster_id") == cluster_id
        drop |= is_of_cluster if groups is None else is_of_cluster & pc.field("group_id").isin(groups)
        cluster_histories = _histories(lake, cluster_id, newest.get(cluster_id, ""), groups)
        for field, table in TABLE_OF.items():
            rows[table].append(books.of_cluster(getattr(cluster_histories, field), cluster_id))
    counts = {}
    for table, parts in rows.items():
        ordered = pa.concat_tables(parts).sort_by([(name, "ascending") for name in TABLES[table].clustering])
        kept_files, removes = books.rewritten_without(lake, table, drop)
        files = write_rows(lake, TABLES[table], ordered, {"run_id": run})
        books.commit(lake, table, STAGE, run, [*files, *kept_files], removes)
        counts[table] = ordered.num_rows
    return counts


def _news(lake: Lake, before: int) -> Iterator[tuple[str, pa.Array | None]]:
    """The clusters with new records of groups, and the groups; None: all.

    All where a log starts over, where the topic was once created again (the other incarnation may have been the newest
    one at the last run), and where a log that was whole lacks records now: rows of all its groups depend on that.
    """
    partitions = books.changed(lake, before, ["log_record", "replay", "measure"])
    of_groups = [(key[0], row["rebuild"]) for key, row in partitions.items() if row["topic"] == OFFSETS_TOPIC]
    topic_ids = incarnations(lake, OFFSETS_TOPIC) if of_groups else {}
    starts_over = {cluster_id for cluster_id, is_rebuilt in of_groups if is_rebuilt}
    for cluster_id in {cluster_id for cluster_id, _ in of_groups}:
        is_recreated = len(topic_ids.get(cluster_id, ())) > 1
        if is_recreated or _whole_logs(lake, cluster_id, before) - _whole_logs(lake, cluster_id):
            starts_over.add(cluster_id)
    yield from ((cluster_id, None) for cluster_id in sorted(starts_over))
    names = ["cluster_id", "group_id"]
    fresh = lake.snapshot(GROUP).rows(names, pc.field("run_id") > before)
    for cluster_id in sorted(set(pc.unique(fresh.column("cluster_id")).to_pylist()) - starts_over):
        cluster_rows = fresh.filter(pc.field("cluster_id") == cluster_id)
        yield cluster_id, pc.unique(cluster_rows.column("group_id")).sort()


def _histories(lake: Lake, cluster_id: str, log_topic_id: str, groups: pa.Array | None) -> Histories:
    """The histories of groups (None: all) by the newest incarnation of __consumer_offsets."""
    is_of_cluster = pc.field("cluster_id") == cluster_id
    where = is_of_cluster & (pc.field("log_topic_id") == log_topic_id)
    if groups is not None:
        where &= pc.field("group_id").isin(groups)
    rows = in_log_order(lake.snapshot(GROUP).rows(GROUP_RECORD.names, where))
    if undecoded_consumer_records(
        lambda table, columns, of_rows: lake.snapshot(table).rows(columns, of_rows & is_of_cluster),
        lake.transaction(GROUP, DECODED_FROM_RUN),
    ):
        rows = without_consumer_groups(rows)
    return histories(marked_each(rows, "log_topic_id", _whole_logs(lake, cluster_id)))


def _whole_logs(lake: Lake, cluster_id: str, up_to: int | None = None) -> set[tuple[str, int]]:
    """The logs of a cluster of which silver.group_record lacks no record; `up_to`: by what runs up to this one took."""
    of_log = (pc.field("cluster_id") == cluster_id) & (pc.field("topic") == OFFSETS_TOPIC)
    if up_to is not None:
        of_log &= (pc.field("run_id") <= up_to) | (pc.field("status") != "taken")
    return whole_logs(books.extents(lake, of_log), GROUP)
