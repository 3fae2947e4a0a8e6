"""The bytes behind an answer: records of the internal topics in offset order, from segments or from bronze.

Both ways give the same rows: LOG_RECORD rows of the newest incarnation of `__share_group_state`, those of
`__consumer_offsets`, and what could not be read.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.conditions import all_of
from sharelens.evidence.decoding import decode_rows, problem_rows
from sharelens.evidence.log_time import NO_LOG_TIME, Ints, log_time_after, log_times
from sharelens.evidence.reading import read_whole
from sharelens.evidence.schemas import DECODED_FROM
from sharelens.kafka_log.reader import Chunk
from sharelens.kafka_log.schemas import LOG_RECORD, PROBLEM
from sharelens.lake.slices import BRONZE, EVERY_RUN, Slice, read_unit, slices, units
from sharelens.questions.answers.shape import FIRST_OFFSET_NAMES, in_answer
from sharelens.tables.lakes.published import PublishedLake
from sharelens.tables.logs.directories import LogDirectories
from sharelens.tables.port import Tables
from state_model.topics import OFFSETS_TOPIC, STATE_TOPIC

PROBLEM_COLUMNS = (
    "topic",
    "topic_id",
    "partition",
    "file",
    "position",
    "first_offset",
    "last_offset",
    "reason",
    "detail",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """LOG_RECORD rows of one partition in offset order, the log time of each, and PROBLEM rows met on the way.

    A piece of which nothing is wanted may have no rows, but the `first_offset`, `last_offset` and `log_time_ms` (at
    its end) of those that were left out.
    """

    records: pa.Table
    times: Ints
    problems: pa.Table
    left_out: tuple[int, int] | None = None


class RawLog(Protocol):
    """The internal topics of one evidence, newest incarnation of the state topic alone."""

    def state_partitions(self) -> Sequence[int]:
        """Numbers of the state partitions that hold a record, ascending."""

    def state(self, number: int, from_ms: int, to_ms: int) -> Iterator[Piece]:
        """A state partition in offset order; pieces wholly before `from_ms` or from `to_ms` on may be left out."""

    def group_log(self) -> Iterator[Piece]:
        """All of __consumer_offsets, by partition, then offset; log times are those of its partitions."""

    def problems(self) -> pa.Table:
        """PROBLEM rows of the two topics that no piece has with it, in any order."""


def open_raw(evidence: Tables) -> RawLog:
    """The raw log behind an evidence."""
    match evidence.origin:
        case LogDirectories() as origin:
            return RawDirectories(evidence, origin)
        case origin:
            return RawLake(evidence, origin)


class RawDirectories:
    """Records from segments."""

    def __init__(self, evidence: Tables, origin: LogDirectories) -> None:
        self._evidence, self._origin = evidence, origin
        self._logs = {log.number: log for log in origin.logs}

    def state_partitions(self) -> Sequence[int]:
        """Those that the evidence covers."""
        return [part.state_partition for part in self._evidence.cover()]

    def state(self, number: int, from_ms: int, to_ms: int) -> Iterator[Piece]:
        """Reads the partition through."""
        return _timed(self._logs[number].read_raw())

    def group_log(self) -> Iterator[Piece]:
        """Reads every partition through."""
        uncommitted = self._origin.source.include_uncommitted
        for partition in self._origin.united:
            if partition.topic == OFFSETS_TOPIC:
                yield from _timed(read_whole(partition, include_uncommitted=uncommitted))

    def problems(self) -> pa.Table:
        """None: each comes with its piece."""
        return PROBLEM.empty_table()


def _timed(chunks: Iterable[Chunk]) -> Iterator[Piece]:
    """The chunks of one partition with their log times."""
    log_time_ms = NO_LOG_TIME
    for chunk in chunks:
        records = pa.Table.from_batches([chunk.records], schema=LOG_RECORD)
        times = _times(records, log_time_ms)
        log_time_ms = log_time_after(times, log_time_ms)
        yield Piece(records=records, times=times, problems=pa.Table.from_batches([chunk.problems]))


class RawLake:
    """Records from bronze.log_record, row group by row group."""

    def __init__(self, evidence: Tables, origin: PublishedLake) -> None:
        self._evidence = evidence
        self._lake = origin.lake
        self._topic_ids = {part.state_partition: part.log_topic_id for part in evidence.cover()}

    def state_partitions(self) -> Sequence[int]:
        """Those of the published cut."""
        return sorted(self._topic_ids)

    def state(self, number: int, from_ms: int, to_ms: int) -> Iterator[Piece]:
        """Row groups that reach into the window; of the others the footers alone."""
        key = (str(self._evidence.cluster_id), self._topic_ids[number], number)
        running = NO_LOG_TIME
        for unit in self._units(key):
            newest = max(running, *(piece.newest_ms for piece in unit))
            if newest < from_ms or running >= to_ms:
                ends = min(piece.first_offset for piece in unit), max(piece.last_offset for piece in unit)
                times = np.array([newest if newest < from_ms else running], np.int64)
                yield Piece(
                    records=LOG_RECORD.empty_table(), times=times, problems=PROBLEM.empty_table(), left_out=ends
                )
            else:
                records = read_unit(unit, LOG_RECORD)
                yield Piece(records=records, times=_times(records, running), problems=PROBLEM.empty_table())
            running = newest

    def group_log(self) -> Iterator[Piece]:
        """Every partition of the topic that the books name."""
        books = self._scan("bronze.ingest_extent", ["topic_id", "partition"], pc.field("topic") == OFFSETS_TOPIC)
        places = books.group_by(["topic_id", "partition"]).aggregate([]).to_pylist()
        for place in sorted(places, key=lambda row: (row["topic_id"], row["partition"])):
            running = NO_LOG_TIME
            for unit in self._units((str(self._evidence.cluster_id), place["topic_id"], place["partition"])):
                records = read_unit(unit, LOG_RECORD)
                times = _times(records, running)
                running = log_time_after(times, running)
                yield Piece(records=records, times=times, problems=PROBLEM.empty_table())

    def problems(self) -> pa.Table:
        """Rows of bronze.quarantine; records that can't be decoded come with the records."""
        newest = next(iter(self._topic_ids.values()), "")
        ours = ((pc.field("topic") == STATE_TOPIC) & (pc.field("topic_id") == newest)) | (
            pc.field("topic") == OFFSETS_TOPIC
        )
        return self._scan("bronze.quarantine", PROBLEM.names, ours & (pc.field("file") != DECODED_FROM))

    def _scan(self, table: str, columns: list[str], condition: pc.Expression) -> pa.Table:
        return self._lake.scan(table, columns, all_of(pc.field("cluster_id") == self._evidence.cluster_id, condition))

    def _units(self, key: tuple[str, str, int]) -> Iterator[list[Slice]]:
        """Slices of bronze.log_record that are read together, in offset order."""
        snapshot = self._lake.snapshot(DECODED_FROM)
        if snapshot is None:
            return
        pieces = slices(snapshot, BRONZE, runs=EVERY_RUN, only=[key])
        yield from units(pieces.get(key, []))


def _times(records: pa.Table, before_ms: int) -> Ints:
    return log_times(records.column("timestamp_ms").to_numpy(), before_ms)


def undecodable(records: pa.Table, times: Ints, group_id: str) -> pa.Table:
    """PROBLEM rows of state records that can't be decoded and are the group's, or whose key can't be read."""
    problems = decode_rows(records, times).problems
    return problem_rows(problems.filter((pc.field("group_id") == group_id) | pc.field("group_id").is_null()))


def without_source(problems: pa.Table) -> list[dict[str, Any]]:
    """PROBLEM rows without what depends on where a copy lies: of the file its name alone, null for a decoded record."""
    rows = []
    for row in in_answer(problems.select([*PROBLEM_COLUMNS, "bytes"]), FIRST_OFFSET_NAMES).to_pylist():
        if row["file"] == DECODED_FROM:
            row |= {"file": None, "position": None}
        else:
            row["file"] = PurePosixPath(row["file"]).name
            row["position"] = None if row["position"] < 0 else row["position"]
        rows.append(row)
    return rows
