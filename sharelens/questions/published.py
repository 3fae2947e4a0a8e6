"""The publications of a lake up to the cut that is open: the tables that no publication lists."""

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from lake import delta
from lake.gates import RESULTS
from lake.scan import PUBLICATION, Lake, dataset_at


def publications(lake: Lake) -> pa.Table:
    """Rows of gold.publication, oldest first, none newer than the open cut."""
    known = pc.field("run_id") <= lake.publication["run_id"]
    return dataset_at(lake.path, PUBLICATION).to_table(filter=known).sort_by("run_id")


def readable(lake: Lake, table: str) -> ds.Dataset | pa.Table | None:
    """A table at the open cut (the results of checks: as they are now); None when the cut has no such table."""
    if table == RESULTS:
        return dataset_at(lake.path, RESULTS) if delta.exists(delta.table_path(lake.path, RESULTS)) else None
    return publications(lake) if table == PUBLICATION else lake.dataset(table)
