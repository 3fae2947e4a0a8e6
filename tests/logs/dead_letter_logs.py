"""Dead letters for tests: headers, rows of DLQ_RECORD in a readable notation, partitions in a log directory."""

import re
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from sharelens.kafka_log.dead_letter_records import CAUSES, DLQ_RECORD, KEYS, NAMES
from sharelens.kafka_log.schemas import HEADER
from tests.logs.state_logs import START_MS
from tools.log_writer.writer import encode_batch

DLQ_TOPIC, DLQ_ID = "dlq.orders", "AAAAAAAAAAAAAAAAAAAADQ"
MESSAGES = {cause: message for message, cause in CAUSES.items()}
LINE = re.compile(
    r"(?P<dlq_partition>\d+)@(?P<dlq_offset>\d+) at (?P<timestamp_ms>-?\d+): (?P<group_id>\w+) (?P<topic>\S+)-"
    r"(?P<partition>\d+) (?P<offset>\d+) (?P<cause>\w+) (?P<delivery_count>\d+)"
)
Headers = list[tuple[str, bytes | None]]
Record = tuple[bytes | None, bytes | None, Headers]
"""Key, value and headers."""


def letter_headers(offset: int, **changed: object) -> Headers:
    """The six headers of a dead letter of `orders`-0 that group g rejected; `delivery_count` stands for the dotted one.

    A value of bytes stands as it is.
    """
    values = {"topic": "orders", "partition": 0, "offset": offset, "group": "g", "delivery.count": 1}
    values["message"] = MESSAGES["rejected"]
    values |= {name.replace("delivery_count", "delivery.count"): value for name, value in changed.items()}
    return [
        (key, value if isinstance(value, bytes) else str(value).encode())
        for key, value in zip(KEYS, (values[name] for name in NAMES), strict=True)
    ]


def write_letters(
    logs: Path, records: Sequence[Record], topic: str = DLQ_TOPIC, partition: int = 0, topic_id: str = DLQ_ID
) -> Path:
    """A partition of a topic for dead letters: one batch a record, 10 ms apart."""
    folder = logs / f"{topic}-{partition}"
    folder.mkdir(parents=True, exist_ok=True)
    batches = [
        encode_batch(
            pa.RecordBatch.from_pydict(
                {
                    "timestamp_ms": pa.array([START_MS + 10 * number], pa.int64()),
                    "key": pa.array([key], pa.binary()),
                    "value": pa.array([value], pa.binary()),
                    "headers": pa.array(
                        [[{"key": name, "value": content} for name, content in headers]], pa.list_(HEADER)
                    ),
                }
            ),
            base_offset=number,
        )
        for number, (key, value, headers) in enumerate(records)
    ]
    (folder / f"{0:020d}.log").write_bytes(b"".join(batches))
    (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}", encoding="ascii")
    return folder


def letter_rows(text: str) -> pa.Table:
    """DLQ_RECORD rows from lines `PARTITION@OFFSET at TIME: GROUP TOPIC-PARTITION OFFSET CAUSE COUNT`."""
    rows = []
    for line in filter(None, map(str.strip, text.splitlines())):
        match = LINE.fullmatch(line)
        assert match is not None, line
        row: dict[str, object] = {
            name: value if name in ("group_id", "topic", "cause") else int(value)
            for name, value in match.groupdict().items()
        }
        rows.append(
            row
            | {
                "dlq_topic": DLQ_TOPIC,
                "dlq_topic_id": DLQ_ID,
                "timestamp_type": "CreateTime",
                "message": MESSAGES.get(match["cause"], "?"),
                "value_size_bytes": 1,
                "below_log_start": False,
                "uncommitted": False,
            }
        )
    return pa.Table.from_pylist(rows, schema=DLQ_RECORD)


def write_cut_letters(logs: Path, records: Sequence[Record]) -> None:
    """The same as `write_letters`, where Kafka has deleted what came before: the log begins with offset 1."""
    write_letters(logs, records)
    checkpoint = f"0\n1\n{DLQ_TOPIC} 0 1\n"
    (logs / "log-start-offset-checkpoint").write_text(checkpoint, encoding="ascii")
