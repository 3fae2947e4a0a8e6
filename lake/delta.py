"""Delta commits: files that were already written become part of a table in one atomic step.

delta-rs reads these tables but refuses to write them (in-commit timestamps are a writer feature it lacks), and a
commit through Spark costs about half a second; see docs/adr. The format is the Delta transaction protocol: one JSON
action a line in `_delta_log/<version>.json`, which must not exist before. The caller holds the lake's lock.
"""

import json
import os
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from lake import crash_points
from lake.errors import LakeError
from lake.snapshot import NOTHING, READER_VERSION, Snapshot, by_delta_rs, checkpointed, following
from lake.tables import TIME, Table

WRITER_VERSION = 7
WRITER_FEATURES = ("appendOnly", "invariants", "inCommitTimestamp", "domainMetadata", "clustering")
CHECKPOINT_EVERY = 20
CHECKPOINT = "checkpoint.parquet"
SCRATCH = ".commit-"
SCHEMA_VERSION_PROPERTY = "sharelens.schemaVersion"
SPARK_TYPES = {
    pa.string(): "string",
    pa.binary(): "binary",
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    TIME: "timestamp",
    pa.float64(): "double",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A Parquet file under the table's folder. `stats`: Delta's numRecords, minValues, maxValues, nullCount."""

    path: str
    size_bytes: int
    stats: dict[str, Any]
    partition_values: dict[str, str] = field(default_factory=dict)

    @property
    def record_count(self) -> int:
        """Rows in the file."""
        return int(self.stats["numRecords"])


@lru_cache(maxsize=1024)
def table_path(lake: Path, name: str) -> Path:
    """Folder of table `layer.name`."""
    layer, _, short = name.partition(".")
    return lake / layer / short


def relative_path(table: Path, path: str) -> str:
    """A data file's path as its commit names it, from the path an Arrow dataset gives."""
    found = Path(path)
    return found.relative_to(table.resolve()).as_posix() if found.is_absolute() else found.as_posix()


def partition_values(path: str) -> dict[str, str]:
    """The values of the columns that the folders of a data file's path name."""
    pairs = (part.partition("=") for part in path.split("/")[:-1])
    return {name: value for name, equals, value in pairs if equals}


def exists(path: Path) -> bool:
    """Whether `path` holds a Delta table."""
    return os.path.exists(_commit_name(path, 0)) or os.path.exists(f"{path}/_delta_log/_last_checkpoint")


def latest_version(path: Path) -> int:
    """The newest version; -1 when there is no table.

    Looked for from the last checkpoint on, or from what was read last, so that the length of the log costs nothing.
    """
    read = _Log.of(path).read
    version = _last_checkpoint(path) if read is None or not _is_there(path, read[0]) else read[0].version
    if version is None:
        try:
            names = os.listdir(f"{path}/_delta_log")
        except (FileNotFoundError, NotADirectoryError):
            return -1
        return max((int(name[:-5]) for name in names if name.endswith(".json") and name[:-5].isdigit()), default=-1)
    while os.path.exists(_commit_name(path, version + 1)):
        version += 1
    return version


def commit_file(path: Path, version: int) -> Path:
    """The file of one commit."""
    return Path(_commit_name(path, version))


def _commit_name(path: Path, version: int) -> str:
    return f"{path}/_delta_log/{version:020d}.json"


def _last_checkpoint(path: Path) -> int | None:
    """The version that `_last_checkpoint` names; None without that file, or when it can't be read."""
    try:
        with open(f"{path}/_delta_log/_last_checkpoint", encoding="utf-8") as file:
            return int(json.load(file)["version"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def create(path: Path, table: Table) -> None:
    """Creates the table at version 0; nothing happens when it is already there."""
    if exists(path):
        return
    configuration = {
        "delta.enableInCommitTimestamps": "true",
        "delta.parquet.compression.codec": "zstd",
        SCHEMA_VERSION_PROPERTY: str(table.version),
    }
    if table.append_only:
        configuration["delta.appendOnly"] = "true"
    actions = [_protocol(_features(table)), _metadata(table, str(uuid.uuid4()), _now_ms(), configuration)]
    if not table.partition_by:
        actions.append(_clustering(table))
    _write(path, 0, "CREATE TABLE", actions, previous_ms=0)


def _features(table: Table) -> tuple[str, ...]:
    return tuple(f for f in WRITER_FEATURES if table.partition_by == () or f not in ("clustering", "domainMetadata"))


def _clustering(table: Table) -> dict[str, Any]:
    """The action that names a table's clustering columns; without a place for a partitioned one, which has none."""
    columns = {"clusteringColumns": [[name] for name in table.clustering], "domainName": "delta.clustering"}
    told = {"domain": "delta.clustering", "configuration": json.dumps(columns), "removed": bool(table.partition_by)}
    return {"domainMetadata": told}


def altered(path: Path, table: Table, properties: dict[str, str | None]) -> list[dict[str, Any]]:
    """The actions that give an existing table the schema, partitioning and version of `table`, for `commit`.

    Other properties stay; of `properties` those that are None go. Rows are not touched: what can't be read under the
    new schema has to be removed in the same commit.
    """
    from deltalake import DeltaTable

    opened = DeltaTable(path)
    held, protocol = opened.metadata(), opened.protocol()
    known = set(protocol.writer_features or ())
    wanted = {**held.configuration, SCHEMA_VERSION_PROPERTY: str(table.version), **properties}
    actions: list[dict[str, Any]] = []
    if not known.issuperset(_features(table)):
        actions.append(_protocol(sorted(known.union(_features(table)))))
    configuration = {name: value for name, value in wanted.items() if value is not None}
    actions.append(_metadata(table, str(held.id), held.created_time, configuration))
    if bool(held.partition_columns) != bool(table.partition_by) or not table.partition_by:
        actions.append(_clustering(table))
    return actions


def _protocol(features: Sequence[str]) -> dict[str, Any]:
    told = {
        "minReaderVersion": READER_VERSION,
        "minWriterVersion": WRITER_VERSION,
        "writerFeatures": list(features),
    }
    return {"protocol": told}


def _metadata(table: Table, identity: str, created_ms: int, configuration: dict[str, str]) -> dict[str, Any]:
    from deltalake import Schema

    told = {
        "id": identity,
        "name": table.name,
        "description": table.comment,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": Schema.from_arrow(delta_schema(table.schema)).to_json(),
        "partitionColumns": list(table.partition_by),
        "configuration": configuration,
        "createdTime": created_ms,
    }
    return {"metaData": told}


def delta_schema(schema: pa.Schema) -> pa.Schema:
    """`schema` as Delta stores it: top-level nullability kept, everything inside lists nullable."""
    return pa.schema([pa.field(f.name, f.type, f.nullable, f.metadata) for f in schema])


def spark_type(kind: pa.DataType) -> str:
    """A column type as Spark SQL writes it."""
    if pa.types.is_list(kind):
        return f"array<{spark_type(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'{field.name}: {spark_type(field.type)}' for field in kind)}>"
    return SPARK_TYPES[kind]


def commit(
    path: Path,
    *,
    operation: str,
    txn: tuple[str, int],
    adds: Sequence[DataFile] = (),
    removes: Sequence[str] = (),
    data_change: bool = True,
    alteration: Sequence[dict[str, Any]] = (),
) -> int:
    """Commits added and removed files with (application, version) `txn`; the new table version.

    With an `alteration` (`altered`) the table gets another schema in the same step.

    A `txn` that the table already holds is skipped: the version that is there is returned. Without `data_change` the
    files hold the same rows as before, and readers of changes may pass over the commit.

    Raises:
        LakeError: another writer took the version, in spite of the lock.
    """
    latest = latest_version(path)
    point = f"commit:{path.parent.name}.{path.name}:{operation}"
    crash_points.passing(f"{point}:before")
    if (committed_txn(path, txn[0]) or -1) >= txn[1]:
        return latest
    now = _now_ms()
    actions: list[dict[str, Any]] = [{"txn": {"appId": txn[0], "version": txn[1], "lastUpdated": now}}, *alteration]
    actions += [{"remove": {"path": p, "deletionTimestamp": now, "dataChange": data_change}} for p in removes]
    for file in adds:
        add = {
            "path": file.path,
            "partitionValues": file.partition_values,
            "size": file.size_bytes,
            "modificationTime": now,
            "dataChange": data_change,
            "stats": _json(file.stats),
        }
        actions.append({"add": add})
    _write(path, latest + 1, operation, actions, previous_ms=commit_ms(path, latest))
    crash_points.passing(f"{point}:after")
    if (latest + 1) % CHECKPOINT_EVERY == 0:
        from deltalake import DeltaTable

        DeltaTable(path).create_checkpoint()
    return latest + 1


def committed_txn(path: Path, application: str) -> int | None:
    """The newest version committed for `application`; null when there is none or no table."""
    return snapshot(path).transaction(application) if exists(path) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A version of a table, and the very file of its commit (null: it is gone): what is read of it never changes."""

    version: int
    identity: tuple[int, int] | None


def commit_at(path: Path, version: int | None = None) -> Commit:
    """What tells whether a version (null: the newest) is what it was when it was last read."""
    number = latest_version(path) if version is None else version
    try:
        found = os.stat(_commit_name(path, number))
    except FileNotFoundError:
        return Commit(version=number, identity=None)
    return Commit(version=number, identity=(found.st_ino, found.st_mtime_ns))


def _is_there(path: Path, commit: Commit) -> bool:
    """Whether the file of a commit is still the one that was read."""
    return commit.identity is not None and commit_at(path, commit.version) == commit


class _Log:
    """What was read last of a table's log. Whether it still holds is asked at each use."""

    def __init__(self) -> None:
        self.read: tuple[Commit, Snapshot] | None = None

    @staticmethod
    @lru_cache(maxsize=256)
    def of(path: Path) -> "_Log":
        """That of a table."""
        return _Log()


def snapshot(path: Path, version: int | None = None) -> Snapshot:
    """A version (null: the newest) of a table that exists.

    Raises:
        deltalake.exceptions.DeltaError: the log can't be read.
    """
    log, at = _Log.of(path), commit_at(path, version)
    if log.read is not None and log.read[0] == at and at.identity is not None:
        return log.read[1]
    found = _replayed(path, at, log.read)
    if found is None:
        return by_delta_rs(path, None if at.version < 0 else at.version)
    log.read = at, found
    return found


def _replayed(path: Path, at: Commit, read: tuple[Commit, Snapshot] | None) -> Snapshot | None:
    """A version from what was read before, or from the last checkpoint on; null for what is left to delta-rs."""
    try:
        begun, before = _begin(path, at.version, read)
        numbers = range(begun + 1, at.version + 1)
        return before and following(before, (commit_file(path, n).read_text(encoding="utf-8") for n in numbers))
    except (OSError, ValueError, KeyError, TypeError):
        return None  # delta-rs says what is wrong


def _begin(path: Path, version: int, read: tuple[Commit, Snapshot] | None) -> tuple[int, Snapshot | None]:
    """A version that is there, and what it tells: read before, of a checkpoint, or of nothing before the first one."""
    if read is not None and 0 < version - read[0].version <= CHECKPOINT_EVERY and _is_there(path, read[0]):
        return read[0].version, read[1]
    names = (name.partition(".") for name in os.listdir(f"{path}/_delta_log"))
    found = max((int(number) for number, _, rest in names if rest == CHECKPOINT and int(number) <= version), default=-1)
    return (-1, NOTHING) if found < 0 else (found, checkpointed(path / "_delta_log" / f"{found:020d}.{CHECKPOINT}"))


def live_files(path: Path, version: int | None = None) -> list[dict[str, Any]]:
    """The files of a version: path, size_bytes, num_records and statistics (min.x, max.x, null_count.x)."""
    return list(snapshot(path, version).files.values()) if exists(path) else []


def _write(path: Path, version: int, operation: str, actions: list[dict[str, Any]], *, previous_ms: int) -> None:
    """Puts one commit file in place: complete or not there, never over another one."""
    log = path / "_delta_log"
    if version == 0:
        log.mkdir(mode=0o700, parents=True, exist_ok=True)
    now = max(_now_ms(), previous_ms + 1)
    info = {
        "inCommitTimestamp": now,
        "timestamp": now,
        "operation": operation,
        "operationParameters": {},
        "engineInfo": "sharelens",
    }
    lines = [_json({"commitInfo": info})] + [_json(action) for action in actions]
    target = commit_file(path, version)
    scratch = f"{log}/{SCRATCH}{uuid.uuid4()}"
    handle = os.open(scratch, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.link(scratch, target)
    except FileExistsError:
        raise LakeError(f"version {version} of {path} was committed by another writer; run again") from None
    finally:
        os.unlink(scratch)


def _json(value: dict[str, Any]) -> str:
    """JSON with text as it is: delta-rs misreads characters beyond U+FFFF that are escaped as surrogates."""
    return json.dumps(value, ensure_ascii=False)


def operation_of(path: Path, version: int) -> str:
    """What a version was committed for; empty when its commit file is gone."""
    try:
        with commit_file(path, version).open(encoding="utf-8") as file:
            return str(json.loads(file.readline())["commitInfo"]["operation"])
    except (FileNotFoundError, KeyError, ValueError):
        return ""


def commit_ms(path: Path, version: int) -> int:
    """In-commit timestamp of a version; 0 when its commit file is gone."""
    try:
        with commit_file(path, version).open(encoding="utf-8") as file:
            return int(json.loads(file.readline())["commitInfo"]["inCommitTimestamp"])
    except (FileNotFoundError, KeyError, ValueError):
        return 0


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
