"""The publications of a lake up to the cut that is open: the tables that no publication lists."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from sharelens.lake.gates import RESULTS
from sharelens.lake.scan import PUBLICATION, Cut


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedLake:
    """A cluster of a lake at its published cut."""

    lake: Cut
    cluster: str


def publications(lake: Cut) -> pa.Table:
    """Rows of gold.publication, oldest first, none newer than the open cut."""
    up_to_cut = pc.field("run_id") <= lake.publication["run_id"]
    return lake.lake.snapshot(PUBLICATION).rows(where=up_to_cut).sort_by("run_id")


def readable(lake: Cut, table: str) -> ds.Dataset | pa.Table | None:
    """A table at the open cut (the results of checks: as they are now); None when the cut has no such table."""
    if table == RESULTS:
        return lake.lake.snapshot(RESULTS).dataset() if lake.lake.exists(RESULTS) else None
    return publications(lake) if table == PUBLICATION else lake.dataset(table)
