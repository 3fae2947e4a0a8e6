"""The publications of a lake up to the cut that is open: the tables that no publication lists, and earlier cuts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sharelens.evidence.conditions import all_of
from sharelens.lake.errors import LakeError
from sharelens.lake.gates import RESULTS
from sharelens.lake.scan import PUBLICATION, Cut, versions_of
from sharelens.tables.where import Keys


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedLake:
    """A cluster of a lake at its published cut."""

    lake: Cut
    cluster: str

    def earlier_rows(
        self, table: str, columns: Sequence[str], ages_ms: Sequence[int], keys: Keys
    ) -> Sequence[tuple[int, pa.Table]]:
        """See `sharelens.tables.port.Publications`."""
        *rows, newest = publications(self.lake).to_pylist()
        earlier = [row for row in rows if row["cluster_id"] == newest["cluster_id"]]
        chosen: list[Mapping[str, Any]] = []
        for age_ms in ages_ms:
            old = [row for row in earlier if row["published_at_ms"] <= newest["published_at_ms"] - age_ms]
            chosen += [row for row in old[-1:] if row not in chosen]
        read = [self._rows_at(row, table, columns, keys) for row in chosen]
        there = [rows for rows in read if rows is not None]
        return there if len(there) == len(read) else ()

    def _rows_at(
        self, publication: Mapping[str, Any], table: str, columns: Sequence[str], keys: Keys
    ) -> tuple[int, pa.Table] | None:
        """The newest log time of a publication's evidence, and rows; None where it has none, or files are gone."""
        cut = Cut(lake=self.lake.lake, versions=versions_of(publication), publication=dict(publication))
        try:
            rows = cut.scan(table, list(columns), all_of(pc.field("cluster_id") == self.cluster, keys.expression()))
        except (LakeError, OSError):  # upkeep removed the files of old versions
            return None
        moments = [part["log_time_ms"] for part in publication["evidence"] if part["log_time_ms"] is not None]
        return (max(moments), rows) if moments else None


def publications(lake: Cut) -> pa.Table:
    """Rows of gold.publication, oldest first, none newer than the open cut."""
    up_to_cut = pc.field("run_id") <= lake.publication["run_id"]
    return lake.lake.snapshot(PUBLICATION).rows(where=up_to_cut).sort_by("run_id")


def readable(lake: Cut, table: str) -> ds.Dataset | pa.Table | None:
    """A table at the open cut (the results of checks: as they are now); None when the cut has no such table."""
    if table == RESULTS:
        return lake.lake.snapshot(RESULTS).dataset() if lake.lake.exists(RESULTS) else None
    return publications(lake) if table == PUBLICATION else lake.dataset(table)
