"""Gaps of the state log as entries of a timeline."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.as_of import LogPrefix
from sharelens.output.wording import counted
from sharelens.questions.timelines.entries import GAP, Entry, entry_of
from sharelens.tables.port import RECORDS, Tables
from state_model.columnar.values import Loss

POSITION = ["state_partition", "log_offset", "log_time_ms"]
NO_RECORD = np.iinfo(np.int64).max


def gap_entries(evidence: Tables, places: pa.Table, cut: LogPrefix) -> Iterator[Entry]:
    """An entry for each gap and group that it touches, with the first record behind the gap, whose time it has.

    `places`: PLACED rows of the groups' share partitions. A gap that names a share partition is about that one. A gap
    with no record behind it has no time, and no entry.
    """
    groups = _groups_of(places)
    gaps = {part.state_partition: part.losses for part in evidence.cover() if part.state_partition in groups}
    gaps = {number: losses for number, losses in gaps.items() if losses}
    if not gaps:
        return
    behind = _records_behind(evidence, gaps)
    for number, losses in gaps.items():
        last = cut.at_offsets.get(number, NO_RECORD)
        for loss, log_offset, at_ms in zip(losses, *behind[number].tolist(), strict=True):
            if log_offset == NO_RECORD or log_offset > last:
                continue
            text = f"{counted(loss.last_offset - loss.first_offset + 1, 'offset')} of the state log missing: "
            for about in _touched(loss, groups[number]):
                row = {**about, "state_partition": number, "log_offset": log_offset}
                yield entry_of(row, GAP, at_ms, f"{text}{loss.reason.replace('_', ' ')}")


def _groups_of(places: pa.Table) -> dict[int, list[str]]:
    """The groups of each state partition."""
    groups: dict[int, list[str]] = {}
    keys = places.group_by(["state_partition", "group_id"]).aggregate([])
    for row in keys.sort_by([("state_partition", "ascending"), ("group_id", "ascending")]).to_pylist():
        groups.setdefault(row["state_partition"], []).append(row["group_id"])
    return groups


def _touched(loss: Loss, groups: Sequence[str]) -> Iterator[Entry]:
    if loss.group_id is None:
        yield from ({"group_id": group} for group in groups)
    elif loss.group_id in groups:
        yield {"group_id": loss.group_id, "topic_id": loss.topic_id, "partition": loss.partition}


def _records_behind(evidence: Tables, gaps: Mapping[int, Sequence[Loss]]) -> "dict[int, np.typing.NDArray[np.int64]]":
    """Log offset (NO_RECORD: none) and log time of the first record behind each gap, by state partition."""
    behind = {number: np.full((2, len(losses)), NO_RECORD, np.int64) for number, losses in gaps.items()}
    for rows in evidence.scan(RECORDS, POSITION):
        numbers = set(pc.unique(rows.column("state_partition")).to_pylist())
        for number in gaps.keys() & numbers:
            of_log = rows.filter(pc.equal(rows.column("state_partition"), number)).sort_by("log_offset")
            offsets, times = (of_log.column(name).to_numpy() for name in POSITION[1:])
            at = np.searchsorted(offsets, [loss.last_offset for loss in gaps[number]], side="right")
            has_record = at < len(offsets)
            nearer = np.where(has_record, offsets[at.clip(0, len(offsets) - 1)], NO_RECORD) < behind[number][0]
            behind[number][:, nearer] = offsets[at[nearer]], times[at[nearer]]
    return behind
