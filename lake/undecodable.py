"""Records of the state topic that could not be decoded, as losses: what quarantine knows, and the bytes tell."""

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from kafka_log.schemas import LOG_RECORD
from lake.slices import PartitionKey
from state_model.columnar.values import Loss

DECODED_FROM = "bronze.log_record"
"""What stands for the file in the quarantine row of a record that could not be decoded."""
PLACE = ["cluster_id", "topic_id", "partition"]


def undecodable(log_records: ds.Dataset | None, quarantined: pa.Table) -> dict[PartitionKey, list[Loss]]:
    """The losses of each log partition that rows of bronze.quarantine speak of.

    A record whose key can be read is a loss of its own share partition only; one that the broker skips as well is none.
    `log_records`: bronze.log_record, where the records are looked up; None, there is no such table.
    """
    rows = quarantined.filter(pc.field("file") == DECODED_FROM)
    if rows.num_rows == 0 or log_records is None:
        return {}
    from state_model.columnar.decode import decode_share_records, losses_of

    offsets: dict[PartitionKey, list[int]] = {}
    for row in rows.select([*PLACE, "offset"]).to_pylist():
        offsets.setdefault((row["cluster_id"], row["topic_id"], row["partition"]), []).append(row["offset"])
    found = {}
    for key, mine in offsets.items():
        condition = pc.field("offset").isin(mine)
        for name, value in zip(PLACE, key, strict=True):
            condition &= pc.field(name) == value
        records = log_records.to_table(columns=LOG_RECORD.names, filter=condition).cast(LOG_RECORD).sort_by("offset")
        found[key] = [
            loss
            for batch in records.combine_chunks().to_batches()
            for loss in losses_of(
                decode_share_records(batch, log_time_ms=batch.column("timestamp_ms").to_numpy()).problems
            )
        ]
    return found
