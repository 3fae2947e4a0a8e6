"""The user topic `orders` for tests: a partition with batches of five records each."""

from pathlib import Path

from sharelens.lake.scan import open_lake
from tests.logs.state_logs import ORDERS_ID, START_MS
from tools.log_writer.writer import encode_log, record_columns, write_partition

ORDERS_RECORDS, RECORDS_A_BATCH = 40, 5


def write_orders(logs: Path, partition: int = 0) -> None:
    """Writes a partition of `orders` beside the state partitions of a log directory."""
    stamps = [START_MS + number for number in range(ORDERS_RECORDS)]
    records = record_columns([None] * ORDERS_RECORDS, [b"v"] * ORDERS_RECORDS, stamps)
    log = encode_log(records, records_per_batch=RECORDS_A_BATCH)
    write_partition(logs, "orders", partition, log, topic_id=ORDERS_ID)


def headers(lake: Path) -> list[tuple[int, int, int]]:
    """(partition, first offset, last offset) of the batch headers that a lake holds."""
    rows = open_lake(lake).scan("bronze.topic_batch").to_pylist()
    return sorted((row["partition"], row["base_offset"], row["last_offset"]) for row in rows)
