"""The publications of a lake up to the cut that is open: the one table that no publication can list."""

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from lake.scan import PUBLICATION, Lake, dataset_at


def publications(lake: Lake) -> pa.Table:
    """Rows of gold.publication, oldest first, none newer than the open cut."""
    known = pc.field("run_id") <= lake.publication["run_id"]
    return dataset_at(lake.path, PUBLICATION).to_table(filter=known).sort_by("run_id")


def readable(lake: Lake, table: str) -> ds.Dataset | pa.Table | None:
    """A table at the open cut; None when the cut has no such table."""
    return publications(lake) if table == PUBLICATION else lake.dataset(table)
