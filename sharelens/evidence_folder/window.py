"""The raw records of a window: which lie in it, which of them are the group's, and where it lies in each log."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.conditions import filter_rows
from sharelens.evidence.decoding import decode_rows
from sharelens.evidence.group_decoding import decode_groups
from sharelens.evidence.log_time import Ints
from sharelens.evidence_folder.raw import Piece, RawLog, undecodable, without_source
from sharelens.evidence_folder.schemas import DECODED, GROUP_LOG_RECORD, QUARANTINED, RAW, RECORD
from sharelens.kafka_log.schemas import PROBLEM
from sharelens.tables.where import Keys
from state_model.columnar.decode import key_mask
from state_model.columnar.keys import SHARE_PARTITION_KEY

NOWHERE = (1 << 63) - 1
RENAMED = {"topic_id": "log_topic_id", "partition": "state_partition", "offset": "log_offset"}


@dataclass(slots=True, kw_only=True)
class LogWindow:
    """Where a window lies in a state partition: log offsets strictly between `before` and `after`.

    `first_in`, `last_in`: of the records in it, None when there is none. `problems`: what could not be read.
    """

    before: int = -1
    after: int = NOWHERE
    first_in: int | None = None
    last_in: int | None = None
    record_count: int = 0
    problems: list[pa.Table] = field(default_factory=list)

    def reaches(self, first: int | None, last: int | None) -> bool:
        """Whether offsets (inclusive) may lie in the window; unknown ones may."""
        return (first is None or first < self.after) and (last is None or last > self.before)

    def take(self, piece: Piece, from_ms: int, to_ms: int) -> tuple[int, int]:
        """Notes a piece; the first and the end (exclusive) of its rows that lie in the window."""
        self.problems.append(piece.problems)
        if piece.left_out is not None:
            first, last = piece.left_out
            if int(piece.times[0]) < from_ms:
                self.before = max(self.before, last)
            else:
                self.after = min(self.after, first)
            return 0, 0
        offsets = piece.records.column("offset").to_numpy()
        begin, end = (int(np.searchsorted(piece.times, moment, "left")) for moment in (from_ms, to_ms))
        if begin:
            self.before = max(self.before, int(offsets[begin - 1]))
        if end < len(offsets):
            self.after = min(self.after, int(offsets[end]))
        if begin < end:
            self.first_in = int(offsets[begin]) if self.first_in is None else self.first_in
            self.last_in = int(offsets[end - 1])
            self.record_count += end - begin
        return begin, end


def state_records(
    raw: RawLog, number: int, group_id: str, keys: Keys, window_ms: tuple[int, int], window: LogWindow
) -> Iterator[pa.Table]:
    """RECORD rows of a state partition that lie in the window and concern `keys`, in offset order.

    Records of unknown share partitions concern all share partitions. `window` is filled on the way.
    """
    from_ms, to_ms = window_ms
    for piece in raw.state(number, from_ms, to_ms):
        begin, end = window.take(piece, from_ms, to_ms)
        if begin == end:
            continue
        records = piece.records.slice(begin, end - begin)
        times = piece.times[begin:end]
        window.problems.append(undecodable(records, times, group_id))
        for batch in records.to_batches():
            yield _decoded(batch, times[: batch.num_rows], group_id, keys)
            times = times[batch.num_rows :]


def _decoded(batch: pa.RecordBatch, times: Ints, group_id: str, keys: Keys) -> pa.Table:
    """The rows of `keys`, with bytes and decoded fields."""
    mask = key_mask(batch, group_id=group_id)
    batch, times = batch.filter(mask), times[mask.to_numpy(zero_copy_only=False)]
    bodies = pa.Table.from_batches([batch])
    decoded = decode_rows(bodies, times)
    records = filter_rows(decoded.records, keys.expression()).select(["log_offset", *DECODED.names])
    rows = pa.concat_tables([records, _undecodable(decoded.problems, keys)], promote_options="default")
    rows = rows.sort_by("log_offset")
    bodies = bodies.append_column("log_time_ms", pa.array(times))
    at = pc.index_in(rows.column("log_offset"), value_set=bodies.column("offset").combine_chunks())
    bodies = bodies.take(at)
    columns = {name: bodies.column(_bronze_name(name)) for name in RAW.names}
    columns |= {name: rows.column(name) for name in (*DECODED.names, "undecodable")}
    return pa.table({name: columns[name] for name in RECORD.names})


def _undecodable(problems: pa.Table, keys: Keys) -> pa.Table:
    """The problems (DECODE_PROBLEM) of `keys`, and problems of unknown share partitions."""
    condition = keys.expression()
    if condition is not None:
        problems = problems.filter(condition | pc.field("group_id").is_null())
    place = ["log_offset", *SHARE_PARTITION_KEY]
    return problems.select([*place, "reason"]).rename_columns([*place, "undecodable"])


def _bronze_name(name: str) -> str:
    """The column of LOG_RECORD behind a column of RAW."""
    back = {new: old for old, new in RENAMED.items()} | {"log_leader_epoch": "leader_epoch"}
    return back.get(name, name)


def group_log_records(
    raw: RawLog, group_id: str, from_ms: int, to_ms: int, problems: list[pa.Table]
) -> Iterator[pa.Table]:
    """GROUP_LOG_RECORD rows of the group by partition of __consumer_offsets, then offset; `problems` is filled.

    The window is about the records' own timestamps: the group coordinator's log has no state to be cut.
    """
    for piece in raw.group_log():
        problems.append(piece.problems)
        timestamps = piece.records.column("timestamp_ms")
        records = piece.records.filter(pc.and_(pc.greater_equal(timestamps, from_ms), pc.less(timestamps, to_ms)))
        if records.num_rows == 0:
            continue
        decoded = decode_groups(records)
        problems.append(decoded.problems)
        records_of_group = decoded.records.filter(pc.field("group_id") == group_id)
        bodies = records.take(
            pc.index_in(records_of_group.column("log_offset"), value_set=records.column("offset").combine_chunks())
        )
        columns = {name: records_of_group.column(name) for name in records_of_group.column_names}
        columns |= {name: bodies.column(name) for name in ("key", "value", "base_offset", "timestamp_type")}
        yield pa.table({name: columns[name] for name in GROUP_LOG_RECORD.names})


def quarantined(problems: list[pa.Table], windows: dict[int, LogWindow], state_topic: str) -> pa.Table:
    """QUARANTINED rows: what could not be read or decoded and may lie in the window, without repetition.

    Of copies of one partition each names the same thing; which copy it was stands in no row.
    """
    rows = []
    for row in without_source(pa.concat_tables([PROBLEM.empty_table(), *problems])):
        window = windows.get(row["partition"])
        if row["topic"] == state_topic and window is not None and not window.reaches(row["offset"], row["last_offset"]):
            continue
        rows.append(row)
    table = pa.Table.from_pylist(rows, schema=QUARANTINED)
    return table.group_by(table.column_names, use_threads=False).aggregate([])
