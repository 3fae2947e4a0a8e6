"""The kind of offset at one place of a user topic, by its batch headers.

offsets   0-9 data of producer 7 | 10 ABORT of producer 7 | 11-14 no batch | 15-19 data | end 20
          aborted                  control                  absent          record       (unknown)
"""

from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.measures.topics.extents import BATCH_COLUMNS
from sharelens.measures.topics.headers import ABORTED, ABSENT, CONTROL

RECORD, OPEN_TRANSACTION = "record", "open_transaction"
MARKERS = pa.array(["ABORT", "COMMIT"])


def kind_of_offset(offset: int, batches: Iterable[pa.Table]) -> str | None:
    """RECORD, CONTROL, ABORTED, OPEN_TRANSACTION or ABSENT; None when no header reaches the offset.

    `batches`: BATCH_COLUMNS rows of one user partition in offset order, from the offset on or from below it. No more
    of them are read than it needs. Compaction may have removed a record inside a batch: the header does not show that.
    """
    producer: int | None = None
    for table in batches:
        rows = table.select(BATCH_COLUMNS)
        rows = rows.filter(pc.greater_equal(rows.column("last_offset"), offset))
        if rows.num_rows == 0:
            continue
        if producer is None:
            batch = rows.slice(0, 1).to_pylist()[0]
            if batch["base_offset"] > offset:
                return ABSENT
            if batch["control_type"] is not None:
                return CONTROL
            if not batch["transactional"]:
                return RECORD
            producer = batch["producer_id"]
        ends = pc.is_in(rows.column("control_type"), value_set=MARKERS)
        marks = rows.filter(pc.and_(ends, pc.equal(rows.column("producer_id"), producer)))
        if marks.num_rows:
            return ABORTED if marks.column("control_type")[0].as_py() == "ABORT" else RECORD
    return None if producer is None else OPEN_TRANSACTION
