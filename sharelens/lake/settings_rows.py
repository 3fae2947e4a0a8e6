"""Rows of bronze.setting: the observations of settings that runs took from files."""

from collections.abc import Iterable, Sequence

import pyarrow as pa

from sharelens.measures.settings.observations import Entry, Observation
from state_model.columnar.schemas import column

TABLE = "bronze.setting"
KIND_TEXT = (
    "group_configs, metadata_configs (by the metadata log), broker_config, dead_letter_topics, end_offsets, "
    "log_starts, or sampled_batches (of a running cluster)"
)
SETTING = pa.schema(
    [
        column("kind", pa.string(), KIND_TEXT, nullable=False),
        column(
            "valid_from_ms",
            pa.int64(),
            "last modification of the file, or log time of the record (0: the beginning); it holds from then on",
            nullable=False,
        ),
        column(
            "entity",
            pa.string(),
            "group, dead-letter topic, topic of an end offset, or topic id of a sampled batch; empty: the brokers, or "
            "the row that each file has",
            nullable=False,
        ),
        column(
            "name",
            pa.string(),
            "name of the setting, or partition of an end offset; of sampled batches P (a partition that was read), "
            "P:OFFSET (its time is the value) or P:FIRST-LAST (without a record); else empty",
            nullable=False,
        ),
        column("value", pa.string(), "value; null = none"),
        column(
            "origin",
            pa.string(),
            "source of a group's value, by kafka-configs; of a sampled batch its timestamp type or why it holds no "
            "record; null = none",
        ),
    ]
)
OF_FILE = Entry("", "")
"""The entry of the row that each observation has, so that a file without entries is kept, too."""
COLUMNS = [*SETTING.names, "run_id"]
"""The columns that `observations_of` reads."""


def setting_rows(observations: Iterable[Observation]) -> pa.Table:
    """SETTING rows of observations."""
    rows = [
        {"kind": observation.kind, "valid_from_ms": observation.from_ms} | entry._asdict()
        for observation in observations
        for entry in (OF_FILE, *observation.entries)
    ]
    return pa.Table.from_pylist(rows, schema=SETTING)


def observations_of(rows: pa.Table) -> Sequence[Observation]:
    """The observations in rows (COLUMNS) of one cluster; of one kind and time that of the newest run."""
    entries: dict[tuple[str, int], dict[int, list[Entry]]] = {}
    for row in rows.select(COLUMNS).to_pylist():
        entry = Entry(row["entity"], row["name"], row["value"], row["origin"])
        by_run = entries.setdefault((row["kind"], row["valid_from_ms"]), {})
        by_run.setdefault(row["run_id"], []).append(entry)
    return [
        Observation(kind=kind, from_ms=from_ms, entries=tuple(sorted(entry for entry in newest if entry != OF_FILE)))
        for (kind, from_ms), by_run in sorted(entries.items())
        for newest in [by_run[max(by_run)]]
    ]
