"""The settings of groups for measures: from a folder of files, or from rows of a lake."""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa

from sharelens.frames.shapes import checked
from sharelens.lake.settings_rows import COLUMNS, TABLE, observations_of
from sharelens.lake.tables import TABLES
from sharelens.measures.settings.observations import Observation, settings_of
from sharelens.measures.settings.over_time import GroupSettings
from sharelens.settings.folder import read_settings_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def group_settings(source: "DataFrame | str | os.PathLike[str]") -> GroupSettings:
    """The settings of groups over time, for the argument `settings` of `stalls`, `poison_records` and `progress`.

    Args:
        source: a folder, as for --settings, which the driver reads; or rows of bronze.setting of one cluster, which
            are collected.

    Raises:
        SharelensError: the folder or a file in it can't be read.
        UsageError: a file is not of its format; or a column is missing or has another type.
    """
    return settings_of(observations_in(source, "group_settings")).groups


def observations_in(source: "DataFrame | str | os.PathLike[str]", function: str) -> Iterable[Observation]:
    """The observations of a folder of settings, or of rows of bronze.setting, which `function` got."""
    if isinstance(source, str | os.PathLike):
        return read_settings_folder(os.fspath(source)).observations
    schema = pa.schema([TABLES[TABLE].schema.field(name) for name in COLUMNS])
    return observations_of(checked(source, schema, function, "source").toArrow())
