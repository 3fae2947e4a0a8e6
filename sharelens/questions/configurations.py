"""Configurations over time by the metadata log: dynamic settings of groups, topics, brokers and client metrics."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from sharelens.evidence.metadata_events import MetadataHistory
from sharelens.evidence.metadata_reading import read_metadata
from sharelens.kafka_log.layout import LogDirectory, scan_log_directory
from sharelens.lake.scan import open_lake
from sharelens.output import Answer, Column, Row, name_cell
from sharelens.output.layouts import Layout
from sharelens.output.wording import counted, listed
from sharelens.parameters.times import time_text
from sharelens.questions.answers.missing import damaged_metadata
from sharelens.questions.answers.shape import CLUSTER_ID
from sharelens.shell import lake_command
from sharelens.source.request import Source
from sharelens.tables.opening import open_cut
from state_model.columnar.schemas import column
from state_model.errors import SharelensError, UsageError
from state_model.metadata.changes import CONFIG
from state_model.metadata.history import Validity, topic_names
from state_model.topics import METADATA_TOPIC

WHOLE_CLUSTER = "default"
"""The word for the brokers' cluster-wide default, whose name in the log is empty."""
CONFIGURATION = pa.schema(
    [
        CLUSTER_ID,
        column("resource_type", pa.string(), "group, topic, broker or client_metrics"),
        column("resource", pa.string(), "its name; a broker's id; empty = the default of all brokers"),
        column("name", pa.string(), "key of the setting"),
        column("value", pa.string(), "the value; null = the key may be a secret"),
        column("hidden_length", pa.int32(), "bytes of a value that is not shown; null = the value is shown"),
        column(
            "hidden_digest",
            pa.string(),
            "digest of it: equal values of one answer have equal digests, by a random key that is never stored; null "
            "in a lake, where each writing counts as a new value",
        ),
        column("valid_from_ms", pa.int64(), "when the value came into force, by the controller's clock"),
        column("valid_to_ms", pa.int64(), "when it ended; null = it is in force"),
        column("from_offset", pa.int64(), "offset of the record that set it"),
        column("to_offset", pa.int64(), "offset of the record that replaced or removed it; null = none"),
        column("began_earlier", pa.bool_(), "the value is older: the log begins with a snapshot, or one closed a gap"),
        column("completeness", pa.string(), "complete, incomplete or uncommitted"),
        column("completeness_reason", pa.string(), "gap or uncommitted; null = complete"),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceFilter:
    """The resources to list, of any of the kinds; nothing set: all."""

    groups: frozenset[str] = frozenset()
    topics: frozenset[str] = frozenset()
    brokers: frozenset[str] = frozenset()

    def matches(self, resource_type: str, resource: str) -> bool:
        """Whether a resource is to be listed."""
        if not (self.groups or self.topics or self.brokers):
            return True
        chosen = {"group": self.groups, "topic": self.topics, "broker": self.brokers}.get(resource_type, frozenset())
        return resource in chosen


def resource_filter(*, groups: Iterable[str], topics: Iterable[str], brokers: Iterable[str]) -> ResourceFilter:
    """The filter of these resources."""
    return ResourceFilter(groups=frozenset(groups), topics=frozenset(topics), brokers=frozenset(brokers))


def configurations(source: Source, chosen: ResourceFilter, as_of_ms: int | None = None) -> Answer:
    """The answer to `sharelens configurations`. `as_of_ms`: only what was in force at that time.

    Raises:
        SharelensError: there is no metadata log, or it is larger than --max-bytes.
        UsageError: the metadata log has no topic of a name.
    """
    cluster_id, history = _lake_history(source) if source.lake is not None else _log_history(source)
    chosen = _with_names(chosen, history)
    rows = [
        row
        for row in history.validities
        if row.key[0] == CONFIG
        and chosen.matches(str(row.key[1]), str(row.key[2]))
        and (as_of_ms is None or row.is_in_force_at(as_of_ms))
    ]
    table = pa.Table.from_pylist([_row(row, history, cluster_id) for row in rows], schema=CONFIGURATION)
    in_force = sum(row.end is None for row in rows)
    return Answer(
        table=table,
        columns=LAYOUT.columns(),
        summary=f"{counted(len(rows), 'value')} of settings, {in_force} in force at the end\n{_evidence_line(history)}",
        warnings=tuple(_warnings(history, as_of_ms)),
        none="no setting in the metadata log: the resource has the brokers' own files and Kafka's defaults",
    )


def _log_history(source: Source) -> tuple[str | None, MetadataHistory]:
    directories = [scan_log_directory(uri) for uri in source.log_dirs]
    history = metadata_history(source, directories)
    return source.cluster_id or next((entry.cluster_id for entry in directories if entry.cluster_id), None), history


def _lake_history(source: Source) -> tuple[str | None, MetadataHistory]:
    """The cluster of a lake and its metadata log as runs have read it."""
    evidence = open_cut(open_lake(str(source.lake)), source.cluster_id)
    history = evidence.metadata.history
    if history is None:
        raise SharelensError(
            f"no record of {METADATA_TOPIC} in {evidence.place}: every controller and broker has the folder "
            f"{METADATA_TOPIC}-0; copy it, then `{lake_command('run', source.lake)} --log-dir` the folder around it"
        )
    return evidence.cluster_id, history


def metadata_history(source: Source, directories: Sequence[LogDirectory]) -> MetadataHistory:
    """The metadata log of log directories. Raises SharelensError when none has one with a readable record."""
    for directory in directories:
        if source.cluster_id is not None and directory.cluster_id not in (None, source.cluster_id):
            raise UsageError(
                f"{directory.uri} belongs to cluster {name_cell(directory.cluster_id)}, not to "
                f"{name_cell(source.cluster_id)}; correct --cluster-id or --log-dir"
            )
    history = read_metadata(directories, max_bytes=source.max_bytes)
    if history is None:
        places = ", ".join(directory.uri for directory in directories)
        raise SharelensError(
            f"no {METADATA_TOPIC}-0 in {places}: every controller and broker has that folder in metadata.log.dir, or "
            "else in the first of log.dirs; copy it and name the folder around it with --log-dir"
        )
    if not history.end_offset:
        counts = ", ".join(f"{reason} {count}" for reason, count in history.problems) or "it is empty"
        raise SharelensError(f"no record of {METADATA_TOPIC}-0 can be read ({counts}): copy the folder again")
    return history


def _with_names(chosen: ResourceFilter, history: MetadataHistory) -> ResourceFilter:
    """The filter with names for topic ids, and the empty name for the brokers' default."""
    names = topic_names(history.validities)
    known_topics = set(names.values()) | {
        str(row.key[2]) for row in history.validities if row.key[:2] == (CONFIG, "topic")
    }
    topics = {topic if topic in known_topics else names.get(topic, topic) for topic in chosen.topics}
    unknown = sorted(topics - known_topics)
    if unknown:
        raise UsageError(
            f"no topic {name_cell(unknown[0])} in the metadata log; topics there, deleted ones too: "
            f"{listed(sorted(known_topics))}"
        )
    brokers = {"" if broker == WHOLE_CLUSTER else broker for broker in chosen.brokers}
    return ResourceFilter(groups=chosen.groups, topics=frozenset(topics), brokers=frozenset(brokers))


def _row(row: Validity, history: MetadataHistory, cluster_id: str | None) -> dict[str, object]:
    hidden = row.content["hidden"]
    completeness, reason = history.completeness(row)
    return {
        "cluster_id": cluster_id,
        "resource_type": row.key[1],
        "resource": row.key[2],
        "name": row.key[3],
        "value": row.content["value"],
        "hidden_length": hidden["length"] if isinstance(hidden, dict) else None,
        "hidden_digest": hidden["digest"] if isinstance(hidden, dict) else None,
        "valid_from_ms": row.begin.timestamp_ms,
        "valid_to_ms": None if row.end is None else row.end.timestamp_ms,
        "from_offset": row.begin.offset,
        "to_offset": None if row.end is None else row.end.offset,
        "began_earlier": row.began_earlier,
        "completeness": completeness,
        "completeness_reason": reason,
    }


def _evidence_line(history: MetadataHistory) -> str:
    if history.committed_end >= history.end_offset:
        return f"evidence: {METADATA_TOPIC} up to offset {history.end_offset}, committed"
    return (
        f"evidence: {METADATA_TOPIC} up to offset {history.end_offset}, surely committed below "
        f"{history.committed_end}: name the log directories of a majority of the controllers to know more"
    )


def _warnings(history: MetadataHistory, as_of_ms: int | None) -> list[str]:
    warnings = []
    if history.first_ms is not None:
        before = as_of_ms is not None and as_of_ms < history.first_ms
        ending = ": nothing is known of the time asked for" if before else ""
        warnings.append(f"the metadata log is known from {time_text(history.first_ms)} on{ending}")
    return [*warnings, *damaged_metadata(history)]


def _resource_cell(row: Row) -> str:
    return WHOLE_CLUSTER if row["resource_type"] == "broker" and not row["resource"] else name_cell(row["resource"])


def _value_cell(row: Row) -> str:
    if row["hidden_length"] is None:
        return name_cell(row["value"])
    digest = row["hidden_digest"]
    return f"hidden:{row['hidden_length']}" + ("" if digest is None else f":{digest}")


LAYOUT = Layout(
    schema=CONFIGURATION,
    fields="resource_type resource name value valid_from_ms valid_to_ms from_offset to_offset completeness",
    headings={"resource_type": "TYPE", "valid_from_ms": "FROM", "valid_to_ms": "TO"},
    cells=(
        Column(heading="RESOURCE", cell=_resource_cell, fields=("resource",)),
        Column(heading="VALUE", cell=_value_cell, fields=("value", "hidden_length", "hidden_digest")),
    ),
    important="TYPE RESOURCE NAME VALUE FROM TO COMPLETENESS FROM-OFFSET TO-OFFSET",
)
