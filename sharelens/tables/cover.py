"""The extent of the evidence of each partition of an internal topic, and what is missing in it."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from state_model.columnar.values import Loss


class Undecoded(NamedTuple):
    """Records that could not be decoded for one reason: how many, and the detail of the first one."""

    reason: str
    detail: str
    records: int


CONTROL_RECORD = "control_record"


@dataclass(frozen=True, slots=True, kw_only=True)
class StatePartitionCover:
    """The evidence of one state partition.

    Offsets are those of the state topic's log; `end_offset_exclusive` is where the evidence ends. Times are
    log times (None: no record held). `held_back` counts offsets at or above the high watermark that were left out,
    `uncommitted` those that were taken all the same. `unreadable_bytes`: of an append in progress behind the last
    complete batch. `size_bytes`: of the segments of a log directory, or of the keys and values that a lake took of the
    log from its log start offset on.
    `quarantined` counts records that could not be decoded, each once, and batches that could not be read. `losses`: the
    ranges that the evidence lacks (`gaps`), and those of the records that could not be decoded (`undecoded_losses`).
    `undecoded`: these records by reason; control records, which are no share-group records, too. `unreadable`: why no
    record of it could be read; empty where its folder can be read.
    `closed_gates`: tables of the lake with a closed quality gate, each with its unmet expectations; empty when none is.
    `dropped_ms`: by group of tables (`--retain`) the log time before which upkeep dropped rows.
    """

    log_topic_id: str
    state_partition: int
    first_offset: int
    end_offset_exclusive: int
    log_start_offset: int
    first_ms: int | None
    last_ms: int | None
    held_back: int = 0
    uncommitted: int = 0
    quarantined: int = 0
    losses: tuple[Loss, ...] = ()
    undecoded_losses: tuple[Loss, ...] = ()
    undecoded: tuple[Undecoded, ...] = ()
    unreadable_bytes: int = 0
    size_bytes: int = field(default=0, compare=False)
    closed_gates: str = ""
    unreadable: str = ""
    dropped_ms: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether the log has no record that was read, was left out or can't be read."""
        return self.first_ms is None and not (self.held_back or self.quarantined or self.losses)

    @property
    def gaps(self) -> tuple[Loss, ...]:
        """The ranges of offsets that the evidence lacks; a record that can't be decoded is in quarantine instead."""
        undecoded = frozenset(self.undecoded_losses)
        return tuple(loss for loss in self.losses if loss not in undecoded)

    @property
    def gap_offsets(self) -> int:
        """The offsets that the evidence lacks."""
        return sum(loss.last_offset - loss.first_offset + 1 for loss in self.gaps)

    def row(self) -> dict[str, str | int | None]:
        """The state partition, its offsets and held-back offsets, with the field names of answers."""
        return {
            "state_partition": self.state_partition,
            "log_topic_id": self.log_topic_id,
            "first_log_offset": self.first_offset,
            "end_log_offset_exclusive": self.end_offset_exclusive,
            "log_start_offset": self.log_start_offset,
            "first_log_time_ms": self.first_ms,
            "last_log_time_ms": self.last_ms,
            "held_back": self.held_back,
        }


class GroupLogCover(NamedTuple):
    """The evidence of one partition of __consumer_offsets: times of its first and newest record, in ms.

    `held_back` counts offsets at or above the high watermark that were left out.
    """

    first_ms: int
    last_ms: int
    held_back: int


def undecoded_reasons(cover: Iterable[StatePartitionCover]) -> Counter[str]:
    """How many records of state logs could not be decoded, by reason; control records, which are none, do not count."""
    counts: Counter[str] = Counter()
    for part in cover:
        for records in part.undecoded:
            if records.reason != CONTROL_RECORD:
                counts[records.detail or records.reason] += records.records
    return counts
