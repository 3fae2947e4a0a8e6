"""How complete an answer is: the closing line, warnings about the cut, refusals of cuts outside the evidence."""

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from sharelens.evidence.as_of import LogPrefix
from sharelens.output import name_cell
from sharelens.output.terminal import visible
from sharelens.output.wording import counted, first_of
from sharelens.parameters.times import time_text
from sharelens.source.request import CutChoice
from sharelens.tables.cover import StatePartitionCover, undecoded_reasons
from sharelens.tables.missing import LeftOut, MissingEvidence
from sharelens.tables.port import Tables
from sharelens.tables.reading import fetched, read_group_records, read_share_partitions
from state_model.errors import SharelensError, UsageError
from state_model.topics import OFFSETS_TOPIC, STATE_TOPIC

COMPLETE = "complete"
INCOMPLETE, MISPLACED = "incomplete", "misplaced"
NO_RECORD = -1
"""--at-offset P:-1: none of the partition's records count, so its evidence does not matter."""


def prefix_of(cut: CutChoice) -> LogPrefix:
    """The log prefix of a cut."""
    return LogPrefix(as_of_ms=cut.as_of_ms, at_offsets=cut.at_offsets or {})


def check_cut(evidence: Tables, cut: LogPrefix) -> list[str]:
    """Warnings about the cut; call it after the answer, because reading a log finds its extent.

    Raises:
        SharelensError: the cut lies before the evidence.
        UsageError: a state partition that the evidence does not have.
    """
    if cut.as_of_ms is not None:
        return _check_time(evidence, cut.as_of_ms)
    return _check_offsets(evidence, cut.at_offsets) if cut.at_offsets else []


def _check_time(evidence: Tables, moment_ms: int) -> list[str]:
    first, last = evidence_times(evidence)
    if first is None or last is None:
        raise SharelensError(
            f"{evidence.place} has no share-group state and no record of a group, so it has no answer for "
            f"{time_text(moment_ms)}"
        )
    if moment_ms < first:
        dropped = dropped_text(evidence.cover())
        raise SharelensError(
            f"{time_text(moment_ms)} lies before the evidence in {evidence.place}, which begins at {time_text(first)}"
            f"{dropped}"
        )
    warnings = []
    if moment_ms > last:
        warnings.append(
            f"the evidence ends at {time_text(last)}; the answer is as of that time, not as of {time_text(moment_ms)}"
        )
    for step in evidence.clock_steps(moment_ms):
        warnings.append(
            f"state partition {step.state_partition}: a clock was {step.ahead_ms / 1000:.0f} s ahead of records with "
            f"timestamps up to {time_text(moment_ms)}; to count them: "
            f"--at-offset {step.state_partition}:{step.last_offset}"
        )
    return warnings


def _check_offsets(evidence: Tables, at_offsets: Mapping[int, int]) -> list[str]:
    covers = {part.state_partition: part for part in evidence.cover()}
    warnings = []
    for number, last in sorted(at_offsets.items()):
        if last == NO_RECORD:
            continue
        part = covers.get(number)
        if part is None:
            covered = ", ".join(map(str, covers)) or "none"
            raise UsageError(f"--at-offset: no state partition {number} in {evidence.place}; there: {covered}")
        if last < part.first_offset:
            raise SharelensError(
                f"log offset {last} of state partition {number} lies before the evidence in {evidence.place}, "
                f"which begins at {part.first_offset}{dropped_text([part])}"
            )
        if last >= part.end_offset_exclusive:
            end = part.end_offset_exclusive - 1
            warnings.append(
                f"state partition {number} ends at log offset {end}; the answer is as of that offset, not of {last}"
            )
    return warnings


def check_beginning(evidence: Tables, from_ms: int | None, now_ms: int | None = None) -> tuple[str, ...]:
    """A warning where the window of an answer begins after the evidence; call it after the answer.

    `now_ms`: until when the evidence was read, of answers that go on until then; None: its last log time.
    """
    end_ms = evidence_times(evidence)[1] if now_ms is None else now_ms
    if from_ms is None or end_ms is None or from_ms <= end_ms:
        return ()
    return (f"--from {time_text(from_ms)} lies after the evidence, which ends at {time_text(end_ms)}",)


def times(cover: Sequence[StatePartitionCover]) -> tuple[int | None, int | None]:
    """First and last log time of the evidence; None when it holds no record."""
    first = min((part.first_ms for part in cover if part.first_ms is not None), default=None)
    last = max((part.last_ms for part in cover if part.last_ms is not None), default=None)
    return first, last


def evidence_times(evidence: Tables) -> tuple[int | None, int | None]:
    """First and last time of the state log, or without one of the group coordinator's records; None: no record."""
    first, last = times(evidence.cover())
    if first is not None:
        return first, last
    ends = pc.min_max(read_group_records(evidence, None).column("timestamp_ms"))
    return ends["min"].as_py(), ends["max"].as_py()


def evidence_line(cover: Sequence[StatePartitionCover], incomplete: int = 0) -> str:
    """The line that closes every answer in text."""
    first, last = times(cover)
    gaps = sum(len(part.gaps) for part in cover)
    quarantined = sum(part.quarantined for part in cover)
    unreadable_bytes = sum(part.unreadable_bytes for part in cover)
    uncommitted = sum(part.uncommitted for part in cover)
    high_watermark = f"held back {sum(part.held_back for part in cover)}"
    high_watermark += f", uncommitted {uncommitted}" if uncommitted else ""
    tail = f"; {unreadable_bytes} unreadable bytes at the end" if unreadable_bytes else ""
    rows = f"; {incomplete} rows not complete" if incomplete else ""
    unreadable = "".join(f"; left out: {part.unreadable}" for part in cover if part.unreadable)
    gates = next((f"; closed gates: {part.closed_gates}" for part in cover if part.closed_gates), "")
    return (
        f"evidence: {len(cover)} state partitions, {time_text(first)} to {time_text(last)}; "
        f"gaps {gaps}, quarantined {quarantined}, {high_watermark}{tail}{unreadable}{rows}"
        f"{dropped_text(cover)}{gates}"
    )


def closing_line(evidence: Tables, incomplete: int = 0) -> str:
    """The evidence line; of evidence without a state log it says what there is of the group coordinator's log."""
    cover = evidence.cover()
    logs = [] if cover else list(evidence.group_log_covers().values())
    missing = missing_text(evidence.missing)
    if not logs:
        return evidence_line(cover, incomplete) + undecoded_text(evidence, cover) + missing + fetched(evidence)
    first, last = min(log.first_ms for log in logs), max(log.last_ms for log in logs)
    held_back = sum(log.held_back for log in logs)
    back = f"; held back {held_back}" if held_back else ""
    rows = f"; {incomplete} rows not complete" if incomplete else ""
    return (
        f"evidence: {counted(len(logs), 'partition')} of {OFFSETS_TOPIC}, {time_text(first)} to {time_text(last)}"
        f"{back}{rows}{missing}{fetched(evidence)}"
    )


def undecoded_text(evidence: Tables, cover: Sequence[StatePartitionCover]) -> str:
    """The part of the closing line about records that could not be decoded, with the most frequent reason.

    Empty when there are none. A record type that is not known, which brokers skip as well, is no loss of theirs.
    """
    counts = undecoded_reasons(cover)
    if not counts:
        return ""
    total = counts.total()
    ((detail, _),) = counts.most_common(1)
    if read_share_partitions(evidence).num_rows:
        return f"; not decoded: {counted(total, 'record')}, {detail}"
    return f"; NONE of {counted(total, 'record')} could be decoded: {detail}"


def missing_text(missing: MissingEvidence) -> str:
    """The part of the closing line that says what other logs list and the evidence lacks; empty when nothing."""
    if missing.lacks_state_log:
        count = counted(missing.initialized or 0, "initialized share partition")
        return f"; {count}, and no folder of the state log: copy {STATE_TOPIC}-*"
    text = "".join(map(_left_out_text, missing.left_out))
    if missing.states.count:
        of_all = counted(missing.initialized or 0, "initialized share partition")
        text += f"; {missing.states.count} of {of_all} without state here"
    if missing.state_partitions.count:
        numbers = ", ".join(map(str, missing.state_partitions.items))
        omitted = missing.state_partitions.count - len(missing.state_partitions.items)
        more_text = f" and {omitted} more" if omitted else " and others" if missing.has_others else ""
        text += f"; state partitions not here: {numbers}{more_text}"
    return text


def _left_out_text(topic: LeftOut) -> str:
    sources = ", ".join(map(visible, topic.sources))
    end = time_text(topic.last_ms)
    return (
        f"; left out: state topic {topic.topic_id} of {sources}, which ends at {end} (created again, or a stale disk)"
    )


def dropped_text(cover: Sequence[StatePartitionCover]) -> str:
    """The part of the closing line that says what retention dropped; empty when it dropped nothing."""
    latest: dict[str, int] = {}
    for part in cover:
        for group, moment_ms in part.dropped_ms.items():
            latest[group] = max(moment_ms, latest.get(group, moment_ms))
    dropped = ", ".join(f"{group} before {time_text(moment_ms)}" for group, moment_ms in sorted(latest.items()))
    return f"; dropped by retention: {dropped}" if dropped else ""


def misplaced_warnings(rows: pa.Table, names: Mapping[str, str]) -> list[str]:
    """At most one line, about misplaced rows (the share partition's columns and state_partition); `names` of topics."""
    places = sorted(
        (row["group_id"], names.get(row["topic_id"], row["topic_id"]), row["partition"], row["state_partition"])
        for row in rows.select(["group_id", "topic_id", "partition", "state_partition"]).to_pylist()
    )
    if not places:
        return []
    shown = [
        f"{name_cell(group)} {name_cell(topic)}:{number} in state partition {place}"
        for group, topic, number, place in places
    ]
    warning = (
        "no number of state partitions fits all share partitions (a changed number, or copies of two logs?); the state "
        "in the state partition to which the newest records hash counts; misplaced: "
        f"{first_of(shown, str)}"
    )
    return [warning]


def incomplete_rows(completeness: pa.ChunkedArray) -> int:
    """Rows that are not marked complete."""
    return int(pc.sum(pc.not_equal(completeness, COMPLETE)).as_py() or 0)
