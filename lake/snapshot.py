"""A table at a version, as its log tells it: files, transactions, properties. A newer one follows from new commits.

Opening a table through delta-rs costs more than all that a small run reads of it, so delta-rs is asked only where a log
says what is not known here.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

if TYPE_CHECKING:
    from deltalake import DeltaTable

READER_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A table at a version.

    `files`: by path what is told of each live file: path, size_bytes, num_records and its statistics (min.x, max.x,
    null_count.x, partition.x), plain columns alone. `transactions`: by application the newest version; `opened` knows
    them where delta-rs opened the table.
    """

    files: Mapping[str, dict[str, Any]]
    transactions: Mapping[str, int]
    configuration: Mapping[str, str]
    schema_text: str
    partition_by: tuple[str, ...] = ()
    opened: "DeltaTable | None" = None

    def transaction(self, application: str) -> int | None:
        """The newest version committed for `application`."""
        if application in self.transactions or self.opened is None:
            return self.transactions.get(application)
        found = self.opened.transaction_version(application)
        return None if found is None else int(found)


NOTHING = Snapshot(files={}, transactions={}, configuration={}, schema_text="")
"""What a log says before its first commit."""


def following(before: Snapshot, commits: Iterable[str]) -> Snapshot | None:
    """`before` with the commits that come next, as text; null when one says what is not known here."""
    return _after(before, (json.loads(line) for text in commits for line in text.splitlines()))


def checkpointed(path: Path) -> Snapshot | None:
    """What a checkpoint file holds; null when it says what is not known here."""
    with pq.ParquetFile(path) as file:
        held = file.read(columns=["add", "txn", "metaData", "protocol"], use_threads=False)
    if any(field.name.endswith("_parsed") for field in held.schema.field("add").type):
        return None
    return _after(NOTHING, held.to_pylist())


def _after(before: Snapshot, actions: Iterable[Mapping[str, Any]]) -> Snapshot | None:
    files, transactions = dict(before.files), dict(before.transactions)
    configuration, schema_text, partition_by = before.configuration, before.schema_text, before.partition_by
    for action in actions:
        add, remove, txn, metadata = (action.get(kind) for kind in ("add", "remove", "txn", "metaData"))
        if not all(_is_plain(file) for file in (add, remove) if file):
            return None
        if action.get("protocol") and action["protocol"]["minReaderVersion"] > READER_VERSION:
            return None
        if add:
            files[add["path"]] = _file(add)
        if remove:
            files.pop(remove["path"], None)
        if txn:
            transactions[txn["appId"]] = txn["version"]
        if metadata:
            configuration, schema_text = dict(metadata["configuration"]), metadata["schemaString"]
            partition_by = tuple(metadata["partitionColumns"])
    return Snapshot(
        files=files,
        transactions=transactions,
        configuration=configuration,
        schema_text=schema_text,
        partition_by=partition_by,
    )


def _is_plain(file: Mapping[str, Any]) -> bool:
    """Whether the path stands for itself, and the file for all its rows."""
    return "%" not in file["path"] and file.get("deletionVector") is None


def _file(add: Mapping[str, Any]) -> dict[str, Any]:
    stats = json.loads(add.get("stats") or "{}")
    told = {"path": add["path"], "size_bytes": add["size"], "num_records": stats.get("numRecords")}
    for prefix, found in (
        ("min", stats.get("minValues")),
        ("max", stats.get("maxValues")),
        ("null_count", stats.get("nullCount")),
        ("partition", add.get("partitionValues")),
    ):
        told |= {f"{prefix}.{name}": value for name, value in dict(found or {}).items() if not isinstance(value, dict)}
    return told


def by_delta_rs(path: Path, version: int | None) -> Snapshot:
    """A version (null: the newest) as delta-rs reads it."""
    import pyarrow as pa
    from deltalake import DeltaTable

    opened = DeltaTable(path, version=version)
    if opened.protocol().min_reader_version > READER_VERSION:
        opened.to_pyarrow_dataset()  # refuses what asks a reader for more than reading files
    files = {row["path"]: row for row in pa.table(opened.get_add_actions(flatten=True)).to_pylist()}
    return Snapshot(
        files=files,
        transactions={},
        configuration=opened.metadata().configuration,
        schema_text=opened.schema().to_json(),
        partition_by=tuple(opened.metadata().partition_columns),
        opened=opened,
    )
