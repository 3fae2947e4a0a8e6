"""The evidence: clusters, sources, time covered per state partition, gaps, quarantine, runs, versions."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.conditions import all_of
from sharelens.evidence.metadata_events import MetadataHistory
from sharelens.lake.gates import gates
from sharelens.lake.scan import Cut, contents_of, open_lake
from sharelens.lake.settings_rows import TABLE as BRONZE_SETTING
from sharelens.measures.settings.observations import METADATA_CONFIGS
from sharelens.output import Answer, Column, Report, json_text, number_text
from sharelens.output.layouts import Layout
from sharelens.output.terminal import visible
from sharelens.questions.answers.completeness import closing_line, evidence_line
from sharelens.questions.answers.missing import damaged_metadata, held_back, lacking, without_contents
from sharelens.questions.answers.shape import CLUSTER_ID
from sharelens.questions.missing_states import missing_states_part
from sharelens.source.request import Source
from sharelens.tables.cover import StatePartitionCover
from sharelens.tables.lakes.clusters import clusters
from sharelens.tables.lakes.published import publications
from sharelens.tables.opening import open_cut, open_logs
from sharelens.tables.port import Tables
from state_model.columnar.schemas import column

RUNS_SHOWN = 10
NUMBER = column("state_partition", pa.int32(), "partition of __share_group_state")
STATE_PARTITION = pa.schema(
    [
        CLUSTER_ID,
        column("log_topic_id", pa.string(), "id of the state topic"),
        NUMBER,
        column("first_log_offset", pa.int64(), "first offset of the evidence"),
        column("end_log_offset_exclusive", pa.int64(), "end of the evidence"),
        column("log_start_offset", pa.int64(), "log start offset"),
        column("first_log_time_ms", pa.int64(), "log time of the first record"),
        column("last_log_time_ms", pa.int64(), "log time of the last record"),
        column("held_back", pa.int64(), "offsets at or above the high watermark"),
        column("uncommitted", pa.int64(), "offsets at or above the high watermark that were taken all the same"),
        column("quarantined", pa.int64(), "records and batches in quarantine"),
        column("gap_offsets", pa.int64(), "offsets that the evidence lacks"),
    ]
)
GAP = pa.schema(
    [
        CLUSTER_ID,
        NUMBER,
        column("first_log_offset", pa.int64(), "first offset of the lost range"),
        column("last_log_offset", pa.int64(), "last offset of the lost range"),
        column("reason", pa.string(), "why the range is missing"),
    ]
)
SOURCE = pa.schema(
    [
        column("source_id", pa.string(), "log directory, with the id of its node"),
        column("node_id", pa.string(), "id of the node; null = unknown"),
        CLUSTER_ID,
        column("partitions", pa.int64(), "partitions of it that were read"),
        column("skipped", pa.list_(pa.string()), "folders and files that were left out, each with the reason"),
    ]
)
QUARANTINE = pa.schema(
    [
        CLUSTER_ID,
        column("topic", pa.string(), "topic of the records"),
        column("reason", pa.string(), "why they can't be read"),
        column("rows", pa.int64(), "records and batches"),
    ]
)
RUN = pa.schema(
    [
        column("run_id", pa.int64(), "number of the run"),
        column("published_at_ms", pa.int64(), "when its cut was published"),
        column("sharelens_version", pa.string(), "version of sharelens"),
        column("state_log_offsets", pa.int64(), "offsets of the state log in the cut"),
    ]
)
CLOSED_GATE = pa.schema(
    [
        column("table", pa.string(), "table whose gate is closed"),
        column("not_met", pa.list_(pa.string()), "expectations that are not met"),
        column("check_id", pa.int64(), "the check that found it"),
        column("run_id", pa.int64(), "the checked run"),
        column("version", pa.int64(), "the checked version of the table"),
    ]
)
SETTINGS = pa.schema(
    [
        CLUSTER_ID,
        column("kind", pa.string(), "file of settings"),
        column("valid_from_ms", pa.int64(), "from when on the file counts; null = always"),
        column("settings", pa.int64(), "number of its settings"),
        column("run_id", pa.int64(), "run that stored it"),
    ]
)
METADATA_LOG = pa.schema(
    [
        CLUSTER_ID,
        column("known_from_ms", pa.int64(), "from when on the log is known; null = from its first record on"),
        column("end_offset", pa.int64(), "end of the log"),
        column("committed_end", pa.int64(), "surely committed below this offset"),
    ]
)
TABLE = pa.schema(
    [
        column("table", pa.string(), "table of the lake"),
        column("version", pa.int64(), "its published version"),
    ]
)
LAYOUT = Layout(
    schema=STATE_PARTITION,
    fields="cluster_id state_partition first_log_offset end_log_offset_exclusive log_start_offset first_log_time_ms "
    "last_log_time_ms held_back uncommitted quarantined gap_offsets",
    headings={
        "end_log_offset_exclusive": "END-STATE-LOG-OFFSET",
        "log_start_offset": "STATE-LOG-START",
        "first_log_time_ms": "FROM",
        "last_log_time_ms": "TO",
    },
    important="STATE-PARTITION GAP-OFFSETS QUARANTINED HELD-BACK UNCOMMITTED TO FROM",
)
SOURCE_LAYOUT = Layout(
    schema=SOURCE,
    fields="source_id node_id cluster_id partitions",
    headings={"source_id": "SOURCE", "node_id": "NODE"},
    varies="of log directories all fields are columns of the text, by their names; skipped: log directories alone",
)
GAP_LAYOUT = Layout(schema=GAP, fields="cluster_id state_partition first_log_offset last_log_offset reason")
QUARANTINE_LAYOUT = Layout(schema=QUARANTINE, fields="cluster_id topic reason rows")
METADATA_LAYOUT = Layout(schema=METADATA_LOG, fields="cluster_id known_from_ms end_offset committed_end")
SETTINGS_LAYOUT = Layout(
    schema=SETTINGS,
    fields="cluster_id kind valid_from_ms settings run_id",
    headings={"kind": "SETTINGS-OF"},
    varies="of a lake alone",
)
RUN_LAYOUT = Layout(
    schema=RUN,
    headings={"published_at_ms": "PUBLISHED"},
    cells=(
        Column(
            heading="SHARELENS", cell=lambda row: number_text(row["sharelens_version"]), fields=("sharelens_version",)
        ),
    ),
    varies="of a lake alone",
)
GATE_LAYOUT = Layout(
    schema=CLOSED_GATE,
    headings={"table": "CLOSED-GATE", "check_id": "CHECK"},
    cells=(
        Column(heading="NOT-MET", cell=lambda row: visible(json_text(row["not_met"])), fields=("not_met",), folds=True),
    ),
    varies="of a lake alone",
)
TABLE_LAYOUT = Layout(schema=TABLE, varies="of a lake alone")


def partitions_part(evidence: Tables, cover: Sequence[StatePartitionCover]) -> Answer:
    """One row a state partition."""
    rows = [
        {
            "cluster_id": evidence.cluster_id,
            **part.row(),
            "uncommitted": part.uncommitted,
            "quarantined": part.quarantined,
            "gap_offsets": part.gap_offsets,
        }
        for part in cover
    ]
    return Answer(table=pa.Table.from_pylist(rows, schema=STATE_PARTITION), columns=LAYOUT.columns(), none="none")


def gaps_part(covers: Mapping[str | None, Sequence[StatePartitionCover]]) -> Answer:
    """One row a lost range; `covers` by cluster."""
    rows = [
        {
            "cluster_id": cluster_id,
            "state_partition": part.state_partition,
            "first_log_offset": loss.first_offset,
            "last_log_offset": loss.last_offset,
            "reason": loss.reason,
        }
        for cluster_id, cover in covers.items()
        for part in cover
        for loss in part.gaps
    ]
    return Answer(table=pa.Table.from_pylist(rows, schema=GAP), columns=GAP_LAYOUT.columns(), none="none")


def _metadata_part(histories: Mapping[str | None, MetadataHistory]) -> Answer:
    """One row a metadata log; `known_from_ms`: null where it begins with its first record."""
    rows = [
        {
            "cluster_id": cluster_id,
            "known_from_ms": history.first_ms,
            "end_offset": history.end_offset,
            "committed_end": history.committed_end,
        }
        for cluster_id, history in histories.items()
    ]
    table = pa.Table.from_pylist(rows, schema=METADATA_LOG)
    return Answer(table=table, columns=METADATA_LAYOUT.columns(), none="none")


def _histories(views: Sequence[Tables]) -> dict[str | None, MetadataHistory]:
    """The metadata over time by cluster, where there is a metadata log."""
    histories = ((view.cluster_id, view.metadata.history) for view in views)
    return {cluster_id: history for cluster_id, history in histories if history is not None}


def status(source: Source) -> Report:
    """The answer to `sharelens status`; errors as in `lake_status`."""
    if source.lake is not None:
        return lake_status(open_lake(source.lake), source.cluster_id)
    with open_logs(replace(source, takes_group_log=True)) as evidence:
        return log_status(evidence)


def log_status(evidence: Tables) -> Report:
    """`sharelens status --log-dir`: reads the state log through.

    Raises:
        TypeError: the evidence is none of log directories.
    """
    from sharelens.tables.logs.directories import LogDirectories

    origin = evidence.origin
    if not isinstance(origin, LogDirectories):
        raise TypeError(f"{evidence.place} is no evidence of log directories")
    cover = evidence.cover()
    metadata = _histories([evidence])
    topics = {part.topic for directory in origin.directories for part in directory.partitions}
    sources = [
        {
            "source_id": directory.source_id,
            "node_id": None if directory.node_id is None else str(directory.node_id),
            "cluster_id": directory.cluster_id,
            "partitions": len(directory.partitions),
            "skipped": list(directory.skipped),
        }
        for directory in origin.directories
    ]
    return Report(
        parts={
            "state_partitions": partitions_part(evidence, cover),
            "sources": Answer(table=pa.Table.from_pylist(sources, schema=SOURCE)),
            "gaps": gaps_part({evidence.cluster_id: cover}),
            "missing_states": missing_states_part({evidence.cluster_id: evidence.missing}),
            "quarantine": _quarantine_part(
                [
                    {
                        "cluster_id": evidence.cluster_id,
                        "topic": "__share_group_state",
                        "reason": reason,
                        "rows": rows,
                    }
                    for reason, rows in origin.problem_counts()
                ]
            ),
            "metadata_log": _metadata_part(metadata),
        },
        summary=closing_line(evidence),
        warnings=(*lacking(topics), *held_back(cover), *_damage(metadata)),
    )


def lake_status(lake: Cut, cluster_id: str | None) -> Report:
    """`sharelens status --lake`: every cluster of the lake, or one.

    Raises:
        UsageError: an unknown cluster.
    """
    named = [open_cut(lake, cluster_id)] if cluster_id is not None else []
    views = named or [open_cut(lake, cluster) for cluster in clusters(lake)]
    covers: dict[str | None, Sequence[StatePartitionCover]] = {view.cluster_id: view.cover() for view in views}
    metadata = _histories(views)
    parts = [partitions_part(view, covers[view.cluster_id]) for view in views]
    together = pa.concat_tables([STATE_PARTITION.empty_table(), *(part.table for part in parts)])
    columns = parts[0].columns if parts else ()
    return Report(
        parts={
            "state_partitions": Answer(table=together, columns=columns, none="none"),
            "sources": _sources_part(lake, cluster_id),
            "gaps": gaps_part(covers),
            "missing_states": missing_states_part({view.cluster_id: view.missing for view in views}),
            "quarantine": _quarantine_part(_quarantine_rows(lake, cluster_id)),
            "metadata_log": _metadata_part(metadata),
            "settings": _settings_part(lake, cluster_id),
            "runs": _runs_part(lake, cluster_id),
            "closed_gates": _gates_part(lake),
            "tables": Answer(table=pa.Table.from_pylist(_versions(lake), schema=TABLE), none="none"),
        },
        summary=closing_line(views[0])
        if len(views) == 1
        else evidence_line([part for cover in covers.values() for part in cover]),
        warnings=(
            *lacking(_topics(lake, cluster_id)),
            *held_back(part for cover in covers.values() for part in cover),
            *_damage(metadata),
            *without_contents(contents_of(lake.publication)),
        ),
    )


def _damage(metadata: Mapping[str | None, MetadataHistory]) -> list[str]:
    return list(dict.fromkeys(line for history in metadata.values() for line in damaged_metadata(history)))


def _topics(lake: Cut, cluster_id: str | None) -> set[str]:
    """The topics that runs took something of."""
    return set(lake.scan("bronze.ingest_extent", ["topic"], _of(cluster_id)).column("topic").unique().to_pylist())


def _of(cluster_id: str | None) -> pc.Expression | None:
    """Rows of the cluster; None for those of all."""
    return None if cluster_id is None else pc.field("cluster_id") == cluster_id


def _sources_part(lake: Cut, cluster_id: str | None) -> Answer:
    names = ["cluster_id", "source_id", "node_id", "topic_id", "partition"]
    extents = lake.scan("bronze.ingest_extent", names, _of(cluster_id))
    partitions = extents.group_by(extents.column_names).aggregate([]).group_by(["source_id", "node_id", "cluster_id"])
    counted = partitions.aggregate([("partition", "count")]).rename_columns({"partition_count": "partitions"})
    order = [("cluster_id", "ascending"), ("source_id", "ascending")]
    return Answer(table=counted.sort_by(order), columns=SOURCE_LAYOUT.columns(), none="none")


def _quarantine_rows(lake: Cut, cluster_id: str | None) -> list[dict[str, Any]]:
    names = ["cluster_id", "topic", "reason"]
    counted = lake.scan("bronze.quarantine", names, _of(cluster_id)).group_by(names).aggregate([([], "count_all")])
    rows = counted.rename_columns({"count_all": "rows"}).sort_by([(name, "ascending") for name in names])
    return list(rows.to_pylist())


def _quarantine_part(rows: list[dict[str, Any]]) -> Answer:
    table = pa.Table.from_pylist(rows, schema=QUARANTINE)
    return Answer(table=table, columns=QUARANTINE_LAYOUT.columns(), none="none")


def _settings_part(lake: Cut, cluster_id: str | None) -> Answer:
    """One row a stored file of settings, with the number of its settings; of one kind and time the newest run's."""
    names = ["cluster_id", "kind", "valid_from_ms", "run_id"]
    of_files = all_of(_of(cluster_id), pc.field("kind") != METADATA_CONFIGS)
    counted = lake.scan(BRONZE_SETTING, names, of_files).group_by(names).aggregate([([], "count_all")])
    counted = counted.append_column("settings", pc.subtract(counted.column("count_all"), 1))  # each file has a row
    rows = counted.select(SETTINGS.names).cast(SETTINGS).sort_by([(name, "ascending") for name in names])
    newest = {tuple(row[name] for name in names[:3]): row for row in rows.to_pylist()}
    table = pa.Table.from_pylist(list(newest.values()), schema=SETTINGS)
    return Answer(table=table, columns=SETTINGS_LAYOUT.columns(), none="none")


def _runs_part(lake: Cut, cluster_id: str | None) -> Answer:
    """The newest published runs, newest first; their offsets are those of the cluster, or of all."""
    published = publications(lake).to_pylist()
    rows = [
        {
            "run_id": row["run_id"],
            "published_at_ms": row["published_at_ms"],
            "sharelens_version": row["sharelens_version"],
            "state_log_offsets": sum(
                part["end_log_offset_exclusive"] - part["first_log_offset"]
                for part in row["evidence"]
                if cluster_id in (None, part["cluster_id"])
            ),
        }
        for row in sorted(published, key=lambda row: row["run_id"], reverse=True)[:RUNS_SHOWN]
    ]
    return Answer(table=pa.Table.from_pylist(rows, schema=RUN), columns=RUN_LAYOUT.columns(), none="none")


def _gates_part(lake: Cut) -> Answer:
    """The closed quality gates; without any, which check found them open."""
    known_gates = gates(lake.lake)
    rows = [
        {
            "table": gate.table,
            "not_met": list(gate.failed),
            "check_id": gate.check_id,
            "run_id": gate.run_id,
            "version": gate.version,
        }
        for _, gate in sorted(known_gates.items())
        if gate.failed
    ]
    newest = max(known_gates.values(), key=lambda gate: gate.check_id, default=None)
    none = "never checked" if newest is None else f"all open (check {newest.check_id}, run {newest.run_id})"
    return Answer(table=pa.Table.from_pylist(rows, schema=CLOSED_GATE), columns=GATE_LAYOUT.columns(), none=none)


def _versions(lake: Cut) -> list[dict[str, Any]]:
    return [{"table": name, "version": version} for name, version in sorted(lake.versions.items())]
