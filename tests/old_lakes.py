"""Lakes that older versions of sharelens wrote, and lakes of this version that look older."""

import hashlib
from pathlib import Path

from deltalake import DeltaTable

from sharelens.demo_data.packed import SUFFIX, unpack
from sharelens.lake.lake import SCHEMA_VERSION_PROPERTY, Lake
from sharelens.lake.tables import TABLES
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
