"""Lakes that older versions of sharelens wrote, and lakes of this version that look older."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, Schema

from sharelens.demo_data.packed import SUFFIX, unpack
from sharelens.lake.lake import SCHEMA_VERSION_PROPERTY, Lake
from sharelens.lake.tables import TABLES
from sharelens.lake.view_columns import OLD_NAMES
from tests.datasets import DATA

LAKES = DATA / "lakes"
SCENARIO = "timeouts"
"""The data set whose log each of them holds."""
NAMES = tuple(sorted(path.name.removesuffix(SUFFIX) for path in LAKES.glob(f"*{SUFFIX}")))


def old_lake(name: str, folder: Path) -> Path:
    """The lake `name`, unpacked into a new folder."""
    packed = LAKES / f"{name}{SUFFIX}"
    sums = dict(line.split("  ")[::-1] for line in (LAKES / "SHA256SUMS").read_text(encoding="ascii").splitlines())
    assert hashlib.sha256(packed.read_bytes()).hexdigest() == sums[packed.name]
    unpack(packed, folder)
    return folder


def age(lake: Path, version: str) -> None:
    """Gives every table of a lake another schema version, its rows and columns as they are."""
    opened = Lake(lake)
    for name in TABLES:
        if opened.exists(name):
            table = DeltaTable(opened.table_storage(name).root)
            table.alter.set_table_properties({SCHEMA_VERSION_PROPERTY: version}, raise_if_not_exists=False)


def with_old_names(lake: Path) -> None:
    """Gives the columns that have a newer name the one that schema version 8 had, in the files and in the log."""
    for name, new_names in OLD_NAMES.items():
        folder = lake / name.replace(".", "/")
        old_names = {new: old for old, new in new_names.items()}
        for path in folder.rglob("*.parquet"):
            rows = pq.read_table(path, partitioning=None)
            names = [old_names.get(column, column) for column in rows.schema.names]
            pq.write_table(rows.rename_columns(names), path)
        fields = [field.with_name(old_names.get(field.name, field.name)) for field in TABLES[name].schema]
        for commit in sorted((folder / "_delta_log").glob("*.json")):
            actions = [json.loads(line) for line in commit.read_text(encoding="utf-8").splitlines()]
            for action in actions:
                _give_old_names(action, old_names, folder, fields)
            commit.write_text("\n".join(map(json.dumps, actions)), encoding="utf-8")


def _give_old_names(action: dict[str, Any], old_names: dict[str, str], folder: Path, fields: list[pa.Field]) -> None:
    if "metaData" in action:
        action["metaData"]["schemaString"] = Schema.from_arrow(pa.schema(fields)).to_json()
    if "add" in action:
        statistics = json.loads(action["add"]["stats"])
        for kind in ("minValues", "maxValues", "nullCount"):
            values = statistics[kind]
            statistics[kind] = {old_names.get(name, name): value for name, value in values.items()}
        action["add"]["stats"] = json.dumps(statistics)
        path = folder / action["add"]["path"]
        if path.exists():
            action["add"]["size"] = path.stat().st_size
