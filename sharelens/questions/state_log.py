"""One partition of the state topic, read and decoded chunk by chunk, with an account of what is missing."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from kafka_log import reader
from kafka_log.union import LogPartition
from sharelens.questions.account import LATE, Account
from sharelens.questions.evidence import Cut, Keys, StatePartitionCover
from state_model.columnar import schemas
from state_model.columnar.decode import decode_share_records, key_mask
from state_model.columnar.placement import fitting_counts, possible_counts
from state_model.java import partition_for

SPLIT_BYTES = 64 << 20
CHUNK_BYTES = 16 << 20
FOLD_BYTES = 64 << 20
PROBED_BYTES = 1 << 20
PROBED_OFFSETS = 1000
NOTHING_BEFORE = -(1 << 63)
NO_CUT = Cut()
EVERY_KEY = Keys()


class StateLog:
    """A state partition; `account` is that of the last reading to the end."""

    def __init__(self, partition: LogPartition, *, include_uncommitted: bool) -> None:
        self.partition = partition
        self.include_uncommitted = include_uncommitted
        self.number = partition.partition
        self.log_start_offset = partition.log_start_offset
        bases = [segment.base_offset for copy in partition.copies for segment in copy.segments]
        self.first_offset = min(bases, default=0)
        self.size_bytes = size_bytes(partition)
        log_end, committed_end = reader.log_end(partition), partition.committed_end
        written_end = log_end.end_offset
        readable_end = written_end if include_uncommitted or committed_end is None else min(written_end, committed_end)
        self.end_offset = max(self.first_offset, readable_end)
        self._held_back = max(0, written_end - self.end_offset)
        self._unreadable_bytes = log_end.unreadable_bytes
        self.account: Account | None = None

    def read(self, keys: Keys = EVERY_KEY, cut: Cut = NO_CUT) -> Iterator[pa.Table]:
        """Decoded records (SHARE_RECORD) in offset order, in bounded chunks.

        Records of other share partitions than `keys` means, and behind `cut`, may be among them. The reading's account
        stands in `account` once the last chunk was taken.
        """
        at_offset = cut.at_offsets.get(self.number)
        account = Account(self.partition, self.end_offset, at_offset=at_offset, as_of_ms=cut.as_of_ms)
        pending = [schemas.SHARE_RECORD.empty_table()]
        for part in reader.splits(self.partition, self.first_offset, self.end_offset, SPLIT_BYTES):
            for chunk in reader.read_split(part, include_uncommitted=self.include_uncommitted, batch_bytes=CHUNK_BYTES):
                times = account.take(chunk.records, chunk.problems)
                pending.append(self._decoded(chunk.records, times, keys, account))
                if sum(table.nbytes for table in pending) > FOLD_BYTES:
                    yield pa.concat_tables(pending)
                    pending = pending[:1]
        yield pa.concat_tables(pending)
        account.close()
        self.account = account

    def _decoded(self, records: pa.RecordBatch, times: npt.NDArray[np.int64], keys: Keys, account: Account) -> pa.Table:
        if (only := keys.only) is not None:
            mask = key_mask(records, group_id=only[0], topic_id=only[1], partition=only[2])
            records, times = records.filter(mask), times[mask.to_numpy(zero_copy_only=False)]
        decoded = decode_share_records(records, log_time_ms=times)
        account.undecoded(decoded.problems)
        return pa.Table.from_batches([decoded.records], schema=schemas.SHARE_RECORD)

    def read_account(self) -> Account:
        """The account of the last reading; reads through when there was none."""
        if self.account is None:
            for _ in self.read():
                pass
        if self.account is None:
            raise AssertionError("a reading to the end leaves its account")
        return self.account

    def late_records(self, moment_ms: int) -> pa.Table:
        """Records stamped by the moment, whose log time lies after it and over a minute ahead of their own."""
        account = self.account
        every = pa.concat_tables([LATE.empty_table(), *(account.late if account is not None else [])])
        found = every.filter((pc.field("timestamp_ms") <= moment_ms) & (pc.field("log_time_ms") > moment_ms))
        return found.append_column("state_partition", pa.repeat(pa.scalar(self.number, pa.int32()), found.num_rows))

    def newest_ms(self) -> int:
        """The largest timestamp by the batch headers; the smallest integer for an empty log."""
        batches = reader.scan_batches(self.partition, self.first_offset, self.end_offset)
        return max(
            (pc.max(batch.column("max_timestamp_ms")).as_py() or NOTHING_BEFORE for batch in batches),
            default=NOTHING_BEFORE,
        )

    def cover(self) -> StatePartitionCover:
        """What the last reading found."""
        account = self.read_account()
        return StatePartitionCover(
            log_topic_id=self.partition.topic_id,
            state_partition=self.number,
            first_offset=self.first_offset,
            end_offset_exclusive=self.end_offset,
            log_start_offset=self.log_start_offset,
            first_ms=account.first_ms,
            last_ms=account.last_ms,
            held_back=self._held_back,
            quarantined=account.quarantined,
            losses=tuple(account.losses),
            unreadable_bytes=self._unreadable_bytes,
        )

    def probe(self) -> list[tuple[str, str, int]]:
        """Some share partitions at the beginning of the log."""
        probed = min(self.end_offset, self.first_offset + PROBED_OFFSETS)
        for part in reader.splits(self.partition, self.first_offset, probed, PROBED_BYTES)[:1]:
            for chunk in reader.read_split(part, include_uncommitted=True, batch_bytes=PROBED_BYTES):
                nothing = np.zeros(chunk.records.num_rows, np.int64)
                found = pa.Table.from_batches([decode_share_records(chunk.records, log_time_ms=nothing).records])
                keys = found.select(["group_id", "topic_id", "partition"])
                distinct = keys.group_by(keys.column_names).aggregate([]).to_pylist()
                return [(row["group_id"], row["topic_id"], row["partition"]) for row in distinct]
        return []


def size_bytes(partition: LogPartition) -> int:
    """Bytes of the largest copy."""
    return max((sum(segment.size_bytes for segment in copy.segments) for copy in partition.copies), default=0)


def partitions_of_key(logs: Sequence[StateLog], key: tuple[str, str, int]) -> frozenset[int] | None:
    """State partitions that can hold the share partition; None when the number of state partitions can't be told.

    The number is any above the largest index that puts every key seen at the beginning of each log where it lies.
    """
    counts = possible_counts(max((log.number for log in logs), default=0))
    for log in logs:
        for seen in log.probe():
            counts = fitting_counts(counts, seen, log.number)
    return frozenset(partition_for(*key, count) for count in counts.tolist()) or None
