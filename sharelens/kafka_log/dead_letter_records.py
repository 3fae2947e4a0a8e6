"""Dead letters of share groups (KIP-1191, Kafka 4.4): their topics, and the fields of their headers.

The headers `__dlq.errors.*` mark a dead letter, not the name of its topic: a topic chosen by name may have other
records too, and those are ignored. Key and value are payloads; only their size and SHA-256 are kept, unless
`--dlq-values keep` asks for them. No other header of the record is kept.
"""

import hashlib
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.kafka_log.arrow import booleans, integers
from sharelens.kafka_log.schemas import HEADER, LOG_RECORD
from state_model.columnar.schemas import column

DEFAULT_PREFIX: Final = "dlq."
"""Kafka's default of errors.deadletterqueue.topic.name.prefix."""
INTERNAL: Final = "__"
"""No topic whose name begins so takes dead letters."""
NAMES: Final = ("topic", "partition", "offset", "group", "delivery.count", "message")
KEYS: Final = tuple(f"__dlq.errors.{name}" for name in NAMES)
LONGEST_BYTES: Final = {
    "topic": 249, "partition": 10, "offset": 19, "group": 32_767, "delivery.count": 5, "message": 1_000,
}  # fmt: skip
LARGEST: Final = {"partition": (1 << 31) - 1, "offset": (1 << 63) - 1, "delivery.count": (1 << 15) - 1}
DECIMAL: Final = r"^(0|[1-9][0-9]*)$"
REJECTED, DELIVERY_LIMIT, UNKNOWN = "rejected", "delivery_limit", "unknown"
CAUSES: Final = {
    "Offset rejected by client.": REJECTED,
    "Offset delivery count exceeded the threshold.": DELIVERY_LIMIT,
}
FAULTS: Final = ("", "missing", "duplicated", "null", "too_long", "not_utf8", "not_a_number", "out_of_range")
"""Faults of a header by code; the first that applies counts."""
_VALID, _MISSING, _DUPLICATED, _NULL, _TOO_LONG, _NOT_UTF8, _NOT_A_NUMBER, _OUT_OF_RANGE = range(8)
Codes = npt.NDArray[np.int8]

DIGESTS = pa.schema(
    [
        column("key_size_bytes", pa.int64(), "size of a dead letter's key; null = no key"),
        column("key_sha256", pa.string(), "SHA-256 of a dead letter's key, in hex; null = no key"),
        column("value_size_bytes", pa.int64(), "size of a dead letter's value; null = no value"),
        column("value_sha256", pa.string(), "SHA-256 of a dead letter's value, in hex; null = no value"),
    ]
)
LETTER = pa.schema([*LOG_RECORD, *DIGESTS])
"""LOG_RECORD with the digests of dead letters; their key and value are null unless `keep_values`."""

DLQ_RECORD = pa.schema(
    [
        column("dlq_topic", pa.string(), "topic that holds the dead letter", nullable=False),
        column("dlq_topic_id", pa.string(), "id of that topic, 22 characters; zero uuid when unknown", nullable=False),
        column("dlq_partition", pa.int32(), "partition of that topic", nullable=False),
        column("dlq_offset", pa.int64(), "offset of the dead letter", nullable=False),
        column("timestamp_ms", pa.int64(), "timestamp of the dead letter (a broker's clock)", nullable=False),
        column("timestamp_type", pa.string(), "CreateTime or LogAppendTime", nullable=False),
        column("group_id", pa.string(), "share group that archived the record; null = see header_problem"),
        column("topic", pa.string(), "topic of the record: its name, or its id where the broker had no name"),
        column("partition", pa.int32(), "partition of the record"),
        column("offset", pa.int64(), "offset of the record"),
        column("delivery_count", pa.int16(), "delivery count of the record"),
        column("cause", pa.string(), "rejected or delivery_limit, by the message; unknown = another message"),
        column("message", pa.string(), "message of the broker about the cause"),
        column("header_problem", pa.string(), "headers that can't be read, each with the reason; null = none"),
        *DIGESTS,
        column("below_log_start", pa.bool_(), "lies below the log start offset", nullable=False),
        column("uncommitted", pa.bool_(), "was at or above the high watermark when the run read it", nullable=False),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterTopics:
    """Topics that may hold dead letters: those named, and those whose name begins with the prefix (None: no more)."""

    names: frozenset[str] = field(default_factory=frozenset)
    prefix: str | None = DEFAULT_PREFIX

    def takes(self, topic: str) -> bool:
        """Whether the topic is one of them; Kafka's internal topics never are."""
        if topic.startswith(INTERNAL):
            return False
        return topic in self.names or (self.prefix is not None and topic.startswith(self.prefix))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Headers:
    """The headers of rows that are among KEYS: `row` they belong to, `name` as a place in KEYS, `value` (binary)."""

    count: int
    row: npt.NDArray[np.int64]
    name: npt.NDArray[np.int64]
    entries: pa.Array

    @classmethod
    def of(cls, lists: pa.Array) -> "_Headers":
        """The dead-letter headers of a column of header lists."""
        counts = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
        entries = pc.list_flatten(lists)
        key_index = pc.index_in(pc.struct_field(entries, "key"), value_set=pa.array(KEYS))
        is_known = pc.is_valid(key_index)
        mask = is_known.to_numpy(zero_copy_only=False)
        return cls(
            count=len(lists),
            row=np.repeat(np.arange(len(lists)), counts)[mask],
            name=key_index.filter(is_known).to_numpy().astype(np.int64),
            entries=entries.filter(is_known),
        )

    def lists(self) -> pa.Array:
        """These headers alone, a list a row."""
        ends = np.cumsum(np.bincount(self.row, minlength=self.count))
        offsets = np.concatenate([[0], ends]).astype(np.int32)
        return pa.ListArray.from_arrays(integers(offsets), self.entries, type=pa.list_(HEADER))


def letters_of(records: pa.RecordBatch, *, keep_values: bool) -> pa.RecordBatch:
    """The dead letters (LETTER) among LOG_RECORD rows: records with any of the six headers, even a broken header.

    Key and value are null unless `keep_values`; of the headers only the six stay.
    """
    headers = _Headers.of(records.column("headers"))
    is_letter = np.zeros(records.num_rows, np.bool_)
    is_letter[headers.row] = True
    is_letter &= ~records.column("is_control").to_numpy(zero_copy_only=False)
    columns = dict(zip(records.schema.names, records.columns, strict=True)) | {"headers": headers.lists()}
    letters = pa.RecordBatch.from_arrays([columns[name] for name in LOG_RECORD.names], schema=LOG_RECORD)
    letters = letters.filter(booleans(is_letter))
    columns = dict(zip(LOG_RECORD.names, letters.columns, strict=True))
    for name in ("key", "value"):
        columns[f"{name}_size_bytes"] = pc.binary_length(columns[name]).cast(pa.int64())
        columns[f"{name}_sha256"] = _digests(columns[name])
        if not keep_values:
            columns[name] = pa.nulls(letters.num_rows, pa.binary())
    return pa.RecordBatch.from_arrays([columns[name] for name in LETTER.names], schema=LETTER)


def without_digests(records: pa.RecordBatch) -> pa.RecordBatch:
    """LOG_RECORD rows of an internal topic as LETTER rows: bytes untouched, no digests."""
    no_digests = [pa.nulls(records.num_rows, field.type) for field in DIGESTS]
    return pa.RecordBatch.from_arrays([*records.columns, *no_digests], schema=LETTER)


def _digests(values: pa.Array) -> pa.Array:
    texts = [None if value is None else hashlib.sha256(value).hexdigest() for value in values.to_pylist()]
    return pa.array(texts, pa.string())


def typed_letters(rows: pa.Table) -> pa.Table:
    """DLQ_RECORD rows of LETTER rows, in their order.

    A header that is missing, doubled, null, too long, no UTF-8, no number or out of range gives a null, and
    `header_problem` names it: `offset not_a_number; group missing`.
    """
    letters = rows.combine_chunks()
    if letters.num_rows == 0:
        return DLQ_RECORD.empty_table()
    headers = _Headers.of(letters.column("headers").combine_chunks())
    values_of: dict[str, pa.Array] = {}
    faults: list[Codes] = []
    for index, name in enumerate(NAMES):
        values, codes = _values(headers, index, LONGEST_BYTES[name])
        values = _as_text(values, codes)
        if name in LARGEST:
            values = _as_numbers(values, codes, LARGEST[name])
        values_of[name] = values
        faults.append(codes)
    columns = {name: letters.column(name) for name in (*DIGESTS.names, "timestamp_ms", "timestamp_type")} | {
        "dlq_topic": letters.column("topic"),
        "dlq_topic_id": letters.column("topic_id"),
        "dlq_partition": letters.column("partition"),
        "dlq_offset": letters.column("offset"),
        "group_id": values_of["group"],
        "topic": values_of["topic"],
        "partition": values_of["partition"],
        "offset": values_of["offset"],
        "delivery_count": values_of["delivery.count"],
        "cause": _causes(values_of["message"]),
        "message": values_of["message"],
        "header_problem": _problems(faults),
        "below_log_start": letters.column("below_log_start"),
        "uncommitted": letters.column("uncommitted"),
    }
    return pa.table({name: columns[name] for name in DLQ_RECORD.names}).cast(DLQ_RECORD)


def _values(headers: _Headers, name: int, longest: int) -> tuple[pa.Array, Codes]:
    """The value of one header in each row, null where a code says why."""
    entries = np.flatnonzero(headers.name == name)
    rows = headers.row[entries]
    counts = np.bincount(rows, minlength=headers.count)
    codes = np.select([counts == 0, counts > 1], [_MISSING, _DUPLICATED], _VALID).astype(np.int8)
    entry_of = np.zeros(headers.count, np.int64)
    entry_of[rows] = entries
    values = pc.struct_field(headers.entries, "value").take(pa.array(entry_of, mask=codes != _VALID))
    lengths = pc.fill_null(pc.binary_length(values), -1).to_numpy(zero_copy_only=False)
    codes[(codes == _VALID) & (lengths < 0)] = _NULL
    codes[lengths > longest] = _TOO_LONG
    return _where(values, codes), codes


def _where(values: pa.Array, codes: Codes) -> pa.Array:
    """The valid values, null for the others."""
    return pc.if_else(booleans(codes == _VALID), values, pa.scalar(None, values.type))


def _as_text(values: pa.Array, codes: Codes) -> pa.Array:
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        pass
    texts: list[str | None] = []
    for row, value in enumerate(values.to_pylist()):
        try:
            texts.append(None if value is None else value.decode("utf-8"))
        except UnicodeDecodeError:
            texts.append(None)
            codes[row] = _NOT_UTF8
    return pa.array(texts, pa.string())


def _as_numbers(texts: pa.Array, codes: Codes, largest: int) -> pa.Array:
    """Decimal numbers as Java writes them, 0 to `largest`."""
    decimal = pc.fill_null(pc.match_substring_regex(texts, DECIMAL), False).to_numpy(zero_copy_only=False)
    codes[(codes == _VALID) & ~decimal] = _NOT_A_NUMBER
    limit = str(largest)
    as_long = pc.equal(pc.utf8_length(texts), len(limit))
    too_large = pc.or_(pc.greater(pc.utf8_length(texts), len(limit)), pc.and_(as_long, pc.greater(texts, limit)))
    codes[(codes == _VALID) & pc.fill_null(too_large, False).to_numpy(zero_copy_only=False)] = _OUT_OF_RANGE
    return _where(texts, codes).cast(pa.int64())


def _causes(messages: pa.Array) -> pa.Array:
    cause_indices = pc.index_in(messages, value_set=pa.array(list(CAUSES), pa.string()))
    causes = pa.array([*CAUSES.values()], pa.string()).take(cause_indices)
    return pc.if_else(pc.is_valid(messages), pc.fill_null(causes, UNKNOWN), pa.scalar(None, pa.string()))


def _problems(faults: list[Codes]) -> pa.Array:
    """One text for each row with a fault; null for the others."""
    table = np.stack(faults, axis=1)
    texts = np.full(len(table), None, dtype=object)
    for row in np.flatnonzero(table.any(axis=1)).tolist():
        problems = [f"{NAMES[index]} {FAULTS[code]}" for index, code in enumerate(table[row].tolist()) if code]
        texts[row] = "; ".join(problems)
    return pa.array(texts.tolist(), pa.string())
