"""Schemas of tables that no other package defines: the books of a lake, its publications and its checks."""

import pyarrow as pa

from state_model.columnar import schemas as state_schemas
from state_model.columnar.schemas import column

GAP = pa.struct(
    [pa.field("first_offset", pa.int64()), pa.field("last_offset", pa.int64()), pa.field("reason", pa.string())]
)
LEADER_EPOCH = pa.struct([pa.field("leader_epoch", pa.int32()), pa.field("start_offset", pa.int64())])
INGEST_EXTENT = pa.schema(
    [
        column(
            "status",
            pa.string(),
            "planned (the run has begun), taken (the run has ingested it), or dropped by retention",
            nullable=False,
        ),
        column("source_id", pa.string(), "source: node id and directory", nullable=False),
        column("node_id", pa.string(), "broker's node id; null when meta.properties is missing"),
        column("source_uri", pa.string(), "partition directory", nullable=False),
        column("topic", pa.string(), "topic name", nullable=False),
        column("topic_id", pa.string(), "topic id, zero uuid when unknown", nullable=False),
        column("partition", pa.int32(), "partition", nullable=False),
        column(
            "content",
            pa.string(),
            "log_record, topic_batch or metadata_record: the kind of rows; else the stage that starts over, or the "
            "dropped tables",
            nullable=False,
        ),
        column("from_offset", pa.int64(), "first offset of the extent", nullable=False),
        column("end_offset_exclusive", pa.int64(), "first offset after the extent", nullable=False),
        column("log_start_offset", pa.int64(), "log start offset, the largest of the copies", nullable=False),
        column(
            "log_start_known",
            pa.bool_(),
            "log_start_offset is from a checkpoint; else inferred from the first segment",
            nullable=False,
        ),
        column(
            "committed_end",
            pa.int64(),
            "high watermark of the checkpoint, the largest of the copies; null = no checkpoint",
        ),
        column("held_back", pa.int64(), "offsets at or above the high watermark, left to the next run", nullable=False),
        column(
            "unreadable_bytes",
            pa.int64(),
            "bytes behind the last complete batch of the copies, such as an append in progress; null = not counted",
        ),
        column("gaps", pa.list_(GAP), "offset ranges of the extent that the evidence lacks", nullable=False),
        column(
            "rebuild",
            pa.bool_(),
            "the extent has offsets below earlier ones: tables derived from the partition are recomputed",
            nullable=False,
        ),
        column("superseded_from", pa.int64(), "earlier rows from this offset on were moved to quarantine; null = none"),
        column(
            "leader_epochs",
            pa.list_(LEADER_EPOCH),
            "leader epochs below the end of the extent that no earlier one has, with their start offsets, by the "
            "source's leader-epoch-checkpoint; null = not kept by the version that wrote the row",
        ),
        column("record_count", pa.int64(), "rows ingested", nullable=False),
        column(
            "size_bytes", pa.int64(), "bytes of keys and values (records) or of the batches (headers)", nullable=False
        ),
        column(
            "sha256",
            pa.string(),
            "SHA-256 over the SHA-256 of all splits, or of the rows that upkeep joined; null while planned",
        ),
        column("log_time_ms", pa.int64(), "running maximum of record timestamps at the end; null = no record"),
        column("until_ms", pa.int64(), "--until of the run; null = none"),
        column("read_until_ms", pa.int64(), "until when the log directories were read; null: unknown"),
        column("written_at_ms", pa.int64(), "wall clock of the writer", nullable=False),
        column("sharelens_version", pa.string(), "version of sharelens", nullable=False),
        column("user", pa.string(), "user of the run", nullable=False),
        column("host", pa.string(), "host of the run", nullable=False),
    ]
)

TOPIC_START = pa.schema(
    [
        *state_schemas.LOG_POSITION[:2],
        *state_schemas.SHARE_PARTITION[1:],
        column(
            "start_offset",
            pa.int64(),
            "smallest start offset of all groups and lives: no share group read records below it",
            nullable=False,
        ),
    ]
)

PUBLISHED_TABLE = pa.struct([pa.field("table", pa.string()), pa.field("version", pa.int64())])
PUBLISHED_CONTENT = pa.struct(
    [
        pa.field("table", pa.string()),
        pa.field("files", pa.int64()),
        pa.field("rows", pa.int64()),
        pa.field("digest", pa.string()),
    ]
)
EVIDENCE = pa.struct(
    [
        pa.field("cluster_id", pa.string()),
        pa.field("log_topic_id", pa.string()),
        pa.field("state_partition", pa.int32()),
        pa.field("first_log_offset", pa.int64()),
        pa.field("end_log_offset_exclusive", pa.int64()),
        pa.field("first_log_time_ms", pa.int64()),
        pa.field("log_time_ms", pa.int64()),
        pa.field("held_back", pa.int64()),
    ]
)
PUBLICATION = pa.schema(
    [
        column("published_at_ms", pa.int64(), "wall clock", nullable=False),
        column("tables", pa.list_(PUBLISHED_TABLE), "version of every table in this cut", nullable=False),
        column(
            "contents",
            pa.list_(PUBLISHED_CONTENT),
            "files and rows of every table, and a digest of the names and sizes of these files, which readers compare; "
            "null in older cuts",
        ),
        column("evidence", pa.list_(EVIDENCE), "log range of every state partition", nullable=False),
        column("sharelens_version", pa.string(), "version of sharelens", nullable=False),
    ]
)

QUALITY_RESULT = pa.schema(
    [
        column("check_id", pa.int64(), "number of the check", nullable=False),
        column("checked_ms", pa.int64(), "wall clock", nullable=False),
        column("table_name", pa.string(), "checked table", nullable=False),
        column("version", pa.int64(), "version of that table", nullable=False),
        column("slice", pa.string(), "runs whose rows were checked", nullable=False),
        column("slice_rows", pa.int64(), "number of checked rows", nullable=False),
        column("level", pa.string(), "blocking or warning", nullable=False),
        column("kind", pa.string(), "shape, nullability, keys, ranges, references, stage, freshness or volume"),
        column("expectation", pa.string(), "name of the expectation, as the reference page lists it", nullable=False),
        column("expectation_type", pa.string(), "class of Great Expectations", nullable=False),
        column("column_name", pa.string(), "column or counted fact of the expectation"),
        column("success", pa.bool_(), "true = met; null = not evaluated, see details"),
        column("unexpected_count", pa.int64(), "values that violate the expectation", nullable=False),
        column("observed", pa.string(), "observed value", nullable=False),
        column("details", pa.string(), "explanation in one line; may be empty", nullable=False),
    ]
)
